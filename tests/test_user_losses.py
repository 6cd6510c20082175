"""Losses of a user's own: the least that is needed, everything that helps, and what the battery finds wrong."""

from __future__ import annotations

import math
import pickle
import warnings
from typing import Any

import numba
import numpy as np
import pytest
from problems import SOLVERS, make_problem
from reference import Reference

import dualfree as df
from dualfree.losses import Huber, Loss, SmoothedHinge
from dualfree.solvers.prox_sdca import ProxSdca
from dualfree.testing import check_loss, check_solver

# A loss of a user's own is compiled anew in each process: all tests of them in one.
pytestmark = pytest.mark.xdist_group("losses of a user's own")


class LogCosh(Loss):
    """The least: value, derivative, smoothness. Less a constant, with which P(0) may be negative."""

    name, task, smoothness = "log_cosh", "regression", 1.0

    def __init__(self, less: float = 0.0) -> None:
        super().__init__(less)

    @staticmethod
    def value(z: float, y: float, less: float) -> float:
        r = abs(z - y)
        return r + math.log1p(math.exp(-2.0 * r)) - math.log(2.0) - less

    @staticmethod
    def derivative(z: float, y: float, less: float) -> float:
        return math.tanh(z - y)


class OwnHuber(Loss):
    """Everything, with parameters: Huber's loss less a constant, in plain Python. One function is compiled already."""

    name, task, smoothness = "huber", "regression", 1.0

    def __init__(self, delta: float = 1.0, less: float = 0.0) -> None:
        super().__init__(delta, less)

    @staticmethod
    def value(z: float, y: float, delta: float, less: float) -> float:
        r = abs(z - y)
        return (0.5 * r * r if r <= delta else delta * (r - 0.5 * delta)) - less

    @staticmethod
    @numba.njit
    def derivative(z: float, y: float, delta: float, less: float) -> float:
        return min(delta, max(-delta, z - y))

    @staticmethod
    def curvature(z: float, y: float, delta: float, less: float) -> float:
        return 1.0 if abs(z - y) <= delta else 0.0

    @staticmethod
    def conjugate(a: float, y: float, delta: float, less: float) -> float:
        return 0.5 * a * a - a * y + less if abs(a) <= delta else math.inf

    @staticmethod
    def dual_bounds(y: float, delta: float, less: float) -> tuple[float, float]:
        return -delta, delta

    @staticmethod
    def dual_step(z: float, y: float, a: float, q: float, delta: float, less: float) -> float:
        return min(delta, max(-delta, a - (z - y + a) / (1.0 + q)))


class Steeper(SmoothedHinge):
    """A built-in loss with one function changed: the slope beyond the corner is 2. It needs a search for its dual step."""

    name, smoothness, lipschitz = "steeper", 2.0, 2.0
    conjugate = dual_bounds = dual_step = fenchel_young = curvature = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(1.0)
        self.smoothness = 2.0

    @staticmethod
    def value(z: float, y: float, gamma: float) -> float:
        e = 1.0 - y * z
        return 0.0 if e <= 0.0 else (2.0 * (e - 0.5 * gamma) if e >= gamma else e * e / gamma)

    @staticmethod
    def derivative(z: float, y: float, gamma: float) -> float:
        e = 1.0 - y * z
        return 0.0 if e <= 0.0 else (-2.0 * y if e >= gamma else -2.0 * y * e / gamma)


@pytest.mark.parametrize("loss", [LogCosh(), OwnHuber(0.5)], ids=repr)
def test_battery(loss: Loss) -> None:
    check_loss(loss)


def test_the_least_is_enough_for_every_solver() -> None:
    problem = make_problem(LogCosh(), weights="random", fit_intercept=True)
    results = [df.solve(problem, solver, tol=1e-8, max_epochs=20_000, random_state=0) for solver in (*SOLVERS, "auto")]
    for result in results:
        assert result.status is df.Status.CONVERGED
        assert result.certificate.source == "gradient"
        for other in results:
            assert other.certificate.dual <= result.certificate.primal
    with pytest.raises(TypeError, match="defines no conjugate"):
        problem.dual(np.zeros(problem.n))


