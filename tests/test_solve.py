"""`solve`: every solver reaches the optimum that others find, and stops when and how it should."""

from __future__ import annotations

import gc
import math
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import sklearn.linear_model
from problems import CORNERED, FORMS, SOLVERS, dense, make_problem, solvers_of
from reference import Reference
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import dualfree as df
from dualfree.solvers.auto import Auto
from dualfree.solvers.base import RandomSource, Solver
from dualfree.solvers.newton import Newton
from dualfree.solvers.prox_sdca import Permutations, ProxSdca
from dualfree.solvers.visits import visit_rows
from dualfree.testing import check_solver


@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_battery(solver: str) -> None:
    check_solver(solver)


@pytest.mark.parametrize(
    ("solver", "options"),
    [("adfsdca+", {"step": "safe"}), ("adfsdca+", {"shrink": 1.0}), ("prox-sdca", {"order": "uniform"})],
)
def test_battery_with_options(solver: str, options: dict[str, Any]) -> None:
    check_solver(solver, **options)


# --- the same optimum as scikit-learn and scipy -----------------------------------------------------------------------


def peer_optimum(problem: df.Problem) -> float:
    """P* by scikit-learn (squared, logistic) or scipy (squared hinge)."""
    X, y, s, n = dense(problem), problem.y, problem.sample_weight, problem.n
    if problem.loss.name == "squared":
        peer = sklearn.linear_model.Ridge(
            problem.lam * n, fit_intercept=problem.fit_intercept, solver="cholesky", tol=0
        )
        peer.fit(X, y, s)
        return problem.primal(peer.coef_, float(peer.intercept_))
    if problem.loss.name == "logistic":
        peer = sklearn.linear_model.LogisticRegression(
            C=1 / (problem.lam * n),
            fit_intercept=problem.fit_intercept,
            solver="newton-cholesky",
            tol=1e-12,
            max_iter=500,
        )
        peer.fit(X, y, s)
        return problem.primal(peer.coef_[0], float(np.ravel(peer.intercept_)[0]))

    def value_and_gradient(v: np.ndarray) -> tuple[float, np.ndarray]:
        w, b = v[: problem.d], v[problem.d] if problem.fit_intercept else 0.0
        e = np.maximum(0.0, 1 - y * (X @ w + b))
        gradient = -X.T @ (s * y * e) / n + problem.lam * w
        if problem.fit_intercept:
            gradient = np.append(gradient, -np.mean(s * y * e))
        return 0.5 * np.mean(s * e**2) + 0.5 * problem.lam * w @ w, gradient

    start = np.zeros(problem.d + problem.fit_intercept)
    options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-12}
    return float(scipy.optimize.minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options).fun)


