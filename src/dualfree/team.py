"""Several threads on one problem: each has its own rows, and what they find is put together in a fixed order.

Kernels release the interpreter's lock, so ordinary Python threads run them side by side. Every thread works on consecutive
rows with about the same number of stored entries, seen as a problem of its own; nothing is copied. Sums are added up part by
part, always in the same order: the same number of threads gives the same bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np

from . import rows as _rows
from ._checks import Array
from .problem import Problem

T = TypeVar("T")

_EPS = 2.0**-52
# Fewer entries than this a thread are not worth waking it up for.
_LEAST_ENTRIES = 1 << 17


class Part(NamedTuple):
    """The rows of one thread: where they are, and the problem on them."""

    where: slice
    problem: Problem


class Team:
    """Up to `size` threads that share a problem's rows; one thread is the caller itself.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.team import Team
    >>> problem = df.Problem(np.eye(3), [1.0, 2.0, 3.0], loss="squared", lam=1.0)
    >>> with Team(problem, 2) as team:
    ...     z = np.empty(3)
    ...     team.margins_into(np.ones(3), z)
    >>> z
    array([1., 1., 1.])
    """

    def __init__(self, problem: Problem, size: int = 1) -> None:
        self.problem = problem
        self.size = max(1, min(size, problem.n, problem.nnz // _LEAST_ENTRIES))
        self.pool: ThreadPoolExecutor | None = None
        if self.size == 1:
            self.parts = [Part(slice(0, problem.n), problem)]
            return
        self.pool = ThreadPoolExecutor(self.size - 1, thread_name_prefix="dualfree")
        cuts = _cuts(problem, self.size)
        self.parts = [Part(slice(a, b), problem.between(a, b)) for a, b in itertools.pairwise(cuts)]

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *reason: object) -> None:
        if self.pool is not None:
            self.pool.shutdown()

    def run(self, jobs: Sequence[Callable[[], T]], give_up: Callable[[], None] = lambda: None) -> list[T]:
        """Run the jobs side by side, the first in the caller's thread; return what they return, in their order.

        `give_up` is called when one of them fails or the caller is interrupted, so that the others do not wait for it.
        """
        if self.pool is None:
            return [job() for job in jobs]

        def guarded(job: Callable[[], T]) -> T:
            try:
                return job()
            except BaseException:
                give_up()
                raise

        others: list[Future[T]] = []
        try:
            others += (self.pool.submit(guarded, job) for job in jobs[1:])
            first = jobs[0]()
        except BaseException:
            give_up()
            raise
        finally:
            rest = [other.result() for other in others]  # a Ctrl-C must not leave a thread writing to shared arrays
        return [first, *rest]

    def each(self, job: Callable[[Part], T]) -> list[T]:
        """Run a job for each part."""
        if self.pool is None:
            return [job(self.parts[0])]
        return self.run([lambda part=part: job(part) for part in self.parts])  # type: ignore[misc]

    # --- passes over the rows ---------------------------------------------------------------------------------------

    def margins_into(self, w: Array, z: Array) -> None:
        """z_i = x_i · w."""
        self.each(lambda part: _rows.margins_into(part.problem.rows, w, z[part.where]))

    def sum_rows_into(self, factors: Array, out: Array, scratch: Array) -> float:
        """out = Σ factor_i x_i; return e such that the rounding error is at most e Σ |factor_i| ‖x_i‖."""
        if self.pool is None:
            return self.problem.sum_rows_into(factors, out, scratch)

        def one(part: Part) -> tuple[Array, float]:
            total = np.empty(out.size)
            return total, part.problem.sum_rows_into(factors[part.where], total, np.empty(out.size))

        return self.put_together(self.each(one), out)

    def margins_and_sum_into(self, w: Array, factors: Array, z: Array, out: Array, scratch: Array) -> float:
        """z = X w and, in the same pass, what `sum_rows_into` does."""
        if self.pool is None:
            return self.problem.margins_and_sum_into(w, factors, z, out, scratch)

        def one(part: Part) -> tuple[Array, float]:
            total, where = np.empty(out.size), part.where
            error = part.problem.margins_and_sum_into(w, factors[where], z[where], total, np.empty(out.size))
            return total, error

        return self.put_together(self.each(one), out)

    def put_together(self, found: list[tuple[Array, float]], out: Array) -> float:
        """out = the sum of what the parts summed; return its error, from theirs (see `sum_rows_into`)."""
        out[:] = 0.0
        for total, _ in found:
            out += total
        return max(error for _, error in found) + self.size * _EPS

    def add_up(self, size: int, job: Callable[[Part, Array], Any]) -> Array:
        """Return the sum of vectors that `job` adds to a fresh zero vector for each part."""

        def one(part: Part) -> Array:
            total = np.zeros(size)
            job(part, total)
            return total

        first, *rest = self.each(one)
        for total in rest:
            first += total
        return first


def _cuts(problem: Problem, size: int) -> list[int]:
    """Where to cut the rows into `size` parts of about the same number of entries, none empty."""
    if problem.is_dense:
        return [problem.n * k // size for k in range(size + 1)]
    indptr = problem.rows[-1]
    inner = np.searchsorted(indptr, [problem.nnz * k // size for k in range(1, size)])
    cuts = [0, *(int(cut) for cut in inner), problem.n]
    return [min(max(cut, k), problem.n - size + k) for k, cut in enumerate(cuts)]
