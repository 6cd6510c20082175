"""Newton steps in one call are those that `newton.py` makes of its pieces, on any number of threads; tiles sum what rows do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from problems import make_problem

import dualfree as df
from dualfree import team as team_module
from dualfree._jit import kernel
from dualfree.solvers import hessian, small_step
from dualfree.solvers.base import RandomSource
from dualfree.solvers.newton import WORTH, Newton
from dualfree.solvers.small_step import _divide
from dualfree.team import Team


def table(form: str, n: int = 700, d: int = 9) -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d))
    if form == "dense":
        return X
    if form == "float32":
        return X.astype(np.float32)
    kept = rng.random(X.shape) < 0.3
    return scipy.sparse.csr_matrix(np.where(kept, 1.0 if form == "ones" else X, 0.0))


def steps_of(problem: df.Problem, small: bool, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    with monkeypatch.context() as patch:
        if not small:
            patch.setattr(small_step, "suits", lambda _: False)
        newton = Newton(problem, RandomSource(0))
        newton.start(np.zeros(problem.n), 0.0)
        assert newton.is_small == small
        seen = []
        for _ in range(6):
            newton.visit(problem.n)
            if newton.dual_follows:
                newton._form_dual()
            alpha, w, b = newton.candidate()
            seen.append((w.copy(), b, alpha.copy(), newton.decrement, newton.gap_estimate, newton.rows_touched))
    return seen


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "huber"])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse", "ones"])
def test_two_calls_make_the_same_steps(
    form: str, loss: str, weights: bool, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = table(form)
    rng = np.random.default_rng(1)
    score = np.asarray(X @ rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[0])) + 1.0
    s = np.where(rng.random(X.shape[0]) < 0.1, 0.0, rng.random(X.shape[0])) if weights else None
    y = score if loss in ("squared", "huber") else score > 0
    problem = df.Problem(X, y, loss, 1e-5, sample_weight=s, fit_intercept=fit_intercept)
    small, pieces = (steps_of(problem, kind, monkeypatch) for kind in (True, False))
    for (w, b, alpha, decrement, gap, passes), (w2, b2, alpha2, decrement2, gap2, passes2) in zip(
        small, pieces, strict=True
    ):
        np.testing.assert_allclose(w, w2, rtol=0, atol=1e-7 * np.abs(w2).max())
        assert b == pytest.approx(b2, abs=1e-7 * (1.0 + abs(b2)))
        np.testing.assert_allclose(alpha, alpha2, rtol=0, atol=1e-7 * (1.0 + np.abs(alpha2).max()))
        assert decrement == pytest.approx(decrement2, rel=1e-4, abs=1e-9 * problem.at_zero)
        assert gap == pytest.approx(gap2, rel=1e-4, abs=1e-9 * problem.at_zero)
        assert passes == passes2


def test_who_gets_small_steps() -> None:
    assert small_step.suits(make_problem("logistic", n=200, d=12, lam=1e-3))
    wide = df.Problem(np.random.default_rng(0).normal(size=(300, 170)), np.arange(300) % 2, lam=1e-3)
    assert not small_step.suits(wide)  # BLAS forms its Hessian
    sparse = scipy.sparse.random(400, 140, 0.02, random_state=0, format="csr")
    assert not small_step.suits(df.Problem(sparse, np.arange(400) % 2, lam=1e-3))  # LAPACK factorises it
    assert small_step.suits(df.Problem(sparse[:, :100], np.arange(400) % 2, lam=1e-3))


def test_a_factor_is_not_kept_where_steps_are_quick() -> None:
    """Both Hessians cost more than three products; but the smaller one no more than the calls for those."""
    rng = np.random.default_rng(0)
    for n, small in ((1_000, True), (10_000, False)):
        X = rng.normal(size=(n, 80))
        problem = df.Problem(X, X[:, 0] > 0.3 * rng.normal(size=n), lam=1e-3)
        assert hessian.in_products(problem) > WORTH[problem.kind]
        newton = Newton(problem, RandomSource(0))
        newton.start(np.zeros(n), 0.0)
        assert newton.is_small == small
        assert newton.keeps_factor != small
        newton.visit(n)
        newton.visit(n)
        assert (newton.factor is None) == small


@pytest.mark.parametrize(
    ("form", "in_products", "keeps", "dear"),
    [
        ("dense", 2.9, False, False),
        ("dense", 3.1, True, False),
        ("dense", 25.1, True, True),
        ("ones", 9.9, False, False),
        ("ones", 24.9, True, False),
        ("ones", 25.1, True, True),
        ("sparse", 3.9, False, False),
        ("sparse", 9.9, True, False),
        ("sparse", 10.1, True, True),
    ],
)
def test_what_a_factorisation_may_cost(
    form: str, in_products: float, keeps: bool, dear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In products, which are dearer where rows have values: there conjugate gradients are tried first from ten on."""
    X = table(form)
    problem = df.Problem(X, np.arange(X.shape[0]) % 2, lam=1e-3)
    monkeypatch.setattr(hessian, "in_products", lambda _: in_products)
    monkeypatch.setattr("dualfree.solvers.newton._QUICK_SOLUTION", 0.0)
    newton = Newton(problem, RandomSource(0))
    newton.start(np.zeros(problem.n), 0.0)
    assert (newton.keeps_factor, newton.dear) == (keeps, dear)


