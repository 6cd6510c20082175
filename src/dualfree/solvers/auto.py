"""`auto`: the default."""

from __future__ import annotations

import numpy as np

from ..problem import Problem
from .base import Solver
from .prox_sdca import ProxSdca


class Auto(ProxSdca):
    name = "auto"

    def __init__(self, problem: Problem, rng: np.random.Generator) -> None:
        super().__init__(problem, rng)
