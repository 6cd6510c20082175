"""The parts that `auto` is made of: each does what its file says."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numba
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from problems import SMOOTH, make_problem

import dualfree as df
from dualfree._jit import kernel
from dualfree.losses import builtin
from dualfree.row_sums import residuals_at_zero
from dualfree.sampling.layout import lay_out, round_shares
from dualfree.sampling.permutation import shuffle, shuffle_from, shuffle_runs
from dualfree.solvers import exactness, hessian, line_search, margins_on_the_way, newton
from dualfree.solvers.adaptive import Adaptive
from dualfree.solvers.auto import Auto
from dualfree.solvers.base import RandomSource
from dualfree.solvers.conjugate_gradients import ConjugateGradients
from dualfree.solvers.driver import Run
from dualfree.solvers.exact_steps import ExactSteps, run_length
from dualfree.solvers.exactness import Exactness
from dualfree.solvers.linear_cg import LinearCg
from dualfree.solvers.newton import Newton
from dualfree.solvers.prox_sdca import Permutations, ProxSdca
from dualfree.solvers.sample import Sample, sample_size, tells_weights
from dualfree.solvers.visits import visit_rows
from dualfree.team import Team
from dualfree.vector_math import vector_log


def phases(result: df.Result) -> list[str]:
    return list(dict.fromkeys(entry.phase for entry in result.trace))


# --- which method ---------------------------------------------------------------------------------------------------


def test_few_columns_are_for_newton() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 5))
    result = df.solve(df.Problem(X, X[:, 0] > 0.3 * rng.normal(size=40_000), lam=1e-6), tol=1e-9, random_state=0)
    assert phases(result)[-1] == "newton"
    assert result.n_epochs <= 6
    least_squares = df.solve(df.Problem(X, X @ np.arange(5.0), loss="squared", lam=1e-6), tol=1e-12, random_state=0)
    assert (phases(least_squares)[-1], least_squares.n_epochs) == ("newton", 1)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    ("n", "dense", "phase"),
    [(400, True, "conjugate-gradients"), (2200, False, "conjugate-gradients"), (400, False, "prox-sdca")],
)
def test_many_columns_and_the_squared_loss(n: int, dense: bool, phase: str, fit_intercept: bool) -> None:
    X = scipy.sparse.random(n, 2100, density=0.02, format="csr", rng=np.random.default_rng(0))
    y = np.asarray(X.sum(axis=1)).ravel() + np.random.default_rng(1).normal(size=n)
    rows = X.toarray()
    problem = df.Problem(rows if dense else X, y, loss="squared", lam=1e-3, fit_intercept=fit_intercept)
    result = df.solve(problem, tol=1e-12, random_state=0)
    assert phases(result)[-1] == phase
    assert result.certificate.relative_gap <= 1e-12
    centred = rows - fit_intercept * rows.mean(axis=0)
    gram = centred @ centred.T / n + 1e-3 * np.eye(n)
    w = centred.T @ np.linalg.solve(gram, y - fit_intercept * y.mean()) / n
    assert np.linalg.norm(result.w - w) <= result.certificate.distance_bound


def test_coordinate_steps_give_way_to_conjugate_gradients() -> None:
    """Sparse rows that are nearly the same: coordinate steps would need thousands of epochs."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.hstack(
        [scipy.sparse.csr_matrix(10.0 * np.ones((300, 3))), scipy.sparse.random(300, 2100, 0.01, rng=rng)]
    )
    problem = df.Problem(X.tocsr(), rng.normal(size=300), loss="squared", lam=1e-6)
    result = df.solve(problem, tol=1e-9, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert (phases(result)[0], phases(result)[-1]) == ("prox-sdca", "conjugate-gradients")


def text(n: int, lam: float) -> df.Problem:
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(n, 3000, density=0.01, format="csr", rng=rng)
    return df.Problem(X, np.asarray(X @ rng.normal(size=3000)) > 0, loss="squared_hinge", lam=lam)


def test_text_is_for_coordinate_steps() -> None:
    hard = df.solve(text(3000, 1e-6), tol=1e-8, max_epochs=5000, random_state=0)
    assert phases(hard)[:2] == ["prox-sdca", "adaptive"]
    assert hard.status is df.Status.CONVERGED


def test_steps_go_beyond_the_top_where_rows_hold_one_another_back() -> None:
    """Sparse rows with many columns and a small λ; the same problem takes far fewer passes, to the same optimum."""
    hard = text(3000, 1e-5)
    parts = [Permutations(text(3000, lam), np.random.default_rng(0)).part_of_q for lam in (1e-5, 1e-2)]
    assert parts == [0.75, 1.0]
    assert ProxSdca(hard, np.random.default_rng(0)).part_of_q == 1.0  # by name: as the paper has it
    assert Permutations(make_problem("logistic", lam=1e-6), np.random.default_rng(0)).part_of_q == 1.0  # few columns
    cornered = df.Problem(hard.X, hard.y, loss="hinge", lam=1e-5)
    assert Permutations(cornered, np.random.default_rng(0)).part_of_q == 1.0

    def passes() -> tuple[float, df.Result]:
        result = df.solve(hard, tol=1e-8, max_epochs=5000, random_state=0)
        assert result.status is df.Status.CONVERGED
        return float(result.trace.passes[-1]), result

    beyond, result = passes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExactSteps, "part_of_q", 1.0)
        exact, other = passes()
    assert beyond < 0.75 * exact
    assert np.linalg.norm(result.w - other.w) <= result.certificate.distance_bound + other.certificate.distance_bound


@pytest.mark.parametrize("weights", ["none", "random", "zeros"])
@pytest.mark.parametrize("part", [0.5, 0.75, 1.0])
@pytest.mark.parametrize("loss", SMOOTH)
def test_a_step_gains_what_it_says(loss: str, part: float, weights: str) -> None:
    """D's gain of one visit after the other, also of steps that go beyond the top; and the sum is not idle."""
    problem = make_problem(loss, n=40, d=5, lam=1e-3, weights=weights)
    alpha, w, offset, said, dual = np.zeros(40), np.zeros(5), np.zeros(1), 0.0, problem.dual(np.zeros(40))
    fixed = problem.rows, problem.loss.compiled, problem.y, problem.sample_weight, problem.row_norms_squared
    how = (1.0 / (problem.lam * problem.n), 0.0, True, 1.0 / problem.loss.smoothness, part)
    for i in np.random.default_rng(0).permutation(np.tile(np.arange(40), 3)):
        _, gained, *_ = visit_rows(*fixed, *how, np.array([i], dtype=np.uint32), alpha, w, offset)
        now = problem.dual(alpha)
        assert now - dual >= gained / 40 - 1e-12 * (1 + abs(now))
        dual, said = now, said + gained
    assert said > 0.0