def test_columns_that_depend_on_each_other() -> None:
    """The Hessian is singular but for a penalty that rounding takes away: something is added to it, and the step is finite."""
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 2)), 3, axis=1)
    problem = df.Problem(X, X[:, 0] > 0.1, lam=1e-20)
    newton = Newton(problem, RandomSource(0))
    newton.start(np.zeros(200), 0.0)
    assert newton.is_small
    for _ in range(3):
        newton.visit(200)
        assert np.isfinite(newton.w).all()
    assert problem.primal(newton.w) < 0.5 * problem.at_zero


@kernel
def _solved(matrix: Any, right: Any, out: Any) -> None:
    _divide(matrix, right, out)


@pytest.mark.parametrize("size", [1, 2, 5, 37])
def test_the_factorisation_solves(size: int) -> None:
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, 2 * size))
    matrix, right, out = root @ root.T, rng.normal(size=size), np.empty(size)
    upper = np.triu(matrix) + np.tril(np.full((size, size), np.nan), -1)  # what is below must not be read
    _solved(upper, right, out)
    np.testing.assert_allclose(matrix @ out, right, rtol=0, atol=1e-9)
    indefinite = np.full((2, 2), 1.0 + 1e-15)
    _solved(indefinite, np.ones(2), out2 := np.empty(2))
    assert np.isfinite(out2).all()


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 8, 30, 64, 99])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 3000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tiles_sum_what_rows_do(n: int, d: int, dtype: Any) -> None:
    """Whatever is left over of pairs and fours of columns, and of the last tile."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    y = rng.normal(size=n)
    s = rng.random(n) + 0.1
    for weights in (None, s):
        problem = df.Problem(X, y, "squared", 1e-3, sample_weight=weights, fit_intercept=True)
        z, out = rng.normal(size=n), np.empty(n)
        gradient, total = hessian.derivatives(Team(problem), z, 0.5, out, True)
        used = problem.sample_weight
        longer = np.column_stack([X.astype(float), np.ones(n)])
        np.testing.assert_array_equal(out, used)
        np.testing.assert_allclose(gradient, longer.T @ (used * (z + 0.5 - y)), rtol=0, atol=1e-10 * n)
        expected = np.triu((longer * used[:, None]).T @ longer)
        np.testing.assert_allclose(np.triu(total), expected, rtol=0, atol=1e-10 * n)
        np.testing.assert_allclose(
            np.triu(hessian.curvature_sum(Team(problem), used)), expected, rtol=0, atol=1e-10 * n
        )


@pytest.mark.parametrize("not_flat", [0.0, 0.01, 0.3, 0.7, 0.8, 1.0])
@pytest.mark.parametrize(("n", "d"), [(20, 3), (5000, 3), (5000, 40), (900, 99)])
def test_tiles_without_flat_rows(n: int, d: int, not_flat: float) -> None:
    """Rows with a slope wait until they fill a tile, those of other tiles between them; at the end some are left over."""
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    s = rng.random(n) + 0.1
    problem = df.Problem(X, y, "squared_hinge", 1e-3, sample_weight=s, fit_intercept=True)
    assert hessian.is_narrow(problem)
    share = np.repeat([not_flat, 1.0, 0.1], -(-n // 3))[:n] if not_flat == 0.7 else np.full(n, not_flat)
    missing = np.where(rng.random(n) < share, rng.random(n), -1.0)  # 1 − y z
    out = np.empty(n)
    gradient, total = hessian.derivatives(Team(problem), y * (1.0 - missing), 0.0, out, True)
    curvatures = np.where(missing > 0.0, s, 0.0)
    longer = np.column_stack([X, np.ones(n)])
    np.testing.assert_array_equal(out, curvatures)
    np.testing.assert_allclose(gradient, longer.T @ (-y * s * np.maximum(missing, 0.0)), rtol=0, atol=1e-12 * n)
    expected = np.triu((longer * curvatures[:, None]).T @ longer)
    np.testing.assert_allclose(np.triu(total), expected, rtol=0, atol=1e-12 * n)


def test_a_curvature_a_hair_below_zero_is_none() -> None:
    """As a user's loss may have it, from a difference of two numbers."""
    X = np.random.default_rng(0).normal(size=(50, 4))
    problem = df.Problem(X, X[:, 0], "squared", 1e-3)
    curvatures = np.ones(50)
    curvatures[7] = 0.0
    without = hessian.curvature_sum(Team(problem), curvatures)
    curvatures[7] = -1e-18
    np.testing.assert_array_equal(np.triu(hessian.curvature_sum(Team(problem), curvatures)), np.triu(without))


