"""Tiles hold rows exactly, whatever is left over of eight, and nothing beyond the matrix is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dualfree as df
from dualfree import team as teams
from dualfree._jit import kernel
from dualfree.team import Team
from dualfree.tiles import empty_tile, fill_tile, fill_tile_with, multiply_tile, rows_of
from dualfree.transposition import AT_ONCE, may_be_read_beyond


@kernel
def _tile_of(X: Any, first: int, last: int) -> Any:
    tile = empty_tile(X.shape[1])
    fill_tile(X, first, last, tile)
    return tile[:, : last - first]


@kernel
def _tile_with(X: Any, chosen: Any) -> Any:
    tile = empty_tile(X.shape[1])
    fill_tile_with(X, chosen, tile)
    return tile[:, : chosen.size]


@kernel
def _products(X: Any, w: Any, out: Any) -> int:
    tile = empty_tile(X.shape[1])
    fill_tile(X, 0, out.size, tile)
    multiply_tile(tile, w, out)
    return rows_of(tile)


@kernel
def _may_be_read_beyond(X: Any, i: int) -> bool:
    return may_be_read_beyond(X, i)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 21])
def test_a_tile_is_the_transpose(d: int, dtype: Any) -> None:
    X = np.random.default_rng(d).normal(size=(61, d)).astype(dtype)
    for first, last in ((0, 61), (0, 8), (3, 3), (5, 30), (53, 61), (54, 61)):
        np.testing.assert_array_equal(_tile_of(X, first, last), X[first:last].T)
    for chosen in (np.arange(61)[::3], np.array([2, 3, 5, 7, 11, 13, 17, 60]), np.arange(45, 61), np.empty(0, int)):
        np.testing.assert_array_equal(_tile_with(X, chosen.astype(np.uint64)), X[chosen].T)


@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 9, 16, 20])
def test_no_row_is_read_beyond_the_matrix(d: int) -> None:
    """Each row is read in whole eights; of the last ones that would be too much."""
    X = np.zeros((30, d))
    padded = -(-d // AT_ONCE) * AT_ONCE
    assert [_may_be_read_beyond(X, i) for i in range(30)] == [i * d + padded <= X.size for i in range(30)]
    assert _may_be_read_beyond(X, 29) == (d % AT_ONCE == 0)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6, 9, 40])
def test_rows_of_a_tile_times_a_vector(d: int) -> None:
    rng = np.random.default_rng(d)
    X, w, out = rng.normal(size=(100, d)), rng.normal(size=d), np.full(100, np.nan)
    assert _products(X, w, out) >= 100
    np.testing.assert_allclose(out, X @ w, rtol=0, atol=1e-13 * d)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("n", "d"), [(3, 2), (100, 5), (70_000, 7), (9000, 32)])
def test_sums_by_tiles_keep_the_bound_of_sums_by_rows(
    n: int, d: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(n)
    X, factors, w = rng.normal(size=(n, d)) + 3.0, rng.normal(size=n) + 2.0, rng.normal(size=d)
    problem = df.Problem(X, X[:, 0], "squared", 1e-3)
    exact = (X.astype(np.longdouble) * factors[:, None]).sum(axis=0)
    sizes = np.abs(factors) @ np.linalg.norm(X, axis=1)
    with Team(problem, threads) as team:
        run, pieces = team.run, []
        monkeypatch.setattr(team, "run", lambda piece, *given: pieces.append(piece) or run(piece, *given))
        for most, kind in ((32, teams._margins_and_sum_by_tiles), (0, teams._margins_and_sum)):
            monkeypatch.setattr(teams, "_SHORT_ROWS", most)
            pieces.clear()
            z, out, scratch = np.full(n, np.nan), np.full(d, np.nan), np.full(d, np.nan)
            error = team.margins_and_sum_into(w, factors, z, out, scratch)
            assert np.linalg.norm((out - exact).astype(float)) <= error * sizes
            np.testing.assert_allclose(z, X @ w, rtol=0, atol=1e-12 * d)
            assert pieces[0] is kind