def test_the_last_epoch_is_as_long_as_it_must_be() -> None:
    """Fewer passes than epochs, one certificate, and the point is the one that whole epochs lead to, a little earlier."""
    problem = text(3000, 10.0 / 3000)
    result = df.solve(problem, tol=1e-5, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert phases(result) == ["prox-sdca"]
    assert len(result.trace) == 2
    short = float(result.trace.passes[-1])
    assert result.n_epochs - 1 < short <= result.n_epochs - 0.2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Permutations, "may_shorten", False)
        whole = df.solve(problem, tol=1e-5, random_state=0)
    assert float(whole.trace.passes[-1]) == whole.n_epochs > short
    by_name = df.solve(problem, "prox-sdca", tol=1e-5, random_state=0)
    assert float(by_name.trace.passes[-1]) == by_name.n_epochs  # the paper's methods have whole epochs


def test_no_method_is_left_after_a_short_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, asked = text(3000, 1e-6), []
    solver = Auto(problem, RandomSource(0))
    solver.start(np.zeros(problem.n), 0.0)
    monkeypatch.setattr(Auto, "_second_order_is_cheaper", lambda self, *_: asked.append(self.part_wanted) or False)
    for k, part in enumerate((1.0, 1.0, 0.5, 1.0)):
        solver.rows_touched, solver.part_wanted = (k + 1.0) * problem.n, part
        solver.observe(0.1 ** (k + 1) * problem.at_zero, 1e-9)
    assert asked == [1.0]
    assert len(solver.history) == 4


@pytest.mark.parametrize(
    ("rate", "estimate", "part"),
    [(2.0, 1.5, 1.2 * math.log(1.5) / 2.0), (2.0, 1.01, 0.2), (2.0, 5.0, 1.0), (0.0, 1.5, 1.0), (2.0, 0.0, 1.0)],
)
def test_what_part_of_an_epoch_is_wanted(rate: float, estimate: float, part: float) -> None:
    problem = make_problem("squared_hinge")
    options: dict[str, Any] = {
        "tol": 1e-3,
        "max_epochs": 10,
        "max_time": None,
        "callback": None,
        "evaluate_every": None,
    }
    run = Run(problem, Permutations(problem, np.random.default_rng(0)), **options)
    run.begin(None, 0.0)
    assert run._part_wanted() == 1.0
    run.rate, run.solver.guess = rate, 0.85 * estimate * run.target  # a guess has to be below the target by that much
    assert run._part_wanted() == pytest.approx(part)
    run.solver.gap_estimate = estimate * run.target
    run.trace.append(run.trace[-1])
    assert run._part_wanted() == pytest.approx(part)


@pytest.mark.parametrize("dense", [False, True])
def test_no_scans_where_rows_matter_alike(monkeypatch: pytest.MonkeyPatch, dense: bool) -> None:
    """Few rows: nearly all of them are support vectors, and permutations need fewer passes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 800))
    problem, tol = text(900, 1e-4), 1e-11
    if dense:
        tol = 1e-12
        problem = df.Problem(X, X[:, 0] + rng.normal(size=200) > 0, loss="squared_hinge", lam=1e-3)
    result = df.solve(problem, tol=tol, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert phases(result) == ["prox-sdca"]
    monkeypatch.setattr(Auto, "_rows_matter_alike", lambda _: False)
    scanned = df.solve(problem, tol=tol, random_state=0)
    assert "adaptive" in phases(scanned)
    assert scanned.trace[-1].passes > 1.3 * result.trace[-1].passes


# --- Newton ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_newton_step_brings_its_dual_point(loss: str, fit_intercept: bool) -> None:
    """w(α⁺) = w⁺ after a full step inside the domain, Σ α⁺ = 0, and the estimate is the gap."""
    problem = make_problem(loss, n=80, d=5, lam=0.1, fit_intercept=fit_intercept, weights="random")
    newton = Newton(problem, np.random.default_rng(0))
    newton.start(np.zeros(problem.n), 0.0)
    for _ in range(3):
        newton.visit(problem.n)
    assert np.allclose(problem.weights_of(newton.alpha), newton.w, rtol=0, atol=1e-12 * np.abs(newton.w).max())
    if fit_intercept:
        assert abs(newton.alpha.sum()) < 1e-10 * np.abs(newton.alpha).sum()
    found = df.certify(problem, newton.w, newton.intercept, newton.alpha)
    assert newton.gap_estimate is not None
    assert found.gap <= 2.0 * newton.gap_estimate + 1e-18
    assert found.gap < 1e-6 * problem.at_zero


def test_the_gradient_bound_is_far_worse_at_small_penalties() -> None:
    problem = make_problem("logistic", n=200, d=5, lam=1e-7)
    newton = Newton(problem, np.random.default_rng(0))
    newton.start(np.zeros(problem.n), 0.0)
    while newton.gap_estimate is None or newton.gap_estimate > 1e-6:
        newton.visit(problem.n)
    own, without = (df.certify(problem, newton.w, 0.0, alpha).gap for alpha in (newton.alpha, None))
    assert own < 0.01 * without


def test_the_sample_leaves_few_steps() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 8))
    y = X @ rng.normal(size=8) + rng.logistic(size=20_000) > 0
    problem = df.Problem(X, y, lam=1e-5)
    assert sample_size(problem) == 2500
    assert tells_weights(problem, 2500)
    few = problem.subset(np.arange(900))
    assert not tells_weights(few, sample_size(few))  # of more than half of the rows
    wide = df.Problem(rng.normal(size=(8000, 100)), rng.random(8000) > 0.5, lam=1e-5)
    assert [tells_weights(wide, 600, cheap) for cheap in (False, True)] == [True, False]  # six rows for each weight
    assert tells_weights(wide, 1000, True)

    def steps(sample: bool) -> int:
        newton = Newton(problem, np.random.default_rng(0))
        newton.start(np.zeros(problem.n), 0.0)
        newton.begins_on_sample = sample
        count = 0
        while newton.gap_estimate is None or newton.gap_estimate > 1e-6 * problem.at_zero:
            newton.visit(problem.n)
            count += 1
        return count

    assert steps(sample=True) < steps(sample=False)


def test_the_gap_of_a_sample_is_its_gap() -> None:
    for fit_intercept in (False, True):
        problem = make_problem("logistic", n=800, d=5, lam=0.01, weights="random", fit_intercept=fit_intercept)
        sample = Sample(problem, np.random.default_rng(0), 100)
        part, steps = problem.subset(sample.chosen), sample.steps
        alpha = steps.alpha[sample.chosen]
        assert part.n == 100
        z = part.margins(steps.w) + steps.intercept
        values = [part.loss(zi, yi) for zi, yi in zip(z, part.y, strict=True)]
        conjugates = [
            part.loss.conjugate(a / s, yi) for a, s, yi in zip(alpha, part.sample_weight, part.y, strict=True)
        ]
        terms = part.sample_weight * (np.array(values) + np.array(conjugates)) + alpha * z
        assert sample.gap == pytest.approx(terms.mean() / problem.at_zero, rel=1e-9)
        # the steps were those of the problem on these rows: w is w(α) there, and the other rows took no part
        assert np.allclose(steps.w, part.weights_of(alpha), rtol=0, atol=1e-12)
        assert np.count_nonzero(steps.alpha) == np.count_nonzero(alpha) > 90


def test_a_sample_of_many_columns_visits_its_own_rows() -> None:
    """Rows come in runs there, each of them of rows chosen."""
    X = scipy.sparse.random(4_000, 3_000, 0.002, format="csr", random_state=0)
    problem = df.Problem(X, np.arange(4_000) % 2, "smoothed_hinge", 1e-3)
    assert run_length(problem) > 1
    sample = Sample(problem, np.random.default_rng(0), 500)
    assert np.isin(np.flatnonzero(sample.steps.alpha), sample.chosen).all()
    assert np.array_equal(np.sort(sample.steps.permutation), sample.chosen)
    with pytest.raises(ValueError, match="5 items do not fill 4 places"):
        shuffle_runs(np.arange(5), np.empty(4, np.int64), 2, np.random.default_rng(0))


@pytest.mark.parametrize("loss", ["huber", "smoothed_hinge"])
def test_newton_looks_at_a_sample_of_many_columns(loss: str) -> None:
    """Where the loss may be straight or flat at zero."""
    rng = np.random.default_rng(0)
    n, d = 9_000, 3_000
    columns = (rng.zipf(1.3, size=(n, 12)) - 1) % d
    X = scipy.sparse.csr_matrix((rng.normal(1.0, 0.3, size=12 * n), columns.ravel(), np.arange(n + 1) * 12), (n, d))
    score = X @ rng.normal(size=d) + rng.normal(size=n)
    problem = df.Problem(X, score if loss == "huber" else score > 0, loss, 1.0 / n)
    result = df.solve(problem, tol=1e-8, random_state=1)
    assert result.status is df.Status.CONVERGED
    assert phases(result)[-1] == "newton"


def test_two_epochs_on_a_part_of_the_rows_choose_the_method() -> None:
    """Neither method is clearly cheaper here. With a large λ coordinate steps are nearly done, with a small one far from it."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(8000, 110, density=0.19, format="csr", random_state=1)
    X.data[:] = 1.0
    y = X @ rng.normal(size=110) + rng.logistic(size=8000) > 0
    phases = {}
    for lam_n in (100.0, 0.1):
        phases[lam_n] = df.solve(df.Problem(X, y, lam=lam_n / 8000), tol=1e-2, random_state=0).trace[0].phase
    assert phases == {100.0: "prox-sdca", 0.1: "newton"}


