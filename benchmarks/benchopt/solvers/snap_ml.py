"""Snap ML."""

from __future__ import annotations

import snapml  # noqa: F401  (benchopt takes an ImportError for "not installed")
from benchmark_utils.peer_solver import PeerSolver


class Solver(PeerSolver):
    """Dual and primal."""

    name = "snapml"
    requirements = ["pip::snapml"]
    parameters = {"solver": ["dual", "primal"]}