@pytest.mark.parametrize("quadratic", [True, False])
def test_no_search_along_a_parabola(quadratic: bool) -> None:
    """A direction twice as long as Newton's, so that a search can be told from none."""
    problem = df.Problem(table("dense"), table("dense")[:, 0] + 1.0, "squared", 1e-3)
    data = problem.rows, problem.loss.compiled, problem.y, problem.sample_weight, problem.row_norms_squared
    point = np.zeros(700), np.zeros(9), np.zeros(700)
    team = Team(problem)
    room, nothing = small_step.room_for(team, 9), (np.empty(0), np.empty((0, 0)))
    assert team.lead(small_step.newton_direction, data, True, problem.lam, point, 0.0, room, nothing) == 0
    room[2][:] *= 2.0
    failed, share, *_ = team.lead(small_step.step_along, data, problem.lam, point, 0.0, room, quadratic, False)
    assert not failed
    assert share == 1.0 if quadratic else abs(share - 0.5) < 0.1


@pytest.mark.parametrize("is_short", [True, False])
def test_a_full_step_that_is_short_goes_on(is_short: bool) -> None:
    """Half of Newton's direction: a full step of it will do, unless more is known."""
    problem = df.Problem(table("dense"), table("dense")[:, 0] + 1.0, "squared", 1e-3)
    data = problem.rows, problem.loss.compiled, problem.y, problem.sample_weight, problem.row_norms_squared
    point = np.zeros(700), np.zeros(9), np.zeros(700)
    team = Team(problem)
    room, nothing = small_step.room_for(team, 9), (np.empty(0), np.empty((0, 0)))
    assert team.lead(small_step.newton_direction, data, True, problem.lam, point, 0.0, room, nothing) == 0
    room[2][:] *= 0.5
    failed, share, *_ = team.lead(small_step.step_along, data, problem.lam, point, 0.0, room, False, is_short)
    assert not failed
    assert abs(share - 2.0) < 0.2 if is_short else share == 1.0


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber"])
def test_several_steps_in_one_call_are_those_of_several_calls(loss: str, fit_intercept: bool) -> None:
    problem = make_problem(loss, n=90, d=6, lam=1e-4, fit_intercept=fit_intercept, weights="random")

    def begun() -> Newton:
        newton = Newton(problem, np.random.default_rng(0))
        newton.start(np.zeros(problem.n), 0.0)
        assert newton.is_small
        return newton

    one_by_one, at_once = begun(), begun()
    at_once.epochs_allowed = 3
    at_once.visit(problem.n)
    for _ in range(at_once.epochs_made):
        one_by_one.visit(problem.n)
        assert one_by_one.epochs_made == 1
    assert at_once.epochs_made > 1
    assert at_once.rows_touched == one_by_one.rows_touched
    assert (at_once.intercept, at_once.decrement) == (one_by_one.intercept, one_by_one.decrement)
    assert at_once.gap_estimate == one_by_one.gap_estimate
    assert np.array_equal(at_once.w, one_by_one.w)
    assert np.array_equal(at_once.alpha, one_by_one.alpha)


