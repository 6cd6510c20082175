"""What a Newton step says of the gap: the sum of FY at the point reached, against the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import make_problem
from reference import conjugate, loss_terms, mp

import dualfree as df
from dualfree.solvers.line_search import full_step_is_short, least_on_ray, move_along, root_of_slope
from dualfree.solvers.newton import Newton
from dualfree.team import SAID


@pytest.mark.parametrize("weights", ["none", "zeros"])
@pytest.mark.parametrize("loss", ["squared_hinge", "squared_epsilon_insensitive", "huber", "smoothed_hinge"])
def test_rows_that_were_flat(loss: str, weights: str) -> None:
    """Some stay where the loss is flat, or a line, and others do not: the sum says what the loss and its conjugate say."""
    problem = make_problem(loss, n=700, d=4, weights=weights)
    rng = np.random.default_rng(0)
    y, s = problem.y, problem.sample_weight
    away = {"squared_hinge": 1.2 * y, "squared_epsilon_insensitive": y, "huber": y + 1.5, "smoothed_hinge": 1.2 * y}
    z, step, t = away[loss], rng.normal(size=700), 0.7
    moved, alpha, said = z.copy(), step.copy(), np.zeros((1, SAID))
    given = problem.loss.compiled, moved, alpha, t, 0.0, 0.2, y, s, problem.row_norms_squared
    move_along(0, np.array([0, 700]), said, *given)
    assert np.allclose(moved, z + t * step)
    p = mp.mpf(problem.loss.compiled[1])
    terms = []
    for at, label, dual, weight in zip(moved + t * 0.2, y, alpha, s, strict=True):
        if weight > 0:
            u, v, c = (mp.mpf(float(number)) for number in (at, label, dual / weight))
            terms.append(float(weight * (loss_terms(loss, p, u, v)[0] + conjugate(loss, p, c, v) + c * u)))
    assert said[0, 0] == pytest.approx(sum(terms), rel=1e-10)
    assert 50 < sum(term > 1e-12 for term in terms) < 0.9 * len(terms)


@pytest.mark.parametrize("length", [1e-3, 0.1, 1.0, 30.0, 1e4])
def test_the_least_on_a_ray(length: float) -> None:
    """P falls steeply at first and rises slowly for long: at t = 1 it may be far above P(0), with a slope that looks small."""

    def value(t: float) -> float:
        u = t * length
        return math.exp(-20.0 * u) + 0.4 * u

    def slope(t: float) -> float:
        u = t * length
        return length * (-20.0 * math.exp(-20.0 * u) + 0.4)

    best = min(value(u / length) for u in np.linspace(0.0, 1.0, 10_001))
    found = least_on_ray(slope, slope(0.0), 0.02)
    assert value(found) <= best + 0.02


def test_a_ray_along_which_nothing_falls() -> None:
    assert least_on_ray(lambda t: 1.0 + t, 1.0, 0.02) == 0.0


@pytest.mark.parametrize("farther", [1.05, 1.3, 2.0, 5.0, 30.0, 1e4])
def test_a_full_step_that_is_short_goes_on(farther: float) -> None:
    """The least point is `farther` away, where the curvature has become less and less: log-cosh, say."""

    def slope(t: float) -> float:
        return math.tanh(2.0 * (t / farther - 1.0))

    here = slope(0.0)
    found = root_of_slope(slope, here, is_short=True)
    assert abs(slope(found)) <= 0.1 * abs(here)
    assert found >= 1.0
    if slope(1.0) >= 0.9 * here:  # otherwise a full step will do
        assert root_of_slope(slope, here) == 1.0


def test_the_logistic_loss_is_most_curved_at_zero() -> None:
    """There, and only there, P is known to lie below its quadratic model along any ray."""
    zero, other = np.zeros(3), np.array([0.0, 1e-3, 0.0])
    logistic = df.Problem(np.eye(3), [1, 0, 1], "logistic", 0.1).loss
    assert full_step_is_short(logistic, zero, 0.0)
    assert not full_step_is_short(logistic, other, 0.0)
    assert not full_step_is_short(logistic, zero, 0.1)
    hinge = df.Problem(np.eye(3), [1, 0, 1], "squared_hinge", 0.1).loss
    assert not full_step_is_short(hinge, zero, 0.0)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_the_first_step_from_zero_leaves_little_of_the_slope(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With labels that are nearly explained a full step from zero would be half as long as it should."""
    monkeypatch.setattr("dualfree.solvers.small_step.suits", lambda problem: form == "dense")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    problem = df.Problem(X, X @ rng.normal(size=5) + 0.1 * rng.normal(size=600) > 0, "logistic", 1e-5)
    steps = Newton(problem, rng)
    steps.start(np.zeros(600), 0.0)
    steps.begins_on_sample = False
    first = problem.gradient(np.zeros(5))
    steps.visit(600)
    assert steps.is_small == (form == "dense")
    along = steps.w / np.linalg.norm(steps.w)
    assert abs(problem.gradient(steps.w) @ along) <= 0.11 * abs(first @ along)
    assert problem.gradient(steps.w / 1.5) @ along < -0.11 * abs(first @ along)  # it went that much farther
