"""Truncated Newton steps on trial: they take over where they are cheaper, and give way where they are not."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dualfree as df
from dualfree.losses import Logistic, SquaredHinge
from dualfree.solvers import auto
from dualfree.solvers import newton as newton_module
from dualfree.solvers.auto import Auto
from dualfree.solvers.base import RandomSource
from dualfree.solvers.hessian import factorised, product_cost
from dualfree.solvers.newton import Newton
from dualfree.solvers.prox_sdca import Permutations
from dualfree.solvers.trial import Trial


def hashed(loss: str, lam_n: float, fit_intercept: bool = False, n: int = 6000, d: int = 2500) -> df.Problem:
    """Short rows, each column as frequent as another, more columns than a Hessian may have."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(n, d, density=0.008, format="csr", rng=rng, data_rvs=rng.standard_normal)
    y = X @ rng.normal(size=d) + rng.logistic(size=n) > 0.5
    return df.Problem(X, y, loss=loss, lam=lam_n / n, fit_intercept=fit_intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_truncated_steps_take_over_where_they_are_cheaper(
    monkeypatch: pytest.MonkeyPatch, loss: str, fit_intercept: bool
) -> None:
    problem = hashed(loss, 0.5 if loss == "logistic" else 1.0, fit_intercept)
    result = df.solve(problem, tol=1e-8, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert result.trace[-1].phase == Newton.name
    monkeypatch.setattr(Trial, "is_cheap", lambda *_: False)
    monkeypatch.setattr(Auto, "_truncated_steps_may_be_quick", lambda _: False)
    without = df.solve(problem, tol=1e-8, random_state=0)
    assert Newton.name not in {entry.phase for entry in without.trace}
    assert abs(result.certificate.primal - without.certificate.primal) <= 1e-8 * problem.at_zero
    apart = float(np.linalg.norm(result.w - without.w))
    assert apart <= result.certificate.distance_bound + without.certificate.distance_bound
    # an epoch of coordinate steps costs more than three passes of the others
    assert result.trace[-1].passes < 1.5 * without.trace[-1].passes


def test_steps_are_tried_at_once_where_rows_matter_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where adaptive visits cannot help, they need not come before a trial; nor may permutations go on for ever."""
    monkeypatch.setattr(Auto, "_truncated_steps_may_be_quick", lambda _: False)
    rng = np.random.default_rng(0)
    n, blocks, each = 6000, 8, 400
    codes = np.minimum(rng.zipf(1.5, size=(n, blocks)) - 1, each - 1) + each * np.arange(blocks)
    X = scipy.sparse.csr_matrix((np.ones(codes.size), codes.ravel(), np.arange(n + 1) * blocks), (n, blocks * each))
    y = X @ rng.normal(size=blocks * each) + 2.0 * rng.logistic(size=n) > 0
    problem = df.Problem(X, y, loss="squared_hinge", lam=1.0 / n)
    result = df.solve(problem, tol=1e-6, random_state=0)
    assert [entry.phase for entry in result.trace] == ["prox-sdca", "prox-sdca", "newton"]
    monkeypatch.setattr(Auto, "_rows_matter_alike", lambda _: False)
    later = df.solve(problem, tol=1e-6, random_state=0)
    assert later.n_epochs > result.n_epochs


def topics(lam_n: float, n: int = 4000, d: int = 2200) -> df.Problem:
    """Rows of unit length with five factors behind them, as with words: the Hessian has large eigenvalues far apart."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(n, d, density=30 / d, format="csr", rng=rng)
    row = np.repeat(np.arange(n), np.diff(X.indptr))
    factors = rng.normal(size=(n, 5)) / np.sqrt(np.arange(1, 6))
    X.data = np.einsum("ij,ij->i", factors[row], rng.normal(size=(d, 5))[X.indices])
    X = scipy.sparse.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))))
    return df.Problem(X, X @ rng.normal(size=d) + 0.1 * rng.logistic(size=n) > 0, lam=lam_n / n)


def test_a_quick_first_step_is_the_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = hashed("logistic", 0.1)
    result = df.solve(problem, tol=1e-8, random_state=0)
    assert {entry.phase for entry in result.trace[1:]} == {Newton.name}
    assert result.status is df.Status.CONVERGED
    monkeypatch.setattr(Auto, "_truncated_steps_may_be_quick", lambda _: False)
    later = df.solve(problem, tol=1e-8, random_state=0)
    assert len({entry.phase for entry in later.trace}) > 1
    assert result.trace[-1].passes < later.trace[-1].passes


