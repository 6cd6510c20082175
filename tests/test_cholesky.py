"""Cholesky's factorisation and the systems with it, by one thread and by several, against numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from problems import make_problem

from dualfree import team
from dualfree.solvers import cholesky
from dualfree.solvers.cholesky import Factor
from dualfree.solvers.hessian import curvature_sum, factorised
from dualfree.team import Team


@pytest.fixture(params=[1, 2, 3, 5])
def threads(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    monkeypatch.setattr(team, "_LEAST_ENTRIES", 1)
    monkeypatch.setattr(cholesky, "_WORTH_SHARING", 2)
    with Team(make_problem("squared", n=60, d=30), request.param) as shared:
        assert shared.size == request.param
        yield shared


def positive(size: int, seed: int = 0) -> np.ndarray:
    """A positive definite matrix with scales from 1e-3 to 1e3."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2 * size, size)) * 10.0 ** rng.uniform(-3, 3, size)
    return np.asarray(root.T @ root)


@pytest.mark.parametrize("size", [1, 3, 64, 65, 127, 128, 129, 131, 300])
def test_factor_and_systems(size: int, threads: Team) -> None:
    """On every side of the blocks' ends, and of what four rows at a time leave over."""
    matrix = positive(size)
    expected = np.linalg.cholesky(matrix).T
    upper_alone = np.triu(matrix) + np.tril(np.full_like(matrix, np.nan), -1)  # the rest is not to be read
    factor = Factor(upper_alone, 3.0, threads)
    scale = np.sqrt(np.diagonal(matrix))
    assert np.allclose(np.triu(factor.upper) * scale, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    right = np.random.default_rng(1).normal(size=size)
    # where scales differ, compare in theirs
    assert np.allclose(factor.divided(right) * scale, np.linalg.solve(matrix / 3.0, right) * scale, rtol=1e-8)


def test_the_same_threads_give_the_same_bits(threads: Team) -> None:
    matrix, right = positive(200), np.arange(200.0)
    one, other = Factor(matrix, 1.0, threads), Factor(matrix, 1.0, threads)
    assert np.array_equal(np.triu(one.upper), np.triu(other.upper))
    assert np.array_equal(one.divided(right), other.divided(right))


@pytest.mark.parametrize("place", [0, 70, 149])
def test_a_little_is_added_to_what_is_not_positive_definite(place: int, threads: Team) -> None:
    """Wherever that comes to light: in the first block, in a later one, at the end."""
    matrix = positive(150)
    other = (place + 1) % 150
    matrix[place], matrix[:, place] = matrix[other], matrix[:, other]
    matrix[place, place] = matrix[other, other] * (1 - 1e-13)
    right = matrix @ np.ones(150)
    factor = Factor(matrix, 1.0, threads)
    assert np.isfinite(np.triu(factor.upper)).all()
    assert np.allclose(matrix @ factor.divided(right), right, rtol=1e-5, atol=1e-8 * np.abs(right).max())


def test_hessians_of_threads(threads: Team) -> None:
    """The threads' parts are added up, and the factor may take the place of one."""
    problem = threads.problem
    curvatures = np.random.default_rng(2).uniform(size=problem.n)
    X = np.asarray(problem.X)
    hessian = (X.T * curvatures) @ X / problem.n + problem.lam * np.eye(problem.d)
    for _ in range(2):
        factor = factorised(curvature_sum(threads, curvatures), problem, threads)
        assert np.allclose(factor.divided(hessian @ np.ones(problem.d)), 1.0, rtol=1e-9)


def test_few_columns_are_not_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "_LEAST_ENTRIES", 1)
    with Team(make_problem("squared", n=60, d=30), 2) as shared:
        assert Factor(positive(cholesky._WORTH_SHARING - 1), 1.0, shared).team is None
        assert Factor(positive(cholesky._WORTH_SHARING), 1.0, shared).team is shared


def test_numbers_that_are_not_finite_come_to_an_end(threads: Team) -> None:
    matrix = positive(150)
    matrix[3, 70] = np.nan
    assert not np.isfinite(Factor(matrix, 1.0, threads).divided(np.ones(150))).all()