def test_steps_in_one_call_end_where_the_gap_or_the_epochs_do() -> None:
    problem = make_problem("logistic", n=90, d=6, lam=1e-4)
    newton = Newton(problem, np.random.default_rng(0))
    newton.target, newton.epochs_allowed = 1e-4 * problem.at_zero, 50
    newton.start(np.zeros(problem.n), 0.0)
    newton.visit(problem.n)
    assert 1 < newton.epochs_made < 50
    assert newton.gap_estimate is not None
    assert newton.gap_estimate <= newton.target
    for most in (1, 2, 3):
        assert df.solve(problem, tol=0.0, max_epochs=most, random_state=0).n_epochs == most
    every = df.solve(problem, tol=1e-9, evaluate_every=1, random_state=0)
    assert [entry.epoch for entry in every.trace] == list(range(every.n_epochs + 1))
    assert np.array_equal(every.w, df.solve(problem, tol=1e-9, random_state=0).w)


@pytest.mark.usefixtures("_small_data_count")
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("form", ["dense", "ones", "values"])
def test_what_the_domain_cuts_off_is_added_up(form: str, size: int) -> None:
    """Rows with positive entries: what is cut off adds up, and the estimate that ends a run of steps knows it."""
    X = abs(table(form, n=400))
    rng = np.random.default_rng(1)
    sums = np.asarray(X.sum(axis=1)).ravel()
    y = sums + 3 * rng.normal(size=400) > np.median(sums)
    problem = df.Problem(X, y, loss="squared_hinge", lam=1e-5)
    for tol in 10.0 ** np.arange(4.0, -4.0, -0.5):
        newton = Newton(problem, RandomSource(0))
        newton.target, newton.epochs_allowed = tol * problem.at_zero, 20
        with Team(problem, size) as newton.team:
            newton.start(np.zeros(problem.n), 0.0)
            newton.primal = np.inf  # P itself would do
            newton.visit(problem.n)
        assert newton.gap_estimate is not None
        assert newton.gap_estimate <= newton.target
        found = df.certify(problem, newton.w, 0.0, newton.alpha)
        assert found.gap == pytest.approx(newton.gap_estimate, rel=1e-6, abs=1e-15)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "smoothed_hinge"])