def test_a_slow_first_step_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs four passes; all else is as without."""
    problem = topics(0.01)
    run = Auto(problem, RandomSource(0))
    run.start(np.zeros(problem.n), 0.0)
    run.begin_epoch()
    assert run._spent_on_trial == 4.0
    assert isinstance(run.active, Permutations)
    looked = df.solve(problem, tol=1e-3, random_state=0)
    monkeypatch.setattr(Auto, "_truncated_steps_may_be_quick", lambda _: False)
    without = df.solve(problem, tol=1e-3, random_state=0)
    assert [entry.phase for entry in looked.trace[1:]] == [entry.phase for entry in without.trace[1:]]
    assert [entry.gap for entry in looked.trace] == [entry.gap for entry in without.trace]
    assert looked.trace[1].passes == without.trace[1].passes + 4
    assert looked.w.tobytes() == without.w.tobytes()


def test_no_look_where_coordinate_steps_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks(problem: df.Problem, alpha: float = 0.0) -> bool:
        run = Auto(problem, RandomSource(0))
        run.start(np.full(problem.n, alpha), 0.0)
        return run.looks

    assert looks(topics(0.01))
    assert not looks(topics(0.01), 0.1)  # a point to begin from
    assert not looks(topics(1.0))  # L ‖x‖²/(λn) = 1/4
    assert not looks(topics(0.01, n=2100))  # fewer rows than columns
    assert looks(one_hot(0.1))
    assert not looks(one_hot(30.0))
    assert not looks(hashed("smoothed_hinge", 0.01))  # no row is curved at zero, a step from there says nothing
    assert looks(topics(0.1))  # 2.5 epochs, each as dear as 2.75 products
    monkeypatch.setattr(auto, "_SLOW", 6.9)
    assert not looks(topics(0.1))
    monkeypatch.setattr(auto, "_SLOW", 6.8)
    assert looks(topics(0.1))


def one_hot(lam_n: float, per_row: int = 8, n: int = 6000, each: int = 400) -> df.Problem:
    """Short rows of ones, a quarter of whose labels are turned round."""
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.zipf(1.5, size=(n, per_row)) - 1, each - 1) + each * np.arange(per_row)
    X = scipy.sparse.csr_matrix((np.ones(codes.size), codes.ravel(), np.arange(n + 1) * per_row), (n, per_row * each))
    y = (X @ rng.normal(size=per_row * each) > 0) ^ (rng.random(n) < 0.25)
    return df.Problem(X, y, loss="squared_hinge", lam=lam_n / n)


def test_a_first_step_with_flat_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows are short, a look is cheap: it may come before any epoch."""
    result = df.solve(one_hot(0.1), tol=1e-6, random_state=0)
    assert {entry.phase for entry in result.trace[1:]} == {Newton.name}
    monkeypatch.setattr(auto, "_CHEAP_LOOK", 100.0)
    later = df.solve(one_hot(0.1), tol=1e-6, random_state=0)
    assert {entry.phase for entry in later.trace[1:]} != {Newton.name}
    assert result.certificate.primal == pytest.approx(later.certificate.primal, rel=2e-6)


def test_what_a_look_has_cost_is_no_reason_against_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is spent either way; only what a trial itself has spent limits it."""
    problem = topics(0.01)
    run = Auto(problem, RandomSource(0))
    run.start(np.zeros(problem.n), 0.0)
    run.begin_epoch()
    assert (run._spent_on_trial, run._spent_on_steps) == (4.0, 0.0)
    asked = []
    monkeypatch.setattr(Trial, "is_cheap", lambda problem, others, spent: asked.append(spent))
    run._truncated_steps_may_pay(50.0, 6.0, 0.1)
    assert asked == [0.0]


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize(("rate", "gain", "refused"), [(1.5, 0.51, True), (1.5, 0.49, False), (1.7, 0.8, False)])
def test_what_a_first_step_has_to_promise(
    loss: str, rate: float, gain: float, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To be quick, or to leave much of P: labels that are not explained make for few Newton steps.

    With the logistic loss a quadratic that explains every label gains 0.72 P(0), with the squared hinge all.
    """
    problem = topics(0.01) if loss == "logistic" else one_hot(0.1)
    gain *= 0.72 if loss == "logistic" else 1.0

    def visit(self: Newton, count: int) -> None:
        assert self.refuses is not None
        self.refused = self.refuses(rate, gain * problem.at_zero)

    monkeypatch.setattr(Newton, "visit", visit)
    run = Auto(problem, RandomSource(0))
    run.start(np.zeros(problem.n), 0.0)
    run._look_at_a_step()
    assert isinstance(run.active, Permutations if refused else Newton)
    assert run._on_trial != refused