def test_small_problems_are_solved_by_newton_steps() -> None:
    """What the interpreter does for an epoch is most of the time there, so the method with few steps wins."""
    for loss in ("squared", "logistic", "squared_hinge"):
        result = df.solve(make_problem(loss, n=200, d=5, lam=1e-3), tol=1e-9, random_state=0)
        assert set(result.trace.phase) == {"newton"}
        assert result.n_epochs <= 12


def test_conjugate_gradients_know_their_gap() -> None:
    problem = make_problem("squared", n=60, d=8, lam=0.05, weights="random")
    steps = ConjugateGradients(problem, np.random.default_rng(0))
    steps.start(np.zeros(problem.n), 0.0)
    for _ in range(4):
        steps.visit(problem.n)
        alpha, w, _ = steps.candidate()
        assert w is not None
        assert df.certify(problem, w, 0.0, alpha).gap == pytest.approx(steps.gap_estimate, rel=1e-9, abs=1e-18)


# --- coordinate steps -----------------------------------------------------------------------------------------------


@kernel
def _near_and_exact(z: float, y: float, a: float, q: float) -> tuple[float, float]:
    near = builtin.near_step(builtin.LOGISTIC, 0.0, z, y, a, q)
    return near, builtin.dual_step(builtin.LOGISTIC, 0.0, z, y, a, q)


@given(z=st.floats(-1e3, 1e3), y=st.sampled_from([-1.0, 1.0]), b=st.floats(0.0, 1.0), q=st.floats(1e-9, 1e9))
def test_near_steps_are_near_and_inside(z: float, y: float, b: float, q: float) -> None:
    near, exact = _near_and_exact(z, y, y * b, q)
    assert 0.0 <= near * y <= 1.0
    assert abs(near - exact) <= 0.05 * abs(exact - y * b) + 1e-14


def a_few_epochs(problem: df.Problem, most: int, enough: float) -> Permutations:
    """Epochs in one call, after one by itself."""
    steps = Permutations(problem, np.random.default_rng(0))
    steps.start(np.zeros(problem.n), 0.0)
    steps.epochs_so_far, steps.epochs_allowed, steps.enough_activity = 9, most, enough
    steps.begin_epoch()
    steps.visit(problem.n)
    steps.end_epoch()
    return steps


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", ["dense64", "csr64"])
def test_several_epochs_in_one_call_are_what_they_are_one_by_one(form: str, fit_intercept: bool) -> None:
    problem = make_problem("logistic", n=50, d=4, lam=1e-2, form=form, weights="random", fit_intercept=fit_intercept)
    several = a_few_epochs(problem, 4, 0.0)
    rng = np.random.default_rng(0)
    single = Permutations(problem, rng)
    single.start(np.zeros(problem.n), 0.0)
    single.begin_epoch()
    single.visit(problem.n)
    for seed in rng.integers(2**64, size=4, dtype=np.uint64)[1:]:
        single.end_epoch()
        ExactSteps.begin_epoch(single)  # begins to count, and shuffles nothing
        shuffle_from(single.permutation, seed)
        single._make_steps(single.permutation)
    single.end_epoch()
    assert several.epochs_made == 4
    assert several.rows_touched == single.rows_touched == 4 * problem.n
    assert several.gain == pytest.approx(single.gain, rel=1e-9)
    assert several.guess == pytest.approx(single.guess, rel=1e-9)
    assert several.even == pytest.approx(single.even, rel=1e-9)
    assert several.misfit_before == pytest.approx(single.misfit_before, rel=1e-9)
    assert several.intercept == pytest.approx(single.intercept, rel=1e-12, abs=1e-15)
    assert several.w == pytest.approx(single.w, rel=1e-12)
    assert several.alpha == pytest.approx(single.alpha, rel=1e-12)
    assert np.linalg.norm(several.w - problem.weights_of(several.alpha)) <= several.drift
    assert several.drift == pytest.approx(single.drift, rel=0.1)


def test_epochs_of_one_call_end_where_an_evaluation_is_due() -> None:
    problem = make_problem("logistic", n=50, d=4, lam=1e-2)
    activities = [a_few_epochs(problem, k, 0.0).activity for k in (1, 2, 3, 4)]
    assert len(set(activities)) == 4
    for activity in activities:
        made = next(k for k, first in enumerate(activities, start=1) if first <= activity)
        assert a_few_epochs(problem, 9, activity).epochs_made == made
    assert a_few_epochs(problem, 9, math.inf).epochs_made == 1


