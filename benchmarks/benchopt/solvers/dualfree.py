"""dualfree with its default solver."""

from __future__ import annotations

from benchmark_utils.peer_solver import PeerSolver


class Solver(PeerSolver):
    """The certificate is computed inside the time."""

    name = "dualfree"
    requirements = ["pip::dualfree"]
    peer_name = "dualfree"