@pytest.mark.parametrize("weights", ["none", "zeros"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
def test_same_optimum_as_peers(loss: str, fit_intercept: bool, weights: str) -> None:
    problem = make_problem(loss, n=80, d=6, lam=0.01, fit_intercept=fit_intercept, weights=weights)
    best = peer_optimum(problem)
    for solver in (*SOLVERS, "auto"):
        result = df.solve(problem, solver, tol=1e-10, max_epochs=20_000, random_state=0)
        assert result.status is df.Status.CONVERGED
        found = problem.primal(result.w, result.intercept)
        assert abs(found - best) <= 1e-9 * best, solver
        assert result.certificate.dual <= best * (1 + 1e-9)


@pytest.mark.parametrize("loss", CORNERED)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_losses_with_corners(loss: str, fit_intercept: bool) -> None:
    """Not smooth: solved by exact dual steps alone, and certified by P − D."""
    problem = make_problem(loss, n=20, d=3, lam=0.1, fit_intercept=fit_intercept, weights="random")
    reference = Reference(problem)
    for solver in (*solvers_of(loss), "auto"):
        result = df.solve(problem, solver, tol=1e-7, max_epochs=50_000, random_state=0)
        assert result.status is df.Status.CONVERGED
        assert 0 <= reference.suboptimality(result.w, result.intercept) <= result.certificate.gap


@pytest.mark.parametrize("n", [1, 2, 5])
def test_shapes_of_any_kind(n: int) -> None:
    """Fewer rows than columns, a single row, a single column."""
    rng = np.random.default_rng(n)
    for d in (1, 12):
        X, y = rng.normal(size=(n, d)), rng.normal(size=n)
        best = np.linalg.solve(X.T @ X + 0.1 * n * np.eye(d), X.T @ y)
        for solver in SOLVERS:
            result = df.solve(df.Problem(X, y, "squared", 0.1), solver, tol=1e-12, max_epochs=20_000, random_state=0)
            assert np.allclose(result.w, best, rtol=1e-4, atol=1e-6), solver


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_data_gives_the_same_answer(form: str) -> None:
    problem = make_problem("logistic", form=form, fit_intercept=True)
    right = make_problem("logistic", fit_intercept=True)
    best = float(Reference(right).optimum[2])
    tolerance = 1e-6 if "32" in form else 1e-9  # rounded to float32, the data are other data
    for solver in SOLVERS:
        result = df.solve(problem, solver, tol=1e-9, max_epochs=20_000, random_state=0)
        assert right.primal(result.w, result.intercept) == pytest.approx(best, rel=tolerance)


def test_real_data() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    problem = df.Problem(scale(X), y, "logistic", 1e-3, fit_intercept=True)
    best = peer_optimum(problem)
    for solver in ("importance", "adfsdca+", "prox-sdca", "auto"):
        result = df.solve(problem, solver, tol=1e-8, max_epochs=5000, random_state=0)
        assert result.status is df.Status.CONVERGED
        assert -1e-12 <= problem.primal(result.w, result.intercept) - best <= result.certificate.gap + 1e-12


def test_large_steps_of_the_logistic_loss() -> None:
    """q = v/(λn) in the hundreds: exact steps that once jumped to and fro."""
    problem = make_problem("logistic", n=40, d=4, scale=30.0, lam=0.1)
    result = df.solve(problem, "prox-sdca", tol=1e-8, max_epochs=1000, random_state=0)
    assert result.status is df.Status.CONVERGED


# --- stopping ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-10])
def test_tol_is_relative_to_the_objective_at_zero(tol: float) -> None:
    problem = make_problem("logistic", lam=1e-3)
    result = df.solve(problem, "prox-sdca", tol=tol, random_state=0, evaluate_every=1)
    assert result.certificate.gap <= tol * problem.at_zero
    assert result.trace.gap[-2] > tol * problem.at_zero


def test_looser_tol_costs_no_more() -> None:
    problem = make_problem("logistic", lam=1e-3)
    epochs = [df.solve(problem, "prox-sdca", tol=tol, random_state=0).n_epochs for tol in (1e-2, 1e-6, 1e-10)]
    assert epochs == sorted(epochs)


@pytest.mark.parametrize("max_epochs", [0, 1, 7])
def test_max_epochs(max_epochs: int) -> None:
    problem = make_problem("logistic", lam=1e-6)
    result = df.solve(problem, "dfsdca", tol=1e-12, max_epochs=max_epochs, random_state=0)
    assert result.status is df.Status.MAX_EPOCHS
    assert result.n_epochs == max_epochs
    assert "max_epochs" in result.message
    assert math.isfinite(result.certificate.gap)


def test_max_time() -> None:
    problem = make_problem("logistic", n=3000, d=20, lam=1e-9)
    df.solve(problem, "dfsdca", max_epochs=1, random_state=0)  # compiled
    began = time.perf_counter()
    result = df.solve(problem, "dfsdca", tol=0.0, max_epochs=10**9, max_time=0.3, random_state=0)
    assert result.status is df.Status.MAX_TIME
    assert time.perf_counter() - began < 5.0
    assert result.n_epochs > 0
    assert result.certificate.gap >= 0
    assert df.solve(problem, max_time=0.0, random_state=0).status is df.Status.MAX_TIME


def test_callback_can_stop_the_run() -> None:
    problem = make_problem("logistic", lam=1e-6)
    states = []

    def stop(state: df.State) -> bool:
        states.append((state.epoch, state.certificate.gap, state.passes, len(state.trace)))
        return state.epoch >= 3

    result = df.solve(problem, "prox-sdca", tol=1e-14, callback=stop, evaluate_every=1, random_state=0)
    assert result.status is df.Status.INTERRUPTED
    assert "callback" in result.message
    assert [state[0] for state in states] == [0, 1, 2, 3]
    assert [state[2] for state in states] == [0.0, 1.0, 2.0, 3.0]
    assert result.certificate.gap == min(state[1] for state in states)


def test_an_error_in_the_callback_is_not_swallowed() -> None:
    def fail(state: df.State) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        df.solve(make_problem(), callback=fail)


@pytest.mark.parametrize("epoch", [0, 4])
def test_keyboard_interrupt_returns_the_best_point(epoch: int) -> None:
    def press(state: df.State) -> None:
        if state.epoch == epoch:
            raise KeyboardInterrupt

    problem = make_problem("logistic", lam=1e-5)
    result = df.solve(problem, "prox-sdca", tol=1e-14, callback=press, evaluate_every=1, random_state=0)
    assert result.status is df.Status.INTERRUPTED
    assert "Ctrl-C" in result.message
    assert result.n_epochs == epoch
    assert result.certificate.gap >= Reference(problem).suboptimality(result.w)


class _HalfAnEpoch(ProxSdca):
    """Ctrl-C comes after half of the first epoch."""

    name = "half-an-epoch"

    @property
    def visits_per_call(self) -> int:
        return self.problem.n // 2

    def visit(self, count: int) -> None:
        super().visit(count)
        raise KeyboardInterrupt


def test_ctrl_c_in_the_first_epoch_keeps_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(df.SOLVERS, "half-an-epoch", _HalfAnEpoch)
    problem = make_problem("logistic", n=200)
    result = df.solve(problem, "half-an-epoch", random_state=0)
    assert result.status is df.Status.INTERRUPTED
    assert result.certificate.gap < 0.7 * problem.at_zero
    assert result.w.any()
    again = df.solve(problem, "half-an-epoch", random_state=0, warm_start=result)
    assert again.certificate.gap <= result.certificate.gap
    assert again.trace[-1].gap < 0.7 * problem.at_zero


def test_ctrl_c_while_auto_changes_its_method(monkeypatch: pytest.MonkeyPatch) -> None:
    def press(self: Newton, alpha: np.ndarray, intercept: float) -> None:
        alpha[:] = 7.0  # it may have begun to write
        raise KeyboardInterrupt

    monkeypatch.setattr(Auto, "_first_method", lambda self: Permutations)
    monkeypatch.setattr(Auto, "_look_at_sample", lambda self: None)
    problem = make_problem("logistic", n=60, lam=1e-6)
    assert "newton" in df.solve(problem, tol=1e-9, random_state=0).trace.phase
    monkeypatch.setattr(Newton, "start", press)
    result = df.solve(problem, tol=1e-9, random_state=0)
    assert result.status is df.Status.INTERRUPTED
    reference = Reference(problem)
    assert result.certificate.gap >= reference.suboptimality(result.w)
    assert 0.0 <= (result.alpha * problem.y).min() <= (result.alpha * problem.y).max() <= 1.0

    auto = Auto(problem, RandomSource(0))
    auto.start(np.zeros(problem.n), 0.0)
    auto.begin_epoch()
    auto.visit(problem.n)
    reached = [part.copy() for part in auto.candidate()[:2] if part is not None]
    assert reached[0].any()
    with pytest.raises(KeyboardInterrupt):
        auto._change(Newton)
    assert auto.phase == Permutations.name
    for before, after in zip(reached, auto.candidate(), strict=False):
        np.testing.assert_array_equal(after, before)


def test_after_ctrl_c_no_method_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point reached is certified, and that is all."""
    heard: list[float] = []

    def press(self: Permutations) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Auto, "_first_method", lambda self: Permutations)
    monkeypatch.setattr(Auto, "_look_at_sample", lambda self: None)
    monkeypatch.setattr(Auto, "observe", lambda self, gap, target: heard.append(gap))
    monkeypatch.setattr(Permutations, "end_epoch", press)
    problem = make_problem("logistic", n=60, lam=1e-2)
    result = df.solve(problem, tol=1e-9, random_state=0)
    assert result.status is df.Status.INTERRUPTED
    assert len(result.trace) == 2
    assert heard == [result.trace[0].gap]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_stop_far_from_the_optimum_keeps_the_weights(steps: int, fit_intercept: bool) -> None:
    """Newton's first α are worse than none: the gap at w is P at most, which α = 0 proves."""
    problem = make_problem("logistic", n=80, d=6, lam=1e-9, fit_intercept=fit_intercept)
    result = df.solve(problem, tol=1e-9, max_epochs=steps, random_state=0)
    assert result.status is df.Status.MAX_EPOCHS
    assert result.trace[-1].phase == "newton"
    assert result.w.any()
    assert result.certificate.relative_gap < 1.0
    assert result.certificate.gap == min(entry.gap for entry in result.trace)
    assert result.certificate.gap >= Reference(problem).suboptimality(result.w, result.intercept)
    again = df.certify(problem, result.w, result.intercept, result.alpha)
    assert again.gap == pytest.approx(result.certificate.gap, rel=1e-9)


class _OwnNumbers(ProxSdca):
    """A solver that draws when it is made, and keeps the generator by the usual name."""

    name = "own-numbers"

    def __init__(self, problem: df.Problem, rng: np.random.Generator) -> None:
        super().__init__(problem, rng)
        self.first = rng.permutation(problem.n)
        self.rng = rng


def test_solvers_get_a_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(df.SOLVERS, "own-numbers", _OwnNumbers)
    assert df.solve(make_problem(), "own-numbers", random_state=0).status is df.Status.CONVERGED


def test_auto_can_be_pickled_and_is_freed_at_once() -> None:
    problem = make_problem("logistic")
    copy = pickle.loads(pickle.dumps(Auto(problem, RandomSource(0))))
    assert copy.rng.random() == np.random.default_rng(0).random()
    assert copy.active.rng is copy.rng
    gc.collect()
    gc.disable()
    try:
        df.solve(problem, random_state=0)
        solvers = [kept for kept in gc.get_objects() if issubclass(type(kept), Solver)]  # a proxy would be asked
    finally:
        gc.enable()
    assert not [solver for solver in solvers if solver.problem is problem]


@pytest.mark.filterwarnings("error")
def test_an_overflow_is_told_without_warnings() -> None:
    X = np.random.default_rng(0).normal(size=(50, 6))
    y = X[:, 0] + X[:, 5]  # P* is not zero, which P itself would show
    weighted = df.Problem(1e100 * X[:, :5], y, loss="squared", lam=1e-140, sample_weight=np.arange(1.0, 51.0))
    assert df.solve(weighted, max_epochs=30, random_state=0).status is not df.Status.CONVERGED


@pytest.mark.filterwarnings("error")
def test_a_scale_that_overflows_other_bounds_is_certified() -> None:
    X = np.random.default_rng(0).normal(size=(50, 6))
    y = X[:, 0] + X[:, 5]
    result = df.solve(df.Problem(1e100 * X[:, :5], y, loss="squared", lam=1e-140), random_state=0)
    assert result.status is df.Status.CONVERGED
    rest = y - X[:, :5] @ np.linalg.lstsq(X[:, :5], y, rcond=None)[0]
    assert result.certificate.primal == pytest.approx(0.5 * np.mean(rest**2), rel=1e-12)


_INTERRUPTED = """
import signal, numpy as np, dualfree as df
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process begins with SIGINT ignored
X = np.random.default_rng(0).normal(size=(2000, 30))
problem = df.Problem(X, X[:, 0] > 0, "logistic", 1e-12)
ready = lambda state: print("ready", flush=True) if state.epoch == 1 else None
result = df.solve(problem, "dfsdca", tol=0.0, max_epochs=10**9, callback=ready, evaluate_every=1, random_state=0)
print(result.status, result.n_epochs > 0, 0 < result.certificate.gap < problem.at_zero * 1e9, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_real_ctrl_c(tmp_path: Path) -> None:
    """SIGINT in the middle of an epoch of a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED], stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert output.splitlines()[-1] == "interrupted True True"
    assert process.returncode == 0


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_tol_zero_ends(solver: str, fit_intercept: bool) -> None:
    """Floating point cannot do better: stalled, with a tiny gap, long before max_epochs."""
    problem = make_problem("logistic", n=25, lam=0.1, fit_intercept=fit_intercept, weights="random")
    result = df.solve(problem, solver, tol=0.0, max_epochs=100_000, random_state=0)
    assert result.status is df.Status.STALLED
    assert result.n_epochs < 200
    assert result.certificate.relative_gap < 1e-13


def test_step_paper_diverges_and_says_so() -> None:
    """The printed θ/p_i with stale probabilities: the best point until then, and what to use instead."""
    problem = make_problem("logistic", n=60, d=8, lam=1e-3)
    result = df.solve(problem, "adfsdca+", step="paper", tol=1e-10, random_state=0)
    assert result.status is df.Status.DIVERGED
    assert 'step="safe"' in result.message
    assert result.certificate.gap == result.trace.gap.min()
    assert result.certificate.gap >= Reference(problem).suboptimality(result.w)
    assert np.isfinite(result.w).all()
    for step in ("safe", "exact"):
        assert df.solve(problem, "adfsdca+", step=step, tol=1e-8, random_state=0).status is df.Status.CONVERGED


# --- seeds ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [*SOLVERS, "auto"])
def test_same_seed_same_bits(solver: str) -> None:
    problem = make_problem("logistic", n=100, weights="random", fit_intercept=True)
    first, second = (df.solve(problem, solver, tol=1e-8, max_epochs=20_000, random_state=3) for _ in range(2))
    assert np.array_equal(first.w, second.w)
    assert np.array_equal(first.alpha, second.alpha)
    assert first.certificate == second.certificate
    assert first.n_epochs == second.n_epochs
    generator = df.solve(problem, solver, tol=1e-8, max_epochs=20_000, random_state=np.random.default_rng(3))
    assert np.array_equal(first.w, generator.w)
    other = df.solve(problem, solver, tol=1e-8, max_epochs=20_000, random_state=4)
    assert solver == "auto" or not np.array_equal(first.alpha, other.alpha)  # Newton steps draw nothing
    most = first.certificate.distance_bound + other.certificate.distance_bound
    assert np.linalg.norm(first.w - other.w) <= most
    assert df.solve(problem, solver, max_epochs=2).n_epochs <= 2  # no seed at all


# --- warm starts ------------------------------------------------------------------------------------------------------


def test_warm_starts() -> None:
    problem = make_problem("logistic", fit_intercept=True, lam=1e-3)
    options = {"tol": 1e-9, "max_epochs": 20_000, "evaluate_every": 1}
    cold = df.solve(problem, "prox-sdca", random_state=0, **options)
    for start in (
        cold,
        {"alpha": cold.alpha, "intercept": cold.intercept},
        cold.alpha,
    ):
        warm = df.solve(problem, "prox-sdca", tol=1e-9, warm_start=start, random_state=1)
        assert (warm.status, warm.n_epochs) == (df.Status.CONVERGED, 0)
    for start in (cold.w, {"w": cold.w, "intercept": cold.intercept}, {"w": cold.w.tolist()}):
        warm = df.solve(problem, "prox-sdca", warm_start=start, random_state=1, **options)
        assert warm.status is df.Status.CONVERGED
        assert warm.n_epochs < cold.n_epochs


@pytest.mark.parametrize("solver", ["auto", "prox-sdca"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_weights_that_are_given_are_certified_as_they_are(loss: str, solver: str) -> None:
    """Weights at the optimum need no epoch, with α or without; neither do they where the method would begin elsewhere."""
    problem = make_problem(loss, n=60, fit_intercept=True, lam=1e-2)
    best = df.solve(problem, tol=1e-13, random_state=0)
    for start in ({"w": best.w, "intercept": best.intercept}, best, {"alpha": best.alpha, "intercept": best.intercept}):
        warm = df.solve(problem, solver, tol=1e-8, warm_start=start, random_state=1)
        assert (warm.status, warm.n_epochs) == (df.Status.CONVERGED, 0)
    both = {"alpha": np.zeros(problem.n) + 1e-3 * problem.y, "w": best.w, "intercept": best.intercept}
    first = df.solve(problem, solver, tol=0.0, max_epochs=1, warm_start=both, random_state=1).trace[0]
    assert first.primal == pytest.approx(problem.primal(best.w, best.intercept), rel=1e-12)


@pytest.mark.parametrize("w", [[1.0], [np.nan] * 5])
def test_weights_next_to_alpha_are_checked(w: list[float]) -> None:
    problem = make_problem("squared", n=20, d=5)
    with pytest.raises(ValueError, match="warm_start"):
        df.solve(problem, warm_start={"alpha": np.ones(20), "w": w})


def test_warm_start_does_not_touch_the_vector_given() -> None:
    problem = make_problem("logistic")
    alpha = 0.3 * problem.y
    before = alpha.copy()
    df.solve(problem, warm_start=alpha, random_state=0)
    assert np.array_equal(alpha, before)


def test_warm_start_from_other_data() -> None:
    """A result of another problem with the same columns: its w is taken."""
    small, large = make_problem("logistic", n=20, lam=0.01), make_problem("logistic", n=200, lam=0.01)
    start = df.solve(large, tol=1e-9, random_state=0)
    assert df.solve(small, warm_start=start, tol=1e-9, random_state=0).status is df.Status.CONVERGED


def test_warm_start_outside_the_dual_domain() -> None:
    for loss in ("logistic", "squared_hinge", "hinge", "smoothed_hinge"):
        problem = make_problem(loss, lam=0.1)
        start = -5.0 * problem.y
        for solver in solvers_of(loss):
            result = df.solve(problem, solver, warm_start=start, tol=1e-6, max_epochs=20_000, random_state=0)
            assert result.status is df.Status.CONVERGED, (loss, solver)


def test_rows_of_weight_zero_have_no_alpha() -> None:
    problem = make_problem("squared", weights="zeros")
    result = df.solve(problem, warm_start=np.ones(problem.n), random_state=0)
    assert not result.alpha[problem.sample_weight == 0].any()


# --- the trace --------------------------------------------------------------------------------------------------------


def test_trace() -> None:
    problem = make_problem("logistic")
    result = df.solve(problem, "adfsdca+", tol=1e-6, evaluate_every=2, random_state=0)
    trace = result.trace
    assert trace.epoch.tolist() == list(range(0, 2 * len(trace), 2))
    assert np.all(np.diff(trace.seconds) >= 0)
    assert np.all(np.diff(trace.evaluation_seconds) > 0)
    assert np.allclose(np.diff(trace.passes), 4.0)  # two epochs of n visits and a scan
    assert trace.gap[-1] == result.certificate.gap
    assert np.all(trace.dual <= trace.primal)
    assert set(trace.phase) == {"adfsdca+"}
    quantiles = np.array([entry.residual_quantiles for entry in trace])
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    assert quantiles[0, -1] == pytest.approx(0.5)  # |κ| = |φ'(0)| at the start
    frame = trace.to_frame()
    assert len(frame) == len(trace)
    assert {"epoch", "passes", "seconds", "primal", "dual", "gap", "residual_q50", "residual_q100"} <= set(
        frame.columns
    )
    assert trace[0].epoch == 0
    assert [entry.epoch for entry in trace] == trace.epoch.tolist()
    with pytest.raises(AttributeError, match="no column 'speed'"):
        _ = trace.speed


def test_every_status_has_a_sentence() -> None:
    assert {str(status) for status in df.Status} == {
        "converged",
        "max_epochs",
        "max_time",
        "interrupted",
        "stalled",
        "diverged",
    }
    assert all(status.sentence.endswith(".") for status in df.Status)


def test_result_says_what_it_is() -> None:
    result = df.solve(make_problem("logistic"), "prox-sdca", random_state=0)
    assert "prox-sdca, converged" in repr(result)
    assert result.message.startswith("The certified gap")


@pytest.mark.parametrize("d", [3, 700, 9000])
def test_dense_rows_are_visited_like_sparse_ones(d: int) -> None:
    """Dense rows of usual length are added to w while the next one is multiplied with it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, d))
    problem = df.Problem(X, np.sign(X[:, 0] + rng.normal(size=40)), "squared_hinge", 0.1 * d / 40)
    sparse = scipy.sparse.csr_matrix(X)
    order = np.array([3, 3, *rng.permutation(40), *rng.integers(0, 40, size=60)], dtype=np.int32)
    seen = []
    for rows in (problem.rows, (sparse.data, sparse.indices, sparse.indptr)):
        loss, y, s, v = problem.loss.compiled, problem.y, problem.sample_weight, problem.row_norms_squared
        alpha, w, offset = np.zeros(40), np.zeros(d), np.zeros(1)
        scale = 1.0 / (problem.lam * 40)
        visit_rows(rows, loss, y, s, v, scale, 0.0, True, 1.0, 1.0, order[:0], alpha, w, offset)
        assert not alpha.any()
        travelled, gained, *_ = visit_rows(rows, loss, y, s, v, scale, 0.0, True, 1.0, 1.0, order, alpha, w, offset)
        assert np.allclose(w, problem.weights_of(alpha), rtol=0, atol=1e-12)
        seen.append((alpha, travelled, gained))
    assert np.allclose(seen[0][0], seen[1][0], rtol=0, atol=1e-12)
    assert seen[0][1:] == pytest.approx(seen[1][1:], rel=1e-9)
    assert seen[0][0].any()