def test_epochs_of_one_call_are_no_more_than_allowed() -> None:
    problem = make_problem("logistic", n=60, d=8, lam=1e-6)
    calls = []

    class Counting(Permutations):
        def visit(self, count: int) -> None:
            super().visit(count)
            calls.append(self.epochs_made)

    for most in (1, 2, 5, 11, 23):
        calls.clear()
        run = Run(
            problem,
            Counting(problem, np.random.default_rng(0)),
            tol=0.0,
            max_epochs=most,
            max_time=None,
            callback=None,
            evaluate_every=None,
        )
        assert run.go(None, 0.0).n_epochs == most == sum(calls)
    assert max(calls) > 1
    assert all(calls[k] <= max(1, sum(calls[:k])) for k in range(len(calls)))  # so that two points tell a rate


@pytest.mark.parametrize("kind", [Permutations, Adaptive])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_drift_bounds_the_distance_from_the_sum(loss: str, kind: type) -> None:
    """‖w − w(α)‖ against arithmetic of 60 digits: never above the bound, and the bound is small."""
    problem = make_problem(loss, n=50, d=4, lam=1e-3, weights="random")
    solver = kind(problem, np.random.default_rng(0))
    solver.start(np.zeros(problem.n), 0.0)
    for _ in range(30):
        solver.begin_epoch()
        solver.visit(problem.n)
        solver.end_epoch()
    with mp.workdps(60):
        factor = 1 / (mp.mpf(problem.lam) * problem.n)
        exact = [mp.mpf(float(a)) for a in solver.alpha]
        sums = [
            sum(a * mp.mpf(float(x)) for a, x in zip(exact, problem.X[:, j], strict=True)) for j in range(problem.d)
        ]
        far = mp.norm([mp.mpf(float(w)) - factor * total for w, total in zip(solver.w, sums, strict=True)])
        assert far <= solver.drift
    assert solver.drift < 1e-9 * np.linalg.norm(solver.w)


def share_out(shares: np.ndarray, which: np.ndarray, offset: float, part: float = 1.0) -> np.ndarray:
    """An epoch's visits, in the order in which they are laid out."""
    counts, order = np.full(shares.size, -7, dtype=np.int32), np.empty(shares.size + 2, dtype=np.int32)
    sums = (float(shares[which].sum()), int((shares[which] > 0).sum()))
    number = round_shares(shares, which, *sums, part * shares.size, 40.0, offset, counts)
    assert number == lay_out(which, counts, order)
    return order[:number]


def test_half_of_the_shares_are_what_the_lemma_says() -> None:
    """Half of the visits as c|κ| / Σ c|κ|, half for all alike, none for a residual of zero; at most forty times the mean."""
    rng = np.random.default_rng(0)
    shares = rng.random(200) * (rng.random(200) < 0.5)
    counts = np.zeros(200)
    for _ in range(2000):
        visits = share_out(shares, np.arange(200), rng.random())
        assert 199 <= visits.size <= 201
        counts += np.bincount(visits, minlength=200)
    assert np.all(counts[shares == 0] == 0)
    alike = (shares > 0) / (shares > 0).sum()
    assert np.allclose(counts / 2000, 100 * shares / shares.sum() + 100 * alike, atol=0.05)
    uneven = np.full(200, 1e-3)
    uneven[3] = 1000.0
    # the rest, which it may not have, is shared out again
    assert 35 <= (share_out(uneven, np.arange(200), 0.5) == 3).sum() <= 60
    alone = np.zeros(200)
    alone[3] = 1.0
    assert np.array_equal(share_out(alone, np.arange(200), 0.5), np.full(200, 3))
    assert share_out(np.zeros(200), np.arange(200), 0.5).size == 0
    assert abs(share_out(shares, np.arange(200), 0.5, part=0.3).size - 60) <= 1


def test_permutations_are_fair() -> None:
    """Every element is as often in every place: a chi-square over 20,000 shuffles of six."""
    rng = np.random.default_rng(0)
    seen = np.zeros((6, 6))
    for _ in range(20_000):
        order = np.arange(6, dtype=np.int32)
        shuffle(order, rng)
        seen[np.arange(6), order] += 1
    expected = 20_000 / 6
    assert ((seen - expected) ** 2 / expected).sum() < 52.6  # 25 degrees of freedom, one in a thousand
    same = [np.arange(50), np.arange(50)]
    for order in same:
        shuffle(order, np.random.default_rng(7))
    assert np.array_equal(*same)