def test_a_user_s_huber_is_huber_s() -> None:
    mine = make_problem(OwnHuber(0.5), n=15, d=3, weights="random", fit_intercept=True)
    right = make_problem(Huber(0.5), n=15, d=3, weights="random", fit_intercept=True)
    assert mine.at_zero == pytest.approx(right.at_zero, rel=1e-15)
    reference = Reference(right)
    result = df.solve(mine, "prox-sdca", tol=1e-10, max_epochs=5000, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert 0 <= reference.suboptimality(result.w, result.intercept) <= result.certificate.gap
    alpha = df.solve(right, tol=1e-10, random_state=0).alpha
    assert mine.dual(alpha) == pytest.approx(right.dual(alpha), rel=1e-12)


def test_parameters_reach_the_functions() -> None:
    """Two parameters of one class: one compilation, two optima."""
    narrow, wide = (make_problem(OwnHuber(delta), lam=0.1) for delta in (0.1, 10.0))
    squared = df.solve(make_problem("squared", lam=0.1), tol=1e-10, random_state=0)
    assert np.allclose(df.solve(wide, "prox-sdca", tol=1e-10, random_state=0).w, squared.w, atol=1e-4)
    assert not np.allclose(df.solve(narrow, "prox-sdca", tol=1e-10, random_state=0).w, squared.w, atol=1e-2)


def test_a_changed_function_of_a_built_in_loss_counts() -> None:
    assert Steeper().builtin_id is None
    problem = make_problem(Steeper())
    assert problem.at_zero == pytest.approx(2 * make_problem("smoothed_hinge").at_zero)
    # twice the loss is the loss with weights of 2
    plain = make_problem("smoothed_hinge")
    doubled = df.Problem(plain.X, plain.y, "smoothed_hinge", plain.lam, sample_weight=np.full(plain.n, 2.0))
    left, right = (df.solve(p, "prox-sdca", tol=1e-10, random_state=0) for p in (problem, doubled))
    assert np.allclose(left.w, right.w, atol=1e-4)


def test_no_warnings_and_pickling() -> None:
    problem = make_problem(LogCosh())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = df.solve(pickle.loads(pickle.dumps(problem)), "dfsdca", tol=1e-3, random_state=0)
    assert result.status is df.Status.CONVERGED


# --- contracts that are not kept --------------------------------------------------------------------------------------


def loss_class(**members: Any) -> type[Loss]:
    """A loss like the squared one, with members replaced, added or (None) taken away."""
    base: dict[str, Any] = {
        "name": "mine",
        "smoothness": 1.0,
        "value": staticmethod(lambda z, y: 0.5 * (z - y) ** 2),
        "derivative": staticmethod(lambda z, y: z - y),
    }
    base.update(members)
    return type("Mine", (Loss,), {name: member for name, member in base.items() if member is not None})


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"value": None}, "Mine must define value"),
        ({"derivative": None}, "Mine must define derivative"),
        ({"smoothness": None}, "must define smoothness, a positive number; got None"),
        ({"smoothness": -1.0}, "smoothness, a positive number; got -1.0"),
        ({"smoothness": "1"}, "smoothness, a positive number; got '1'"),
        ({"task": "ranking"}, "task must be 'classification' or 'regression', got 'ranking'"),
        ({"smoothness": math.inf}, "not smooth: it must be convex and define conjugate"),
    ],
)
def test_contracts_that_are_not_kept(members: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        loss_class(**members)()


def test_functions_of_the_wrong_number_of_arguments() -> None:
    loss = loss_class(value=staticmethod(lambda z: z))()
    with pytest.raises(TypeError, match="value must be a static function of 2 numbers, it takes 1"):
        make_problem(loss).primal(np.zeros(4))


def test_average_convex_losses_and_exact_steps() -> None:
    loss = loss_class(convex=False)()
    problem = make_problem(loss)
    with pytest.raises(ValueError, match=r"'prox-sdca' needs a convex loss, and Mine\(\) is only average-convex"):
        df.solve(problem, "prox-sdca")
    with pytest.raises(ValueError, match="step='exact' needs a convex loss"):
        df.solve(problem, "adfsdca+", step="exact")


def test_tol_needs_a_positive_objective_at_zero() -> None:
    loss = loss_class(value=staticmethod(lambda z, y: 0.5 * (z - y) ** 2 - 1e3))()
    with pytest.raises(ValueError, match=r"tol is relative to P\(0\), which is -"):
        df.solve(make_problem(loss))


FULL = {
    "curvature": staticmethod(lambda z, y: 1.0),
    "conjugate": staticmethod(lambda a, y: 0.5 * a * a - a * y),
    "dual_step": staticmethod(lambda z, y, a, q: a - (z - y + a) / (1.0 + q)),
    "fenchel_young": staticmethod(lambda z, y, a: 0.5 * (z - y + a) ** 2),
}

WRONG = [
    ({"derivative": staticmethod(lambda z, y: 1.01 * (z - y))}, r"derivative\(.*\) is .*, the slope of value there is"),
    ({"smoothness": 0.9}, "smoothness is 0.9, but derivative"),
    ({"lipschitz": 3.0}, "lipschitz is 3, but derivative"),
    (
        {
            "value": staticmethod(lambda z, y: math.cos(z - y)),
            "derivative": staticmethod(lambda z, y: -math.sin(z - y)),
        },
        "decreases .* not convex. Set convex = False",
    ),
    ({"curvature": staticmethod(lambda z, y: 0.9)}, r"curvature\(.*\) is 0.9, the slope of derivative"),
    ({"value": staticmethod(lambda z, y: math.exp(abs(z - y)) / 1e30)}, "slope of value"),
    ({**FULL, "fenchel_young": staticmethod(lambda z, y, a: 0.6 * (z - y + a) ** 2)}, "but value . conjugate . a z"),
    ({"conjugate": staticmethod(lambda a, y: 0.4 * a * a - a * y)}, "value . conjugate . a z is negative"),
    ({"conjugate": staticmethod(lambda a, y: 0.5 * a * a - a * y + 0.1)}, "not 0"),
    ({**FULL, "dual_bounds": staticmethod(lambda y: (-1.0, 1.0))}, "lies outside dual_bounds"),
    ({**FULL, "dual_step": staticmethod(lambda z, y, a, q: a - (z - y + a) / (1.0 + 1.1 * q))}, "dual_step"),
    ({"value": staticmethod(lambda z, y: 0.5 * (z - undefined) ** 2)}, "cannot be compiled"),  # type: ignore[name-defined] # noqa: F821
]


@pytest.mark.parametrize(("members", "words"), WRONG)
def test_the_battery_finds_what_is_wrong(members: dict[str, Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_loss(loss_class(**members)())


# --- solvers ----------------------------------------------------------------------------------------------------------


class Lazy(ProxSdca):
    """Does nothing."""

    name = "lazy"

    def visit(self, count: int) -> None:
        self.rows_touched += count


class Moody(ProxSdca):
    """Looks at another source of randomness."""

    name = "moody"

    def begin_epoch(self) -> None:
        super().begin_epoch()
        np.random.default_rng().shuffle(self.permutation)


class Careless(ProxSdca):
    """Takes any option."""

    name = "careless"

    @classmethod
    def check(cls, problem: df.Problem, options: dict[str, Any]) -> None:
        pass


@pytest.mark.parametrize(
    ("solver", "words"),
    [(Lazy, "lazy on .* did not converge"), (Moody, "different bits"), (Careless, "an unknown option is accepted")],
)
def test_the_battery_finds_what_is_wrong_with_a_solver(solver: type[Any], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_solver(solver)


def test_a_negative_loss_keeps_its_dual_point() -> None:
    """A loss that is negative at its least point: α = 0 says nothing of it."""
    problem = make_problem(OwnHuber(less=2.0), n=60, lam=1e-3)
    result = df.solve(problem, tol=1e-9, random_state=0)
    assert "newton" in {entry.phase for entry in result.trace}
    assert result.certificate.primal < 0.0
    assert result.certificate.gap < 1e-8
    assert problem.primal(result.w) - problem.dual(result.alpha) < 1e-8


def test_all_digits_of_a_loss_that_is_negative() -> None:
    problem = make_problem(LogCosh(less=10.0), n=80, d=5, lam=1e-3)
    other = make_problem(LogCosh(), n=80, d=5, lam=1e-3)
    assert problem.at_zero < 0.0 < other.at_zero
    result = df.solve(problem, tol=0.0, random_state=0)
    expected = df.solve(other, tol=1e-12, random_state=0)
    assert np.allclose(result.w, expected.w, atol=1e-6)
    assert result.certificate.gap <= 1e-10
