"""Numbers from traces, names of methods, and the rules of the verdicts."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest

import dualfree as df
from dualfree.reproduce.claims.verdicts import axis_verdict, over_axes, tally
from dualfree.reproduce.figures import reflected_density
from dualfree.reproduce.measures import common_target, curve
from dualfree.reproduce.plan import FIGURE_1, Method, Plan, Strength
from dualfree.reproduce.style import look
from dualfree.reproduce.theory import Potential
from dualfree.sampling import optimal_probabilities, theta


def frame(*gaps: list[float]) -> pandas.DataFrame:
    parts = [
        pandas.DataFrame(
            {
                "epoch": range(len(g)),
                "passes": 2.0 * np.arange(len(g)),
                "seconds": 0.1 * np.arange(len(g)),
                "relative_gap": g,
            }
        ).assign(seed=seed, status="converged")
        for seed, g in enumerate(gaps)
    ]
    return pandas.concat(parts)


def test_reach_is_interpolated_on_a_log_scale() -> None:
    one = curve(frame([1.0, 1e-2, 1e-4]))
    assert one.reach(1e-3, "epoch") == pytest.approx(1.5)
    assert one.reach(1e-3, "passes") == pytest.approx(3.0)
    assert one.reach(1e-2, "seconds") == pytest.approx(0.1)
    assert math.isinf(one.reach(1e-5, "epoch"))


def test_a_gap_that_rises_again_does_not_undo_what_was_reached() -> None:
    assert curve(frame([1.0, 1e-3, 1.0, 1e-4])).reach(1e-2, "epoch") == pytest.approx(2 / 3)


def test_median_and_range_with_a_run_that_ended_early() -> None:
    three = curve(frame([1.0, 0.1, 0.01], [1.0, 0.2], [1.0, 0.3, 0.03]))
    np.testing.assert_allclose(three.gap, [1.0, 0.2, 0.03])
    np.testing.assert_allclose(three.low, [1.0, 0.1, 0.01])
    np.testing.assert_allclose(three.high, [1.0, 0.3, 0.2])


def test_common_target_is_the_smallest_that_both_reach() -> None:
    fast, slow = curve(frame([1.0, 1e-6])), curve(frame([1.0, 5e-3]))
    assert common_target(fast, slow) == pytest.approx(1e-2)
    assert common_target(fast, curve(frame([1.0, 0.5]))) is None


@pytest.mark.parametrize(
    ("factors", "verdict"),
    [
        ([2.0, 1.2, 1.0], "holds"),
        ([2.0, 2.0, 2.0, 0.5], "holds mostly"),
        ([2.0, 0.5], "holds in part"),
        ([0.5, 0.9, 1.0], "does not hold"),
        ([], "not tested"),
    ],
)
def test_verdict_of_one_axis(factors: list[float], verdict: str) -> None:
    assert axis_verdict(tally(factors)) == verdict


@pytest.mark.parametrize(
    ("verdicts", "phrase"),
    [
        (("holds", "holds", "holds"), "holds"),
        (("holds", "does not hold", "does not hold"), "holds in epochs only"),
        (("holds mostly", "does not hold", "does not hold"), "holds mostly in epochs only"),
        (("does not hold",) * 3, "does not hold"),
        (("holds", "holds in part", "does not hold"), "holds in epochs, holds in part in passes, not in seconds"),
    ],
)
def test_verdict_over_axes(verdicts: tuple[str, ...], phrase: str) -> None:
    assert over_axes(dict(zip(("epoch", "passes", "seconds"), verdicts, strict=True))) == phrase


def test_density_integrates_to_the_share_inside() -> None:
    values = np.abs(np.random.default_rng(0).normal(size=20_000))
    x, density = reflected_density(values, 6.0)
    assert np.nansum(density) * (x[1] - x[0]) == pytest.approx(1.0, abs=0.01)
    assert density[0] == pytest.approx(np.sqrt(2 / np.pi), rel=0.05)  # nothing is lost beyond 0


def test_methods_and_strengths_are_read_or_refused_in_a_sentence() -> None:
    assert Method.parse("prox-sdca:order=uniform") == Method("prox-sdca", (("order", "uniform"),))
    with pytest.raises(ValueError, match="Did you mean 'dfsdca'"):
        Method.parse("dfsdc")
    with pytest.raises(ValueError, match="It takes no options"):
        Method.parse("dfsdca:shrink=2")
    with pytest.raises(ValueError, match="It takes shrink, step"):
        Method.parse("adfsdca+:shrnk=2")
    with pytest.raises(ValueError, match=r"0\.1/n, got 'a'"):
        Strength.parse("a")
    with pytest.raises(ValueError, match="> 0"):
        Strength.parse("-1/n")


def test_each_method_of_figure_1_has_its_own_colour_line_and_marker() -> None:
    looks = [look(method.key) for method in FIGURE_1]
    assert (
        len({pen.colour for pen in looks})
        == len({pen.label for pen in looks})
        == len({pen.marker for pen in looks})
        == 6
    )
    assert look("adfsdca+:step=safe:shrink=2.0").colour == look("adfsdca+:step=safe").colour
    assert look("prox-sdca") == look("prox-sdca:order=permutation")


def test_the_name_of_a_run_changes_with_what_its_outcome_depends_on() -> None:
    runs = Plan.of("quick").runs()
    assert len({run.file_stem("f") for run in runs}) == len(runs)
    assert runs[0].file_stem("f") != runs[0].file_stem("g")


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_expected_potential_is_the_mean_over_all_coordinates(loss: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 4)) * rng.uniform(0.3, 3.0, size=(12, 1))
    problem = df.Problem(X, np.where(X[:, 0] > 0, 1.0, -1.0), loss=loss, lam=0.1)
    potential = Potential(problem)
    alpha = 0.3 * problem.y * rng.random(12)
    w = problem.weights_of(alpha)
    kappa = problem.residuals(w, alpha)
    p = optimal_probabilities(problem, kappa)
    step = theta(problem, kappa, p)
    by_hand = 0.0
    for i in range(12):
        moved = alpha.copy()
        moved[i] -= step / p[i] * kappa[i]
        by_hand += p[i] * potential(moved, problem.weights_of(moved))
    assert potential.expected_next(alpha, w, kappa, p, step) == pytest.approx(by_hand, rel=1e-10)
    assert by_hand <= (1 - step) * potential(alpha, w)