def test_runs_are_neighbours_and_all_there() -> None:
    """Neighbours stay together but where a run ends, which is elsewhere each time; nothing is lost or twice."""
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 4, 5, 8, 201):
        for length in (1, 3, 4):
            order = np.full(size, -1, dtype=np.int32)
            together = np.zeros(size)
            for _ in range(200):
                shuffle_runs(10 * np.arange(size), order, length, rng)
                assert np.array_equal(np.sort(order), 10 * np.arange(size))
                together[order[:-1][np.diff(order) == 10] // 10] += 1
            if size == 201 and length == 4:
                assert together[:-1].min() > 0.6 * 200  # three of four, and by chance
                assert together[:-1].max() < 0.9 * 200
    places = np.zeros(201)
    for _ in range(10_000):
        order = np.empty(201, dtype=np.int32)
        shuffle_runs(np.arange(201), order, 4, rng)
        places[order] += np.arange(201)
    assert np.allclose(places / 10_000, 100.0, atol=4.5 * 58.0 / 100.0)  # 58 is the standard deviation of a place


def test_visits_of_one_row_are_in_different_rounds() -> None:
    """Each row's first visit in the order of the rows, then second ones, and so on; only rows that are looked at have any."""
    shares = np.array([0.0, 0.4, 9.0, 4.0, 0.0, 0.4, 30.0, 0.4])
    looked_at = np.array([1, 2, 3, 4, 5, 6], dtype=np.int32)
    visits = share_out(shares, looked_at, 0.5)
    times = np.array([(visits[:k] == visits[k]).sum() for k in range(visits.size)])
    assert times.max() >= 2
    assert np.all(np.diff(times) >= 0)
    for again in range(times.max() + 1):
        assert np.all(np.diff(visits[times == again]) > 0)
    assert set(visits.tolist()) <= {1, 2, 3, 5, 6}


def test_scans_of_a_part_notice_what_comes_back() -> None:
    """Most rows of a squared hinge stay at zero; those that do not are found by the next scan of all, some epochs later."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 12))
    problem = df.Problem(X, X @ rng.normal(size=12) + 0.3 * rng.normal(size=4000) > 0, "squared_hinge", 1e-4)
    steps = Adaptive(problem, rng)
    steps.start(np.zeros(4000), 0.0)

    def epochs(count: int) -> list[float]:
        scanned = []
        for _ in range(count):
            steps.begin_epoch()
            steps.visit(problem.n)
            before = steps.rows_touched
            steps.end_epoch()
            scanned.append(steps.rows_touched - before)
        return scanned

    scanned = epochs(30)
    short = [rows for rows in scanned if rows < problem.n]
    assert len(short) > 15
    assert max(short) <= 0.5 * problem.n
    assert 0.0 < steps.part_of_scans < 0.5
    outside = np.flatnonzero((steps.shares == 0.0) & (steps.alpha == 0.0))[:200]
    assert outside.size == 200
    moved = steps.alpha.copy()
    moved[outside] = problem.y[outside]
    short_scans = steps.short_scans
    assert short_scans > 0
    steps.alpha[:] = moved
    steps.renew(problem.weights_of(moved), problem.sum_error)
    epochs(short_scans + 1)
    epochs(15)
    assert df.certify(problem, steps.w, 0.0, steps.alpha).relative_gap < 1e-3
    steps.target = np.inf  # a scan that says that the target is met is not believed for long
    steps.short_scans_left = 5
    assert epochs(2)[1] == problem.n


# --- arithmetic -----------------------------------------------------------------------------------------------------


@numba.njit
def _logarithms(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.size):
        out[i] = vector_log(x[i])


def test_the_logarithm_is_right_to_two_units() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([10.0 ** rng.uniform(-300, 300, 2000), 1 + rng.normal(size=2000) * 1e-3, [0.5, 1.0, 2.0]])
    found = np.empty(x.size)
    _logarithms(x, found)
    with mp.workdps(40):
        for value, log in zip(x, found, strict=True):
            right = mp.log(mp.mpf(float(value)))
            assert abs(mp.mpf(float(log)) - right) <= abs(right) * mp.mpf(2) ** -51


def test_the_first_certificate_waits_where_the_dual_gains_fall_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Auto, "_truncated_steps_may_be_quick", lambda _: False)
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(6000, 3000, density=0.01, random_state=0, format="csr")
    y = np.sign(rng.normal(size=6000))
    easy, hard = (df.Problem(X, y, loss="squared_hinge", lam=lam_n / 6000) for lam_n in (100.0, 0.001))
    quick, slow = (df.solve(problem, tol=1e-7, random_state=0) for problem in (easy, hard))
    assert quick.trace[1].epoch > 2
    assert len(quick.trace) <= 3  # one certificate, or two, besides the start
    assert slow.trace[1].epoch == 2


@pytest.mark.parametrize(("lam_n", "tol", "looked_at"), [(10.0, 1e-6, False), (0.1, 1e-6, True), (10.0, 0.0, True)])
def test_weakly_coupled_rows_are_for_coordinate_steps(lam_n: float, tol: float, looked_at: bool) -> None:
    """Where L ‖x‖²/(λn) is small they end after a few epochs, whatever a part of the rows would say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 300)) / math.sqrt(20.0)
    problem = df.Problem(X, X @ rng.normal(size=300) > 0.0, loss="logistic", lam=lam_n / 5000)
    auto = Auto(problem, RandomSource(0))
    auto.begins_at_zero, auto.target = True, tol * problem.at_zero
    auto.start(np.zeros(5000), 0.0)
    assert (auto.rows_touched > 0.0) == looked_at
    if not looked_at:
        assert isinstance(auto.active, Permutations)
        result = df.solve(problem, tol=tol, random_state=0)
        assert phases(result) == ["prox-sdca"]
        assert result.n_epochs <= 10


def test_what_the_domain_cuts_off_is_in_newtons_estimate() -> None:
    # nearly separable rows, a small penalty: linearised dual points leave their domain by far
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    problem = df.Problem(X, X[:, 0] + 0.05 * rng.normal(size=4000) > 0, loss="logistic", lam=1e-7)
    result = df.solve(problem, tol=1e-2, random_state=0)
    assert result.trace[-1].phase == "newton"
    assert len(result.trace) <= 3
    steps = Newton(problem, np.random.default_rng(0))
    steps.start(np.zeros(problem.n), 0.0)
    steps.begins_on_sample = False
    for _ in range(6):
        steps.visit(problem.n)
        gap = df.certify(problem, steps.w, alpha=steps.alpha).gap
        assert steps.gap_estimate > 0.01 * min(gap, problem.at_zero)


def test_random_numbers_are_drawn_only_where_they_are_needed() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    df.solve(make_problem("squared"), random_state=rng)
    assert rng.bit_generator.state == before
    df.solve(make_problem("squared"), "prox-sdca", random_state=rng)
    assert rng.bit_generator.state != before


@pytest.mark.parametrize("b", [-5.0, 0.2, 5.0])  # slopes of either sign
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("weights", ["none", "random"])
def test_residuals_at_zero(loss: str, b: float, weights: str) -> None:
    problem = make_problem(loss, n=333, weights=weights)
    kappa = np.abs(problem.residuals(np.zeros(problem.d), np.zeros(problem.n), b))
    alike = weights == "none" and problem.loss.task == "classification"
    some, largest = residuals_at_zero(problem.loss.compiled, b, problem.y, problem.sample_weight, alike, 7)
    assert largest == pytest.approx(kappa.max(), rel=1e-14)
    assert np.allclose(some, kappa[::7], rtol=1e-14)


