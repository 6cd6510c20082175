"""dask-ml's LogisticRegression on blocks that already lie on the workers.

dask-glm standardises the columns unless told otherwise, which is another problem, and fails on sparse blocks: with scipy's,
whatever the setting; with those of `sparse` while it standardises. So it gets `sparse.COO` and normalize=False.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import Client, wait

from dualfree.distributed import Block

from .scale_measure import Resident, Stopwatch

ITERATIONS = {"lbfgs": (5, 10, 20, 30, 100, 300), "admm": (3, 10, 30, 100)}
PACKAGES = ("dask-ml", "dask-glm", "sparse")


def missing() -> str | None:
    """Return why the peer cannot take part, or None."""
    absent = [name for name in ("dask_ml", "sparse") if importlib.util.find_spec(name) is None]
    return f"{' and '.join(absent)} not installed" if absent else None


@dataclass(frozen=True)
class Attempt:
    """A fit from zero with so many iterations."""

    iterations: int
    seconds: float
    cpu_seconds: float
    w: np.ndarray


def attempts(client: Client, data: Resident, solver: str, limit: float) -> Iterator[Attempt]:
    """Fit with more and more iterations, until one fit takes longer than `limit` seconds."""
    from dask_ml.linear_model import LogisticRegression

    X, y = _arrays(client, data)
    options: dict[str, Any] = {"normalize": False}
    if solver == "admm":
        options |= {"abstol": 0.0, "reltol": 0.0}
    LogisticRegression(solver=solver, max_iter=1, fit_intercept=False, solver_kwargs=options).fit(X, y)  # compiles
    for iterations in ITERATIONS[solver]:
        # Its objective is the sum of the losses + |w|²/(2C), so C = 1 is λn = 1.
        model = LogisticRegression(
            penalty="l2", C=1.0, tol=0.0, fit_intercept=False, solver=solver, max_iter=iterations, solver_kwargs=options
        )
        clock = Stopwatch(client)
        model.fit(X, y)
        seconds, cpu_seconds = clock.read()
        yield Attempt(iterations, seconds, cpu_seconds, np.asarray(model.coef_))
        if seconds > limit:
            return


def _arrays(client: Client, data: Resident) -> tuple[Any, Any]:
    """X and y ∈ {0, 1} as dask arrays of the blocks, each turned on its worker into what dask-glm takes."""
    import dask.array as da
    import sparse

    pairs = [(client.submit(_to_coo, block), client.submit(_to_bits, block)) for block in data.futures]
    wait(pairs)
    rows = client.gather(client.map(len, [bits for _, bits in pairs]))
    empty = sparse.COO.from_numpy(np.zeros((0, 0)))
    X = [da.from_delayed(x, (n, data.d), dtype=np.float64, meta=empty) for n, (x, _) in zip(rows, pairs, strict=True)]
    y = [da.from_delayed(bits, (n,), dtype=np.float64) for n, (_, bits) in zip(rows, pairs, strict=True)]
    return da.concatenate(X), da.concatenate(y)


def _to_coo(block: Block) -> Any:
    import sparse

    return sparse.COO.from_scipy_sparse(block.X.astype(np.float64))


def _to_bits(block: Block) -> np.ndarray:
    return (block.y > 0).astype(np.float64)
