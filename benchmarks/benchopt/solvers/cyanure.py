"""Cyanure."""

from __future__ import annotations

import cyanure  # noqa: F401  (benchopt takes an ImportError for "not installed")
from benchmark_utils.peer_solver import PeerSolver


class Solver(PeerSolver):
    """Its automatic choice."""

    name = "cyanure"
    requirements = ["pip::cyanure"]
    peer_name = "cyanure"