@pytest.fixture
def formed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each Hessian that Newton's method factorises."""
    found: list[int] = []
    factorise = newton.factorised
    monkeypatch.setattr(newton, "factorised", lambda *given: found.append(1) or factorise(*given))
    return found


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_a_dear_hessian_is_the_last_resort(
    loss: str, fit_intercept: bool, formed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newton, "DEAR", dict.fromkeys(newton.DEAR, 0))
    problem = make_problem(loss, n=400, d=12, lam=1e-6, fit_intercept=fit_intercept)
    steps = Newton(problem, np.random.default_rng(0))
    steps.start(np.zeros(problem.n), 0.0)
    assert steps.dear
    for enough, expected in ((1000, False), (1, True)):
        formed.clear()
        steps.start(np.zeros(problem.n), 0.0)
        steps.most_products = enough
        for _ in range(25):
            steps.visit(problem.n)
        assert bool(formed) is expected
        assert steps.dear is not expected
        assert df.certify(problem, steps.w, steps.intercept, steps.alpha).relative_gap < 1e-8


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_a_hessian_is_formed_once_products_have_cost_as_much(
    loss: str, formed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not with flat parts of the loss, where the next step may have other curvatures."""
    monkeypatch.setattr(newton, "DEAR", dict.fromkeys(newton.DEAR, 0))
    steps = Newton(make_problem(loss, n=400, d=12, lam=1e-3), np.random.default_rng(0))
    steps.start(np.zeros(400), 0.0)
    steps.full_price = steps.most_products = 12
    steps.visit(400)
    assert steps.products <= 12
    assert not formed
    steps.products = 13
    steps.visit(400)
    assert bool(formed) is (loss == "logistic")
    formed.clear()
    steps.start(np.zeros(400), 0.0)
    steps.full_price, steps.most_products, steps.products = 12, 11, 13  # a trial is not to pay for one
    steps.visit(400)
    assert not formed


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_weights_of_a_look_are_taken_at_their_best_length(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows known by heart; with flat parts of the loss the length tells which rows are there, and stays."""
    sought: list[float] = []
    search = newton.least_on_ray
    monkeypatch.setattr(newton, "least_on_ray", lambda *given: sought.append(search(*given)) or sought[-1])
    rng = np.random.default_rng(0)
    X = rng.lognormal(sigma=1.5, size=(2000, 300)) * (rng.random((2000, 300)) < 0.2)
    problem = df.Problem(X, X[:, 0] - X[:, 1] + 3.0 * rng.logistic(size=2000) > 0, loss, lam=1e-2 / 2000)
    look = Sample(problem, rng, 500)
    weights = look.steps.w.copy()
    steps = Newton(problem, rng)
    steps.sample = look
    steps.start(np.zeros(2000), 0.0)
    assert not steps.begins_on_sample
    assert len(sought) == (loss == "logistic")
    if sought:
        assert np.allclose(steps.w, sought[0] * weights)
        best = min(problem.primal(t * weights) for t in np.linspace(0.0, 1.0, 101))
        assert problem.primal(steps.w) <= best + 0.021 * problem.at_zero


def test_no_hessian_for_a_last_step(formed: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncated steps have cost as much as a Hessian, but one more of them will do."""
    monkeypatch.setattr(newton, "DEAR", dict.fromkeys(newton.DEAR, 0))
    steps = Newton(make_problem("logistic", n=400, d=12, lam=1e-3), np.random.default_rng(0))
    steps.target = 1e-6 * steps.problem.at_zero
    steps.start(np.zeros(400), 0.0)
    steps.full_price = steps.most_products = 12
    steps.visit(400)
    steps.products = 13
    for estimate, last in ((1e-2, False), (1e-5, True)):
        assert steps.exactness.next_is_last(estimate) is last
    steps.gap_estimate = 1e-5
    steps.visit(400)
    assert not formed
    steps.products, steps.gap_estimate = 13, 1e-2
    steps.visit(400)
    assert formed


def test_what_a_part_of_the_rows_did_not_need(formed: list[int]) -> None:
    """Columns that have nothing to do with one another: two products with the Hessian's diagonal solve a step."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(16000, 500, density=18 / 500, format="csr", rng=rng, data_rvs=rng.standard_normal)
    y = 0.5 * (X @ rng.normal(size=500)) + rng.logistic(size=16000) > 2.0
    problem = df.Problem(X, y, "logistic", 1 / 16000)
    result = df.solve(problem, tol=1e-6, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert phases(result) == ["newton"]
    assert not formed


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_one_hessian_serves_many_steps(
    loss: str, fit_intercept: bool, formed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newton, "WORTH", dict.fromkeys(newton.WORTH, 0))
    monkeypatch.setattr(newton, "_QUICK_SOLUTION", 0.0)
    problem = make_problem(loss, n=400, d=12, lam=1e-4, fit_intercept=fit_intercept)
    counts = {}
    for most in (0, 12):  # products that a step may take
        formed.clear()
        steps = Newton(problem, np.random.default_rng(0))
        steps.start(np.zeros(problem.n), 0.0)
        steps.most_products = most
        for _ in range(12):
            steps.visit(problem.n)
        counts[most] = len(formed)
        certificate = df.certify(problem, steps.w, steps.intercept, steps.alpha)
        assert certificate.relative_gap < 1e-11
        assert steps.gap_estimate is not None
        assert steps.gap_estimate < 1e-11 * problem.at_zero
    assert counts[0] == 12
    assert counts[12] <= 5


def test_what_becomes_of_a_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    easy, hard = (make_problem("logistic", n=400, d=12, lam=lam) for lam in (1.0, 1e-9))

    def after_a_step(problem: df.Problem, **options: Any) -> Newton:
        for name, value in options.items():
            monkeypatch.setattr(newton, name, value)
        steps = Newton(problem, np.random.default_rng(0))
        steps.start(np.zeros(problem.n), 0.0)
        steps.visit(problem.n)
        return steps

    assert after_a_step(easy).factor is None  # a Hessian costs little here
    assert after_a_step(easy, WORTH=dict.fromkeys(newton.WORTH, 0)).factor is None
    assert after_a_step(easy, WORTH=dict.fromkeys(newton.WORTH, 0), _QUICK_SOLUTION=0.0).factor is not None
    shares: list[float] = []
    monkeypatch.setattr(newton, "root_of_slope", lambda *_: shares.append(0.5) or 0.5)
    assert after_a_step(hard, WORTH=dict.fromkeys(newton.WORTH, 0)).factor is None  # half a step: other curvatures
    assert shares
    monkeypatch.undo()

    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 40))
    problem = df.Problem(X, X[:, 0] + rng.logistic(size=8000) > 0, lam=0.01)
    formed: list[int] = []
    derivatives = newton.derivatives

    def recorded(team: Team, *given: Any) -> Any:
        formed.append(team.problem.n if given[-1] else 0)
        return derivatives(team, *given)

    monkeypatch.setattr(newton, "derivatives", recorded)
    after_a_step(problem, WORTH=dict.fromkeys(newton.WORTH, 0), _WORTH_A_SAMPLE=0.0, _QUICK_SOLUTION=0.0)
    assert formed[0] == 500  # on a part of the sample
    assert formed[-1] == 0  # the step on all rows had an earlier one as its preconditioner
    assert problem.n not in formed


@pytest.mark.parametrize("lam", [1e-2, 1e-4, 1e-6])
def test_the_estimate_counts_what_conjugate_gradients_left(lam: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newton, "DEAR", dict.fromkeys(newton.DEAR, 0))
    monkeypatch.setattr(Exactness, "is_reached", lambda rule, solution: solution.energy <= 0.01 * rule.first)
    problem = make_problem("logistic", n=400, d=12, lam=lam)
    steps = Newton(problem, np.random.default_rng(0))
    steps.start(np.zeros(problem.n), 0.0)
    steps.most_products = 500
    for _ in range(8):
        steps.visit(problem.n)
        assert steps.gap_estimate is not None
        gap = df.certify(problem, steps.w, 0.0, steps.alpha).gap
        if gap < 1e-3 * problem.at_zero:
            assert gap <= 3.0 * steps.gap_estimate + 1e-15


def _truncated(lam: float, target: float, steps_made: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Newton, list[int]]:
    """Newton's method with conjugate gradients after some steps, and how many products each of them took."""
    monkeypatch.setattr(newton, "DEAR", dict.fromkeys(newton.DEAR, 0))
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.normal(size=(40, 40)))[0]  # so that the diagonal says little
    X = rng.normal(size=(400, 40)) * np.geomspace(3.0, 0.03, 40) @ turned
    problem = df.Problem(X, X @ rng.normal(size=40) + rng.logistic(size=400) > 0.0, lam=lam)
    made: list[int] = []
    multiply = margins_on_the_way.hessian_product

    def counted(*given: Any) -> Any:
        made[-1] += 1
        return multiply(*given)

    monkeypatch.setattr(margins_on_the_way, "hessian_product", counted)
    steps = Newton(problem, np.random.default_rng(0))
    steps.target = target * problem.at_zero
    steps.start(np.zeros(problem.n), 0.0)
    steps.most_products = 500
    for _ in range(steps_made):
        made.append(0)
        steps.visit(problem.n)
    monkeypatch.undo()
    return steps, made


