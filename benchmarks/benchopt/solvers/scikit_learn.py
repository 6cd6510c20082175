"""scikit-learn."""

from __future__ import annotations

from benchmark_utils.peer_solver import PeerSolver


class Solver(PeerSolver):
    """LogisticRegression, LinearSVC and Ridge; a solver that does not fit the loss is skipped."""

    name = "sklearn"
    requirements = ["scikit-learn"]
    parameters = {
        "solver": [
            "newton-cholesky",
            "lbfgs",
            "newton-cg",
            "saga",
            "sag",
            "LinearSVC dual",
            "LinearSVC primal",
            "Ridge cholesky",
            "Ridge svd",
            "Ridge auto",
            "Ridge sparse_cg",
            "Ridge lsqr",
            "Ridge saga",
            "Ridge sag",
        ]
    }