def test_the_gain_is_that_of_the_quadratic_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products with preconditioned conjugate gradients, against the model of P at zero along what they found."""
    problem = topics(0.01)
    newton = Newton(problem, RandomSource(0))
    newton.start(np.zeros(problem.n), 0.0)
    found: list[Any] = []
    step = newton_module.LinearCg.step

    def recorded(self: Any, times: Any) -> None:
        step(self, times)
        found.append(self.point.copy())

    monkeypatch.setattr(newton_module.LinearCg, "step", recorded)
    told: list[float] = []
    newton.refuses = lambda rate, gain: bool(told.extend((rate, gain))) or True
    newton.visit(problem.n)
    assert newton.refused
    assert not newton.w.any()
    assert len(found) == 2
    margins = problem.margins(found[-1])
    bend = 0.25 * float(margins @ margins) / problem.n + problem.lam * float(found[-1] @ found[-1])
    slope = float(problem.gradient(np.zeros(problem.d)) @ found[-1])
    assert told[1] == pytest.approx(-slope - 0.5 * bend, rel=1e-9)


def test_a_look_is_at_one_step_of_many_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 32 rows for each column, Newton's method would begin on a part of them."""
    problem = topics(0.01, n=70_000, d=2100)
    looked = df.solve(problem, tol=1e-2, random_state=0, max_epochs=2)
    monkeypatch.setattr(Auto, "_truncated_steps_may_be_quick", lambda _: False)
    without = df.solve(problem, tol=1e-2, random_state=0, max_epochs=2)
    assert looked.trace[-1].passes == without.trace[-1].passes + 4


def test_time_is_up_during_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of coordinate steps comes after it, not an epoch of them."""
    problem = topics(0.01)
    calls: list[int] = []
    visit, visit_newton = Permutations.visit, Newton.visit

    def slow(self: Newton, count: int) -> None:
        time.sleep(0.2)
        visit_newton(self, count)

    def counted(self: Permutations, count: int) -> None:
        calls.append(count)
        visit(self, count)

    monkeypatch.setattr(Newton, "visit", slow)
    monkeypatch.setattr(Permutations, "visit", counted)
    monkeypatch.setattr(Permutations, "visits_per_call", 500)
    result = df.solve(problem, tol=1e-8, random_state=0, max_time=0.1)
    assert result.status is df.Status.MAX_TIME
    assert calls == [500]


@pytest.mark.parametrize("evaluate_every", [None, 30])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_a_trial_that_fails_costs_a_part_only(
    monkeypatch: pytest.MonkeyPatch, loss: str, evaluate_every: int | None
) -> None:
    """Newton steps that get nowhere: the coordinate steps go on from where they were, and the trial stays within its stake."""
    problem = hashed(loss, 0.03)
    trials: list[Trial] = []
    begin = Trial.begin

    def remembered(self: Trial, *arguments: Any) -> None:
        trials.append(self)
        begin(self, *arguments)

    def in_vain(self: Newton, count: int) -> None:
        assert self.most_products <= 1 + trials[-1].most * trials[-1].others
        self.decrement, self.gap_estimate = 1.0, problem.at_zero
        self.rows_touched += 9 * problem.n

    monkeypatch.setattr(Trial, "begin", remembered)
    monkeypatch.setattr(Newton, "visit", in_vain)
    monkeypatch.setattr(Auto, "_truncated_steps_may_be_quick", lambda _: False)
    result = df.solve(problem, tol=1e-8, random_state=0, evaluate_every=evaluate_every)
    assert trials
    assert len(set(map(id, trials))) == 1  # a second one goes on with the first
    assert result.status is df.Status.CONVERGED
    assert result.trace[-1].phase != Newton.name
    assert trials[-1].spent <= trials[-1].stake * trials[-1].others + 9


def test_a_trial_does_not_hasten_the_last_resort() -> None:
    """Steps without a budget come after a hundred passes of coordinate steps; those of a trial are none."""
    problem = hashed("logistic", 0.1)
    run = Auto(problem, RandomSource(0))
    run.trial = Trial(Newton(problem, RandomSource(0)), target=1e-6)
    run.trial.spent = 150.0
    assert not run._second_order_is_cheaper(1e4, 240.0, 1e-3)
    assert run._second_order_is_cheaper(1e4, 260.0, 1e-3)
    gone = run._cost_in_all(10.0, 240.0, 1e-3)
    run.trial = None
    assert gone == run._cost_in_all(10.0, 90.0, 1e-3)
    assert run._second_order_is_cheaper(1e4, 110.0, 1e-3)


def test_no_trial_of_what_is_known_to_be_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows than columns; dense rows; problems that are solved in a few epochs."""
    monkeypatch.setattr(Auto, "_try_truncated_steps", lambda *_: pytest.fail("a trial"))
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(2600, 2100))
    problems = [
        hashed("logistic", 0.1, n=2000),
        hashed("logistic", 30.0),
        df.Problem(dense, dense[:, 0] > 0, lam=1e-4),
    ]
    for problem in problems:
        assert df.solve(problem, tol=1e-6, random_state=0, max_epochs=40).n_epochs > 2