def test_steps_far_from_the_optimum_take_fewer_products(monkeypatch: pytest.MonkeyPatch) -> None:
    _, hurried = _truncated(1e-5, 1e-10, 3, monkeypatch)
    monkeypatch.setattr(exactness, "_LITTLE", 0.0)
    _, fair = _truncated(1e-5, 1e-10, 3, monkeypatch)
    assert sum(hurried) < 0.8 * sum(fair)


def test_the_way_to_the_starting_point_is_not_a_step() -> None:
    """It says nothing of how the next steps should be solved."""
    problem = make_problem("logistic", n=400, d=12, lam=1e-3)
    steps = Newton(problem, np.random.default_rng(0))
    steps.given_w = np.ones(12)
    steps.start(np.zeros(400), 0.0)
    assert steps.w.any()
    assert steps.exactness.hurries
    rule = Exactness(problem)
    bend = rule.bend
    rule.learn(math.inf, 1.0, 1.0)
    assert (rule.hurries, rule.bend) == (True, bend)
    rule.learn(3e-2, 1.0, 1.5)  # longer than a full one: its gap says nothing of others
    assert (rule.hurries, rule.bend) == (True, bend)
    rule.learn(1e-2, 1.0, 1.0)
    assert (rule.hurries, rule.bend) == (True, pytest.approx(1e4))
    rule.learn(2e-2, 0.0, 1.0)  # more than the one before
    assert (rule.hurries, rule.bend) == (False, bend)


@pytest.mark.parametrize("target", [1e-3, 1e-6, 1e-9])
def test_a_step_that_may_be_the_last_is_solved_as_tol_needs_it(target: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 25):  # how many there are depends on the last bits of X, which BLAS decides
        steps, _ = _truncated(1e-5, target, number, monkeypatch)
        if steps.exactness.may_be_last:
            left = float(np.sum(np.square(steps.unsolved))) / (2.0 * steps.problem.lam)
            assert left <= 0.5 * steps.target
            if df.certify(steps.problem, steps.w, 0.0, steps.alpha).gap <= steps.target:
                break
    else:
        pytest.fail("no step was the last")


def test_all_digits_take_no_more_products_than_there_are_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, made = _truncated(1e-5, 0.0, 24, monkeypatch)
    assert max(made) <= 200  # of 500
    assert df.certify(steps.problem, steps.w, 0.0, steps.alpha).relative_gap < 1e-11


def test_the_rate_of_products_foretells_those_of_a_last_step() -> None:
    problem = make_problem("logistic", n=400, d=12, lam=1e-3)
    rule = Exactness(problem)
    rule.begin(1e-2, 1e-6, diagonal=False)
    assert rule.products_to_tol() == 0.0  # nobody knows
    matrix = np.diag(np.geomspace(1.0, 20.0, 200))
    solution = LinearCg(np.zeros(200), np.ones(200), lambda vector: vector.copy())
    rule.begin(solution.energy, 1e-6, diagonal=False)
    for _ in range(3):
        solution.step(matrix.__matmul__)
        rule.count(solution)
    rule.end(solution)
    again = LinearCg(np.zeros(200), np.ones(200), lambda vector: vector.copy())
    rule.begin(again.energy, 1e-6, diagonal=False)
    foretold, made = rule.products_to_tol(), 0
    while again.residual @ again.residual / (2.0 * problem.lam) > 0.5e-6:
        again.step(matrix.__matmul__)
        made += 1
    assert made / 2 <= foretold <= 2 * made
    rule.forget()
    assert rule.products_to_tol() == 0.0


def test_a_hessian_is_formed_where_a_last_step_would_need_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when it is the last one's turn: the steps until there gain by it too."""
    monkeypatch.setattr(newton, "WORTH", dict.fromkeys(newton.WORTH, 0))
    monkeypatch.setattr(newton, "_QUICK_SOLUTION", 0.0)
    problem = make_problem("logistic", n=400, d=12, lam=1e-5)

    def products_of_second_step(rate: float) -> int:
        steps = Newton(problem, np.random.default_rng(0))
        steps.start(np.zeros(problem.n), 0.0)
        steps.target, steps.most_products = 1e-9, 12
        steps.factor = newton.Factor(np.diag(np.full(12, 0.2)))
        steps.exactness.rate, steps.exactness.square = rate, 1.0
        steps.visit(problem.n)
        if rate < math.inf:
            assert steps.exactness.rate == math.inf  # what is known of the old factor says nothing of the new one
        return steps.exactness.made

    assert products_of_second_step(math.inf) > 0
    assert products_of_second_step(0.1) == 0


@given(
    kinks=st.lists(st.tuples(st.floats(-30, 30), st.floats(-8, 4)), min_size=1, max_size=8),
    scale=st.floats(-12, 12),
    smooth=st.floats(0.0, 1.0),
)
def test_the_line_search_never_goes_uphill(kinks: list[tuple[float, float]], scale: float, smooth: float) -> None:
    """On nearly piecewise linear functions, however long the first step: but for a full step, which may overshoot a little."""
    at, weight = 10.0**scale * np.array([k for k, _ in kinks]), 10.0 ** np.array([size for _, size in kinks])

    def slope(t: float) -> float:
        return float(weight @ np.tanh((t - at) / (smooth * 10.0**scale + 1e-9)) + 1e-3 * t)

    def value(t: float) -> float:
        width = smooth * 10.0**scale + 1e-9
        return float(weight @ (width * np.logaddexp((t - at) / width, (at - t) / width)) + 0.5e-3 * t * t)

    here = slope(0.0)
    t = line_search.root_of_slope(slope, here)
    if here < 0.0 and t != 1.0:
        assert value(t) <= value(0.0) + 1e-9 * abs(value(0.0))


def test_a_small_slope_uphill_is_no_end_of_the_search() -> None:
    """P falls for a ten-thousandth of the step, then rises at a twentieth of the first slope, for a thousand times as long."""

    def slope(t: float) -> float:
        return -1.0 if t < 1e-4 else 0.05 if t < 0.5 else 5.0

    t = line_search.root_of_slope(slope, -1.0)
    assert -min(t, 1e-4) + 0.05 * max(t - 1e-4, 0.0) < 0.0


