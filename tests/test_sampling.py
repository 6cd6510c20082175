"""The sum tree draws exactly from its weights, and never a row of weight zero."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import make_problem

from dualfree.sampling import SumTree, lemma_scales, safe_ratios, smallest_safe_ratio

SIZES = [1, 2, 15, 16, 17, 255, 256, 257, 4097]


def naive_draw(weights: np.ndarray, u: float) -> int:
    """The row on which u falls, by cumulative sums."""
    cumulative = np.cumsum(weights)
    row = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    return min(row, int(np.flatnonzero(weights)[-1]))


@pytest.mark.parametrize("n", SIZES)
def test_every_row_owns_its_interval(n: int) -> None:
    """The middle of each row's share of [0, 1) belongs to that row."""
    weights = np.random.default_rng(n).random(n) + 0.01
    tree = SumTree(weights)
    assert tree.total == pytest.approx(math.fsum(weights), rel=1e-15)
    middles = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    assert [tree.draw(u) for u in middles] == list(range(n))


def test_draws_are_exact() -> None:
    """Chi-square over 200 000 draws, after changes, with zeros in between."""
    rng = np.random.default_rng(1)
    tree = SumTree(rng.random(60))
    for i in range(60):
        tree.set(i, 0.0 if i % 7 == 3 else float(rng.random() ** 3))
    weights = tree.weights.copy()
    counts = np.bincount([tree.draw(u) for u in rng.random(200_000)], minlength=60)
    assert not counts[weights == 0].any()
    positive = weights > 0
    expected = 200_000 * weights[positive] / weights.sum()
    assert scipy.stats.chisquare(counts[positive], expected).pvalue > 1e-3


@settings(max_examples=200)
@given(
    n=st.sampled_from(SIZES[:-1]),
    seed=st.integers(0, 10_000),
    share_of_zeros=st.sampled_from([0.0, 0.5, 0.95]),
    exponent=st.sampled_from([0, 3, 100]),
    changes=st.integers(0, 30),
    u=st.floats(0.0, 1.0, exclude_max=True),
)
def test_tree_agrees_with_cumulative_sums(
    n: int, seed: int, share_of_zeros: float, exponent: int, changes: int, u: float
) -> None:
    rng = np.random.default_rng(seed)
    weights = 10.0 ** rng.uniform(-exponent, exponent, size=n) * (rng.random(n) >= share_of_zeros)
    tree = SumTree(weights)
    for _ in range(changes):
        i, value = int(rng.integers(n)), float(rng.random() * (rng.random() < 0.7))
        weights[i] = value
        tree.set(i, value)
    assert np.array_equal(tree.weights, weights)
    assert tree.total == pytest.approx(math.fsum(weights), rel=1e-14)
    row = tree.draw(u)
    if not weights.any():
        assert row == -1
        return
    assert weights[row] > 0
    if row != naive_draw(weights, u):  # only at the very border of two rows
        border = np.cumsum(weights)[min(row, naive_draw(weights, u))] / weights.sum()
        assert u == pytest.approx(border, rel=1e-12)


def test_changes_leave_no_rounding_behind() -> None:
    """A million in and out: the sums are those of the weights that are left, exactly."""
    tree = SumTree(np.full(40, 1e-8))
    for _ in range(50):
        tree.set(17, 1e8)
        tree.set(17, 1e-8)
    assert tree.total == SumTree(np.full(40, 1e-8)).total


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-300])
def test_weights_that_underflow(tiny: float) -> None:
    """u · total may round to 0 or to the total; a positive row is drawn all the same."""
    weights = np.zeros(40)
    weights[[5, 33]] = tiny
    tree = SumTree(weights)
    for u in (0.0, 0.3, 0.5, 0.7, 1.0 - 2.0**-53):
        assert tree.draw(u) in (5, 33)
    tree.set(5, 0.0)
    assert tree.draw(0.0) == 33


def test_rebuild_after_writing_to_the_weights() -> None:
    tree = SumTree(np.zeros(20))
    assert tree.draw(0.5) == -1
    tree.weights[7] = 2.0
    tree.rebuild()
    assert tree.total == 2.0
    assert tree.draw(0.5) == 7


def test_scales_of_the_lemma() -> None:
    """c_i² = 1/L_i + v_i/(nλ), r_i = nλ/(nλ + L_i v_i); nothing for rows of weight zero."""
    problem = make_problem("logistic", weights="zeros", lam=0.3)
    a, c = lemma_scales(problem)
    s, v, nlam = problem.sample_weight, problem.row_norms_squared, problem.n * problem.lam
    used = s > 0
    smooth = 0.25 * s[used]
    assert np.allclose(a[used], 1 / smooth, rtol=1e-14)
    assert np.allclose(c[used] ** 2, 1 / smooth + v[used] / nlam, rtol=1e-14)
    assert np.allclose(safe_ratios(problem)[used], nlam / (nlam + smooth * v[used]), rtol=1e-14)
    assert not a[~used].any()
    assert not c[~used].any()
    assert smallest_safe_ratio(problem) == pytest.approx(safe_ratios(problem)[used].min())
