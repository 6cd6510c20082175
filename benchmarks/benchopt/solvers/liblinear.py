"""LIBLINEAR."""

from __future__ import annotations

import liblinear  # noqa: F401  (benchopt takes an ImportError for "not installed")
from benchmark_utils.peer_solver import PeerSolver


class Solver(PeerSolver):
    """Newton on the primal, coordinate descent on the dual."""

    name = "liblinear"
    requirements = ["pip::liblinear-official"]
    parameters = {"solver": ["newton", "dual"]}
