"""What a Newton step says of the gap: the sum of FY at the point reached, against the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import make_problem
from reference import conjugate, loss_terms, mp

from dualfree.solvers.line_search import least_on_ray, move_along
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