@pytest.mark.parametrize("form", ["ones", "values"])
def test_a_hessian_by_its_changes(form: str, loss: str, fit_intercept: bool) -> None:
    rng = np.random.default_rng(1)
    X = table(form)
    y = X @ rng.normal(size=9) + rng.normal(size=700)
    y = y if loss == "huber" else np.sign(y)
    problem = df.Problem(X, y, loss, 1e-4, rng.random(700) + 0.1, fit_intercept)
    newton, anew = (Newton(problem, RandomSource(0)) for _ in range(2))
    for each in (newton, anew):
        each.start(np.zeros(problem.n), 0.0)
    assert newton.last_curvatures[0].size == problem.n
    anew.last_curvatures = np.empty(0), np.empty((0, 0))
    for _ in range(6):
        newton.visit(problem.n)
        anew.visit(problem.n)
        assert np.allclose(newton.w, anew.w, rtol=1e-9, atol=1e-12)
        assert newton.intercept == pytest.approx(anew.intercept, rel=1e-9, abs=1e-12)
    curvatures, total = newton.last_curvatures
    rows = np.hstack([X.toarray(), np.ones((700, 1))]) if fit_intercept else X.toarray()
    assert np.allclose(np.triu(total), np.triu((rows.T * curvatures) @ rows), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("d", [1, 2, 7, 33])
def test_normal_equations(d: int, fit_intercept: bool) -> None:
    rng = np.random.default_rng(d)
    X = rng.normal(size=(1500, d)) + 2.0
    y = X[:, 0] + rng.normal(size=1500) + 5.0
    of_targets, direction = np.empty((2, d + fit_intercept))
    products = np.empty((of_targets.size, of_targets.size))
    squares, error = small_step.normal_equations(X, y, 1e-3, of_targets, products, direction)
    rows = np.hstack([X, np.ones((1500, 1))]) if fit_intercept else X
    penalty = np.diag([1e-3] * d + [0.0] * fit_intercept)
    assert np.allclose(of_targets, rows.T @ y, rtol=1e-12)
    assert np.allclose(products, rows.T @ rows, rtol=1e-12)
    assert squares == pytest.approx(y @ y, rel=1e-13)
    assert error < 1e-12
    assert np.allclose(
        direction, np.linalg.solve(rows.T @ rows / 1500 + penalty, rows.T @ y / 1500), rtol=1e-9, atol=1e-10
    )


@pytest.mark.parametrize(
    ("loss", "asked", "alone"), [("squared_hinge", 2, True), ("squared_hinge", 3, False), ("logistic", 2, False)]
)
def test_two_threads_leave_steps_to_one_that_adds_only_what_changed(loss: str, asked: int, alone: bool) -> None:
    X = scipy.sparse.random(60_000, 100, 0.12, format="csr", random_state=0)
    X.data[:] = 1.0
    problem = df.Problem(X, np.arange(60_000) % 2, loss, 1e-3)
    with Team(problem, asked) as team:
        assert team.size == asked
        newton = Newton(problem, RandomSource(0))
        newton.team = team
        newton.start(np.zeros(problem.n), 0.0)
        assert newton.is_small
        assert newton.team_of_steps.size == (1 if alone else asked)
        assert (newton.last_curvatures[0].size > 0) == alone


# --- several threads ------------------------------------------------------------------------------------------------------


@pytest.fixture
def _small_data_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let threads share data that are too small to be worth it."""
    monkeypatch.setattr(team_module, "_LEAST_ENTRIES", 1)


def shared_problem(form: str, loss: str, weights: bool = False, fit_intercept: bool = False) -> df.Problem:
    X = table(form, n=701)
    rng = np.random.default_rng(1)
    score = np.asarray(X @ rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[0])) + 1.0
    s = np.where(rng.random(X.shape[0]) < 0.1, 0.0, rng.random(X.shape[0])) if weights else None
    y = score if loss in ("squared", "huber") else np.where(score > 0, 1.0, -1.0)
    return df.Problem(X, y, loss, 1e-4, sample_weight=s, fit_intercept=fit_intercept)


def steps_of_team(problem: df.Problem, size: int, count: int = 5) -> list[tuple[Any, ...]]:
    newton = Newton(problem, RandomSource(0))
    seen = []
    with Team(problem, size) as newton.team:
        newton.start(np.zeros(problem.n), 0.0)
        assert newton.is_small
        for _ in range(count):
            newton.visit(problem.n)
            state = newton.w, newton.alpha, newton.margins
            scalars = newton.intercept, newton.decrement, newton.gap_estimate, newton.primal
            seen.append((*(each.copy() for each in state), *scalars))
        assert newton.team_of_steps.size == size
    return seen


@pytest.mark.usefixtures("_small_data_count")
@pytest.mark.parametrize(("weights", "fit_intercept"), [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("form", "loss"),
    [(form, loss) for form in ("dense", "float32") for loss in ("logistic", "squared_hinge", "huber")]
    + [("sparse", "logistic"), ("ones", "logistic")],
)
def test_threads_make_the_steps_of_one(form: str, loss: str, weights: bool, fit_intercept: bool) -> None:
    """Sums are rounded otherwise, and nothing else is different; the same number of threads has the same bits."""
    problem = shared_problem(form, loss, weights, fit_intercept)
    alone = steps_of_team(problem, 1)
    for size in (2, 3):
        first, again = steps_of_team(problem, size), steps_of_team(problem, size)
        for one, several, repeated in zip(alone, first, again, strict=True):
            for k, (a, b, c) in enumerate(zip(one, several, repeated, strict=True)):
                close = {"rtol": 1e-6, "atol": 1e-9 * problem.at_zero if k > 3 else 1e-8 * (1.0 + np.abs(a).max())}
                np.testing.assert_allclose(b, a, **close)
                np.testing.assert_array_equal(c, b)


@pytest.mark.usefixtures("_small_data_count")
def test_three_threads_share_sparse_rows_with_flat_parts_of_the_loss() -> None:
    """Two do not: there one that adds only what has changed is as quick."""
    problem = shared_problem("sparse", "squared_hinge", weights=True, fit_intercept=True)
    alone = steps_of_team(problem, 1)[-1]
    shared = steps_of_team(problem, 3)[-1]
    np.testing.assert_allclose(shared[0], alone[0], rtol=1e-8, atol=1e-10)
    assert shared[3] == pytest.approx(alone[3], rel=1e-8)


def least(problem: df.Problem) -> np.ndarray:
    """The optimum as SciPy finds it, from the definition of P; the intercept comes last."""
    X, y, s = np.asarray(problem.X, dtype=np.float64), problem.y, problem.sample_weight
    rows = np.hstack([X, np.ones((problem.n, 1))])
    penalty = np.array([problem.lam] * problem.d + [0.0])

    def value_and_gradient(v: np.ndarray) -> tuple[float, np.ndarray]:
        z = rows @ v
        if problem.loss.name == "logistic":
            losses, slopes = np.logaddexp(0.0, -y * z), -y / (1.0 + np.exp(y * z))
        else:
            missing = np.maximum(0.0, 1.0 - y * z)
            losses, slopes = 0.5 * missing**2, -y * missing
        return s @ losses / problem.n + 0.5 * penalty @ v**2, rows.T @ (s * slopes) / problem.n + penalty * v

    scaled = scipy.optimize.minimize(
        value_and_gradient, np.zeros(rows.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-11, "maxiter": 2000}
    )
    return np.asarray(scaled.x)


@pytest.mark.usefixtures("_small_data_count")
@pytest.mark.parametrize("form", ["dense", "float32"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_threads_reach_the_optimum(loss: str, form: str) -> None:
    problem = shared_problem(form, loss, weights=True, fit_intercept=True)
    expected = least(problem)
    for size in (1, 2, 3):
        result = df.solve(problem, tol=1e-13, random_state=0, n_threads=size)
        assert result.trace[-1].phase == "newton"
        assert result.certificate.relative_gap < 1e-11
        np.testing.assert_allclose([*result.w, result.intercept], expected, rtol=1e-5, atol=1e-6)


class _StrangeSlope(df.Loss):
    """The squared loss, whose slope cannot be evaluated far from zero."""

    smoothness = 1.0

    @staticmethod
    def value(z: float, y: float) -> float:
        return 0.5 * (z - y) ** 2

    @staticmethod
    def derivative(z: float, y: float) -> float:
        if z > 1.5:
            raise ValueError("too large a margin")
        return z - y

    @staticmethod
    def curvature(z: float, y: float) -> float:
        return 1.0


class _StrangeCurvature(_StrangeSlope):
    """The same of its curvature."""

    @staticmethod
    def derivative(z: float, y: float) -> float:
        return z - y

    @staticmethod
    def curvature(z: float, y: float) -> float:
        if z > 1.5:
            raise ValueError("too large a margin")
        return 1.0


@pytest.mark.usefixtures("_small_data_count")
@pytest.mark.parametrize(("loss", "margin"), [(_StrangeSlope(), 0.0), (_StrangeCurvature(), 2.0)])
def test_a_thread_that_fails_is_told(loss: df.Loss, margin: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the line search, or in the first pass: only the last rows, which are another thread's, have large margins."""
    monkeypatch.setattr(small_step, "suits", lambda _: True)
    monkeypatch.setattr("dualfree.solvers.newton.curved_at_zero", lambda _: True)  # no look at some rows
    X = np.random.default_rng(0).random((300, 2)) * 0.01
    X[250:] *= 100.0
    problem = df.Problem(X, X @ np.full(2, 5.0), loss, 1e-4)
    newton = Newton(problem, RandomSource(0))
    with Team(problem, 2) as newton.team:
        newton.start(np.zeros(300), 0.0)
        assert newton.is_small
        newton.margins[299] = margin
        with pytest.raises(MemoryError, match="A thread had not enough memory"):
            newton.visit(300)
        assert newton.w.tolist() == [0.0, 0.0]
        z = np.empty(300)
        newton.team.margins_into(np.ones(2), z)  # the threads are still there
        assert np.allclose(z, X.sum(axis=1))