@pytest.mark.parametrize(("loss", "stake", "most"), [(Logistic(), 0.3, 2.0), (SquaredHinge(), 0.1, 1.0)])
def test_what_a_trial_may_spend(loss: Any, stake: float, most: float) -> None:
    problem = hashed("logistic" if isinstance(loss, Logistic) else "squared_hinge", 1.0)
    newton: Any = SimpleNamespace(problem=problem, decrement=np.inf, most_products=0, gap_estimate=None)
    others = 100.0
    assert Trial.is_cheap(problem, 13 * product_cost(problem) / stake, 0.0)
    assert not Trial.is_cheap(problem, 13 * product_cost(problem) / stake, 2.0)
    trial = Trial(newton, target=1e-6)
    trial.begin(newton, 5.0, others * product_cost(problem))
    assert newton.most_products == pytest.approx(most * others, abs=1)

    def judged(passes: float, decrement: float, gap: float) -> bool:
        newton.decrement, newton.gap_estimate = decrement, gap
        return trial.still_pays(5.0 + stake * others + passes)

    logistic = isinstance(loss, Logistic)
    long, short = 1e-6 * np.exp(2 * most * others), 1e-6 * np.exp((most - stake) * others - 4.0)
    assert judged(-5.0, 1.01, long)
    assert judged(-1.0, 1.0, long)  # within the stake, whatever it gains
    assert not judged(1.0, 0.99, long)  # a hundredth with a pass: too long a way
    assert judged(2.0, 0.99 * np.exp(-1.0), long) == logistic  # a factor e with a pass; but the gap is far behind
    assert judged(3.0, 0.99 * np.exp(-2.0), short)  # the gap is near enough
    assert judged(4.0, 0.99 * np.exp(-3.0), long)  # the way is that of the best point
    assert judged(5.0, 0.5, 1e-5)  # the decrement has grown; but the gap has fallen, and is near the target
    assert not judged(5.5, 0.6, 1e-1)  # that, too
    assert judged(6.0, 0.6, 1e-6)  # arrived
    newton.gap_estimate = 1e-3
    newton.decrement = 1e-4
    assert trial.still_pays(500.0)
    newton.decrement = 0.9e-4
    assert not trial.still_pays(600.0)
    newton.decrement = 0.9e-5
    assert trial.still_pays(650.0)  # much was spent, little is left
    trial.begin(newton, 200.0, 1e6 * product_cost(problem))
    assert newton.most_products == 500


def test_a_trial_where_a_factorisation_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that can be told apart, and a squared hinge: each Newton step meets other rows, and needs hundreds of products."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(2500, 1000, density=0.03, format="csr", rng=rng, data_rvs=rng.standard_exponential)
    y = X @ rng.normal(size=1000) + rng.logistic(size=2500) > 0
    problem = df.Problem(X, y, "squared_hinge", lam=0.01 / 2500)
    result = df.solve(problem, tol=1e-6, random_state=0)
    assert result.status is df.Status.CONVERGED
    monkeypatch.setattr(Auto, "_truncated_steps_are_a_guess", False)
    monkeypatch.setattr(Auto, "_steps_are_short", lambda self: False)
    without = df.solve(problem, tol=1e-6, random_state=0)
    assert without.trace[-1].phase == Newton.name
    assert 10 * result.trace[-1].passes < without.trace[-1].passes


def test_a_budget_is_no_reason_to_factorise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps on trial end with their products; without a trial, so many products in vain call for the Hessian."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(2500, 1000, density=0.03, format="csr", rng=rng)
    problem = df.Problem(X, X @ rng.normal(size=1000) > 0, "squared_hinge", lam=1e-8)

    formed: list[int] = []
    monkeypatch.setattr(
        newton_module, "factorised", lambda total, *given: formed.append(len(total)) or factorised(total, *given)
    )
    for price, factors in ((100, []), (1, [1000])):
        newton = Newton(problem, RandomSource(0))
        newton.start(np.zeros(2500), 0.0)
        assert newton.dear
        newton.most_products, newton.full_price = 1, price
        newton.visit(2500)
        assert formed == factors


def test_what_is_known_of_a_run_stays_in_order() -> None:
    run = Auto(hashed("logistic", 1.0), RandomSource(0))
    run.history, run.since, run.proved = [(0.0, 1.0), (1.0, 0.5), (2.0, 0.3), (3.0, 0.2)], 2, 3
    run._forget(1)
    assert (len(run.history), run.since, run.proved) == (3, 1, 2)
    run._forget(2)
    assert (len(run.history), run.since, run.proved) == (2, 1, 2)