@pytest.mark.parametrize("n", [2, 10, 600, 3000])
def test_rows_on_straight_parts_do_not_lead_newton_astray(n: int) -> None:
    """Huber's loss and an intercept, no row curved at w = 0: a step of 1e12, which has to be cut short."""
    for seed in (3, 14):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        y = 10 ** rng.uniform(0, 4) * (X.sum(axis=1) + rng.normal(size=n) + 3 * rng.normal())
        problem = df.Problem(X, y, loss="huber", lam=10 ** rng.uniform(-6, -1), fit_intercept=True)
        assert df.solve(problem, tol=1e-6, random_state=0).status is df.Status.CONVERGED


def test_conjugate_gradients_where_no_row_is_curved() -> None:
    rng = np.random.default_rng(0)
    X, y = 0.01 * rng.normal(size=(10, 200)), 100 * rng.normal(size=10)
    problem = df.Problem(X, y, loss="huber", lam=0.07, fit_intercept=True)
    assert df.solve(problem, tol=1e-9, random_state=0).status is df.Status.CONVERGED


def test_one_epoch_says_nothing_of_the_rate() -> None:
    """Where the look has been taken, too: its passes are no epochs on all rows."""
    problem = make_problem("logistic", n=2000, d=60, lam=0.01)
    auto = Auto(problem, RandomSource(0))
    auto.rows_touched = 0.6 * problem.n
    auto.active = Permutations(problem, auto.rng)
    auto.settled = False
    auto.start(np.full(problem.n, 1e-3) * problem.y, 0.0)
    auto.observe(problem.at_zero, 1e-3)
    auto.begin_epoch()
    auto.visit(problem.n)
    auto.observe(0.07 * problem.at_zero, 0.03 * problem.at_zero)
    assert len(auto.history) == 2
    assert isinstance(auto.active, Permutations)


def test_small_data_need_no_look_and_no_sample() -> None:
    rng = np.random.default_rng(0)
    for n, d in ((300, 6), (700, 14), (3000, 4), (2000, 10)):
        X = rng.normal(size=(n, d))
        result = df.solve(df.Problem(X, X[:, 0] + rng.logistic(size=n) > 0, lam=1 / n), tol=1e-6, random_state=0)
        assert phases(result) == ["newton"]
        assert result.trace[0].passes == 0
        assert result.trace[-1].passes == 4 * result.n_epochs


def test_many_columns_in_short_rows_need_no_factorisation() -> None:
    rng = np.random.default_rng(0)
    columns = np.sort(rng.permuted(np.tile(np.arange(1200), (4000, 1)), axis=1)[:, :6], axis=1)
    X = scipy.sparse.csr_matrix((np.ones(columns.size), columns.ravel(), np.arange(4001) * 6), shape=(4000, 1200))
    target = X @ rng.normal(size=1200) + rng.normal(size=4000)
    squared = df.Problem(X, target, loss="squared", lam=1e-4)
    assert hessian.in_products(squared) > newton.DEAR[squared.kind]
    result = df.solve(squared, tol=1e-8, random_state=0)
    assert phases(result) == ["conjugate-gradients"]
    assert result.status is df.Status.CONVERGED
    logistic = df.Problem(X, target > 0, loss="logistic", lam=1e-5)
    assert df.solve(logistic, tol=1e-8, random_state=0).status is df.Status.CONVERGED


def test_adaptive_visits_are_no_worse_than_permutations() -> None:
    # dense rows, more columns than rows, nearly all residuals matter: by the lemma alone four times as many epochs were needed
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1500))
    margins = X[:, :50].sum(axis=1)
    labels = rng.random(400) < 1.0 / (1.0 + np.exp(-2.0 * margins / margins.std()))
    problem = df.Problem(X, labels, loss="squared_hinge", lam=1 / 400)

    def epochs(kind: type[ExactSteps]) -> int:
        first, steps = Permutations(problem, rng), kind(problem, rng)
        first.start(np.zeros(problem.n), 0.0)
        first.begin_epoch()
        first.visit(problem.n)
        first.end_epoch()
        steps.take_over(first)
        for epoch in range(1, 100):
            steps.begin_epoch()
            steps.visit(problem.n)
            steps.end_epoch()
            if df.certify(problem, steps.w, 0.0, steps.alpha).relative_gap < 1e-8:
                return epoch
        raise AssertionError

    assert epochs(Adaptive) <= 1.5 * epochs(Permutations)


def test_what_begins_where_the_number_of_steps_is_a_guess() -> None:
    """Few sparse rows, a squared hinge and a dear factorisation: Newton's steps come first only if they are clearly cheaper."""
    X = scipy.sparse.random(1500, 240, density=6 / 240, format="csr", random_state=0)
    labels = np.random.default_rng(0).random(1500) < 0.5
    first = {
        loss: Auto(df.Problem(X, labels, loss, lam=1 / 1500), RandomSource(0)) for loss in ("squared_hinge", "logistic")
    }
    assert 0.8 < first["squared_hinge"]._newton_to_permutations < 1.2
    assert first["squared_hinge"].phase == "prox-sdca"
    assert first["logistic"]._newton_to_permutations < 1.2
    assert first["logistic"].phase == "newton"
    narrow = df.Problem(X[:, :60], labels, "squared_hinge", lam=1 / 1500)  # a factorisation costs next to nothing
    assert Auto(narrow, RandomSource(0)).phase == "newton"


def test_a_failed_trial_does_not_leave_it_to_coordinate_steps_for_ever() -> None:
    """Nearly as many columns as rows, far from zero in the mean: coordinate steps get nowhere, truncated ones fail."""
    rng = np.random.default_rng(0)
    X = 480.0 + 30.0 * rng.normal(size=(300, 250))
    problem = df.Problem(X, rng.random(300) < 0.5, "squared_hinge", lam=1 / 300)
    result = df.solve(problem, tol=1e-6, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert phases(result)[-1] == "interior-point"  # after steps of Newton's method that had to end early
    assert result.n_epochs < 50


def test_estimates_that_a_certificate_contradicts_are_forgotten() -> None:
    """Tiny weights and an intercept: coordinate steps stop moving long before the optimum, and take that for an arrival."""
    rng = np.random.default_rng(0)
    X = (rng.random((60, 30)) < 0.05).astype(float)
    y = 8.0 * rng.normal(size=60)
    problem = df.Problem(
        X, y, "squared_epsilon_insensitive", 1.0 / 60, sample_weight=1e-6 * rng.random(60), fit_intercept=True
    )
    run = Auto(problem, RandomSource(0))
    run.start(np.zeros(60), 0.0)
    run.observe(1.0, 1e-9)
    run.foresee(1e-3, 1e-9)
    run.foresee(1e-12, 1e-9)
    run.observe(5e-3, 1e-9)
    assert [gap for _, gap in run.history] == [1.0, 1e-3, 5e-3]
    assert df.solve(problem, tol=1e-9, random_state=0).status is df.Status.CONVERGED
