"""Parts of the rows to begin with: what is drawn, and what it stands for."""

from __future__ import annotations

import numpy as np
import pytest

import dualfree as df
from dualfree.solvers.newton import Newton
from dualfree.solvers.sample import drawn_evenly, part_of


@pytest.mark.parametrize(("n", "size"), [(10, 10), (10, 7), (10, 4), (1000, 333), (9, 1)])
def test_a_draw_reaches_every_row_and_none_twice(n: int, size: int) -> None:
    rng = np.random.default_rng(0)
    seen = np.zeros(n, dtype=int)
    for _ in range(200):
        rows = drawn_evenly(n, size, rng)
        assert rows.size == size
        assert (np.diff(rows) > 0).all()
        seen[rows] += 1
    assert seen.min() > 0


def _with_rare_class(share: float, n: int = 20_000, fit_intercept: bool = False, weights: bool = False) -> df.Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30))
    X[:, 0] = 1.0
    score = 2.0 * X[:, 1:] @ rng.normal(size=29) / np.sqrt(29) + rng.logistic(size=n)
    sample_weight = rng.uniform(0.5, 2.0, size=n) if weights else None
    labels = score > np.quantile(score, 1.0 - share)
    return df.Problem(X, labels, lam=1e-6, sample_weight=sample_weight, fit_intercept=fit_intercept)


@pytest.mark.parametrize("share", [0.002, 0.05, 0.2, 0.85, 0.99])
def test_more_is_drawn_of_a_rare_class_and_stands_for_less(share: float) -> None:
    problem = _with_rare_class(share)
    part = part_of(problem, 2500, np.random.default_rng(1))
    positive, drawn = problem.y > 0, part.y > 0
    rare, drawn_rare = (positive, drawn) if share < 0.5 else (~positive, ~drawn)
    wanted = (0.2 + 0.8 * rare.mean()) * 2500
    if wanted < rare.sum():
        assert part.n == 2500
        assert drawn_rare.sum() == pytest.approx(wanted, rel=0.1)
    else:
        assert drawn_rare.sum() == rare.sum()
        assert 0.7 * 2500 < part.n < 2500
    # sums over the part estimate means over all rows: exactly so for what is the same for all rows of a class
    for of_all, of_part in ((rare, drawn_rare), (~rare, ~drawn_rare)):
        assert part.sample_weight[of_part].sum() / part.n == pytest.approx(of_all.mean(), rel=1e-12)
    assert part.at_zero == pytest.approx(problem.at_zero, rel=1e-12)
    assert not part.unit_weights


def test_weights_that_were_given_are_kept() -> None:
    problem = _with_rare_class(0.05, weights=True)
    parts = [part_of(problem, 2500, np.random.default_rng(seed)) for seed in range(40)]
    assert np.mean([part.at_zero for part in parts]) == pytest.approx(problem.at_zero, rel=2e-3)
    assert all(np.ptp(part.sample_weight[part.y > 0]) > 0.0 for part in parts)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_where_no_class_is_rare_all_rows_count_alike(share: float) -> None:
    problem = _with_rare_class(share)
    part = part_of(problem, 2500, np.random.default_rng(1))
    assert part.n == 2500
    assert part.unit_weights
    assert (part.sample_weight == 1.0).all()


def test_numbers_have_no_classes() -> None:
    rng = np.random.default_rng(0)
    problem = df.Problem(rng.normal(size=(8000, 5)), rng.normal(size=8000), loss="squared", lam=1e-3)
    assert (part_of(problem, 1000, rng).sample_weight == 1.0).all()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_optimum_of_a_part_is_nearer_with_more_of_a_rare_class(fit_intercept: bool) -> None:
    """The reason for it all: P at the optimum of the part."""
    problem = _with_rare_class(0.02, fit_intercept=fit_intercept)
    rng = np.random.default_rng(2)
    best = df.solve(problem, tol=1e-10, random_state=0).certificate.primal

    def excess(part: df.Problem) -> float:
        newton = Newton(part, rng)
        newton.start(np.zeros(part.n), 0.0)
        newton.begins_on_sample = False
        while not newton.decrement < 1e-8:
            newton.visit(part.n)
        return problem.primal(newton.w, newton.intercept) - best

    even, more = (
        np.mean([excess(draw()) for _ in range(8)])
        for draw in (lambda: problem.subset(drawn_evenly(problem.n, 2500, rng)), lambda: part_of(problem, 2500, rng))
    )
    assert 0.0 < more < 0.5 * even
