"""What coordinate steps say of the gap without a certificate: what each row had in it, and what an epoch leaves of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from problems import CORNERED, SMOOTH, make_problem

import dualfree as df
from dualfree._jit import kernel
from dualfree.solvers.auto import Auto
from dualfree.solvers.base import RandomSource
from dualfree.solvers.driver import Run
from dualfree.solvers.exactness import Exactness
from dualfree.solvers.guesses import gap_left, goes_on, part_of_epoch, rate_of
from dualfree.solvers.newton import Newton
from dualfree.solvers.prox_sdca import Permutations, ProxSdca
from dualfree.solvers.visits import visit_rows


@pytest.mark.parametrize("weight", [1.0, 0.3, 7.0])
@pytest.mark.parametrize("part", [0.5, 0.75, 1.0])
@pytest.mark.parametrize("loss", SMOOTH)
def test_a_visit_says_what_its_row_had_in_the_gap(loss: str, part: float, weight: float) -> None:
    """Of two rows one is all zeros and has nothing in the gap once it has been visited: the gap is what the other has."""
    rng = np.random.default_rng(1)
    worst, seen = 1.0, 0
    for _ in range(40):
        X, y = np.array([[rng.normal()], [0.0]]), np.array([1.0, -1.0])
        problem = df.Problem(X, y, loss=loss, lam=10.0 ** rng.uniform(-2, 0), sample_weight=np.array([weight, 1.0]))
        fixed = problem.rows, problem.loss.compiled, problem.y, problem.sample_weight, problem.row_norms_squared
        how = (1.0 / (2.0 * problem.lam), 0.0, True, 1.0 / problem.loss.smoothness, part)
        alpha, w, offset = np.array([weight * rng.uniform(0.1, 0.9), 0.0]), np.zeros(1), np.zeros(1)
        w[:] = problem.weights_of(alpha)
        visit_rows(*fixed, *how, np.array([1], dtype=np.uint32), alpha, w, offset)
        before, gap, z = alpha[0], 2.0 * (problem.primal(w) - problem.dual(alpha)), X[0, 0] * w[0]
        bend = problem.loss(z + 1e-4, 1.0) + problem.loss(z - 1e-4, 1.0) - 2.0 * problem.loss(z, 1.0)
        _, _, misfit = visit_rows(*fixed, *how, np.array([0], dtype=np.uint32), alpha, w, offset)
        inside = 0.1 * weight < abs(alpha[0]) < 0.9 * weight and before * alpha[0] > 0.0  # not cut off at an end
        if inside and gap > 1e-6 and bend > 0.3e-8 * problem.loss.smoothness:  # nor flat
            seen += 1
            worst = max(worst, misfit / gap, gap / misfit)
    assert seen >= 5
    assert worst <= (1.0 + 1e-6 if loss == "squared" else 2.5)


def rows_of(kind: str, rng: np.random.Generator) -> object:
    if kind == "dense":
        return rng.normal(size=(300, 400))
    return scipy.sparse.random(1500, 3000, density=0.01, format="csr", rng=rng)


@pytest.mark.parametrize("lam_n", [10.0, 1.0, 0.01])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "smoothed_hinge"])
def test_the_guess_is_about_the_gap(loss: str, kind: str, lam_n: float) -> None:
    """From the third epoch on, with strong regularisation and with hardly any, where D's gains say nothing of the gap.

    What one epoch divides by twenty and more is soon over, and may be overrated.
    """
    rng = np.random.default_rng(0)
    X = rows_of(kind, rng)
    n, d = X.shape  # type: ignore[attr-defined]
    margins = np.asarray(X @ rng.normal(size=d))
    y = margins / margins.std() + rng.normal(size=n) if loss == "squared" else np.sign(margins + rng.normal(size=n))
    problem = df.Problem(X, y, loss=loss, lam=lam_n / n)
    steps = Permutations(problem, np.random.default_rng(0))
    steps.start(np.zeros(n), 0.0)
    compared, factor = 0, 4.0 if loss == "logistic" else 2.5  # the curvature of a logistic loss changes along a step
    for epoch in range(1, 9):
        steps.begin_epoch()
        steps.visit(n)
        steps.end_epoch()
        gap = problem.primal(problem.weights_of(steps.alpha)) - problem.dual(steps.alpha)
        assert (steps.guess is not None) == (epoch >= 2)
        if epoch >= 3 and gap > 1e-10 * problem.at_zero:
            compared += 1
            assert steps.guess is not None
            assert 1.0 / factor <= steps.guess / gap <= (factor if steps.rate > 0.05 else 20.0)
    assert compared >= 2


@pytest.mark.parametrize("loss", CORNERED)
def test_nothing_is_guessed_where_the_loss_has_a_corner(loss: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5))
    steps = ProxSdca(df.Problem(X, np.sign(X[:, 0]), loss=loss, lam=0.1), rng)
    steps.start(np.zeros(50), 0.0)
    for _ in range(3):
        steps.begin_epoch()
        steps.visit(50)
        steps.end_epoch()
        assert steps.guess is None
        assert math.isfinite(steps.activity or math.inf)


@pytest.mark.parametrize("loss", ["squared_hinge", "squared"])
def test_numbers_whose_squares_overflow(loss: str) -> None:
    """κ can be held where q² and δ² cannot; and should it not be, nothing is known and a run goes on without."""
    rng = np.random.default_rng(0)
    X, y = 1e80 * rng.normal(size=(60, 90)), np.sign(rng.normal(size=60))
    steps = ProxSdca(df.Problem(X, y, loss=loss, lam=1e-3), np.random.default_rng(0))
    steps.start(np.zeros(60), 0.0)
    for _ in range(2):
        steps.begin_epoch()
        steps.visit(60)
        steps.end_epoch()
    assert steps.guess is not None
    assert 1e-6 < steps.guess < 10.0
    steps.begin_epoch()
    steps.misfit = math.inf
    steps.end_epoch()
    assert steps.guess is None
    assert steps.activity is None


def test_a_short_epoch_makes_its_part_of_what_a_whole_one_would() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 400))
    steps = Permutations(df.Problem(X, np.sign(X[:, 0]), loss="squared_hinge", lam=1.0 / 300), rng)
    steps.start(np.zeros(300), 0.0)
    for part in (1.0, 1.0, 1.0, 0.5, 0.25):
        before = steps.guess
        steps.part_wanted = part
        steps.begin_epoch()
        steps.visit(300)
        steps.end_epoch()
        if part < 1.0:
            assert steps.guess == pytest.approx(before * steps.rate**part)
    assert 0.0 < steps.rate < 1.0
    assert rate_of(3.0, 2.0) == 1.0  # a sum that grows says that nothing is gained, not that something is lost
    assert gap_left(2.0, 0.5) < gap_left(2.0, 1.0) < 2.0


def a_run(tol: float) -> Run:
    X = np.random.default_rng(0).normal(size=(300, 400))
    problem = df.Problem(X, np.sign(X[:, 0]), loss="squared_hinge", lam=1.0 / 300)
    steps = Permutations(problem, np.random.default_rng(0))
    run = Run(problem, steps, tol=tol, max_epochs=99, max_time=None, callback=None, evaluate_every=None)
    run.begin(None, 0.0)
    return run


@pytest.mark.parametrize(
    ("activities", "guess", "due"),
    [
        ((1.0, 0.2), 1e-3, False),  # quick: the guess says that there is a way to go
        ((1.0, 0.2), 0.8e-6, True),
        ((1.0, 0.2), 0.95e-6, False),  # near the target: a little more, rather than a certificate in vain
        ((1.0, 0.5), 1e-3, True),  # slow, and many epochs to go: what is it that makes it slow?
        ((1.0, 0.5), 1e-5, False),  # slow, but nearly there
        ((1.0, 0.2), None, True),  # nothing is known
    ],
)
def test_when_the_first_certificate_is_due(activities: tuple[float, float], guess: float | None, due: bool) -> None:
    run = a_run(1e-6)
    for activity in activities:
        run.epoch += 1
        run.solver.activity = activity
        run.solver.guess = None if guess is None or run.epoch == 1 else guess * run.problem.at_zero
        is_due = run._evaluation_is_due()
        assert is_due == (due and run.epoch == 2)


@kernel
def _goes_on(guess: float, before: float, enough: float, enough_guessed: float) -> bool:
    return bool(goes_on(guess, before, enough, enough_guessed))


@pytest.mark.parametrize(
    ("guess", "before", "goes"),
    [
        (1e-3, math.inf, True),  # the first epoch rarely goes far enough
        (1e-3, 1e-2, True),  # quick, and a way to go
        (1e-3, 2e-3, False),  # slow, with a way to go: a certificate
        (3e-5, 6e-5, False),  # the same, five epochs from the end
        (1e-5, 2e-5, True),  # nearly there
        (1.3e-6, 2.6e-6, False),  # half an epoch is enough
        (1e-6, 1e-5, False),
        (0.0, 1e-5, False),
        (2e-3, 1e-3, False),  # it grows
        (math.nan, 1e-3, False),
    ],
)
def test_whether_another_epoch_comes_before_the_first_certificate(guess: float, before: float, goes: bool) -> None:
    """With 1e-6 as enough; and after the first certificate it is the guess alone that counts."""
    assert _goes_on(guess, before, math.nan, 1e-6) == goes
    assert _goes_on(guess, before, 0.5e-3, 0.0) == (guess > 0.5e-3)
    if 1e-6 < guess < before < math.inf:
        rate = math.log(before / guess)
        whole = part_of_epoch(guess, 1e-6, rate) == 1.0
        run = a_run(1e-6 / 0.85)
        run.target, run.epoch, run.solver.guess, run.first_activity = 1e-6 / 0.85, 2, guess, before
        run.solver.activity = guess
        assert goes == (whole and not run._evaluation_is_due())


def test_certificates_in_vain_become_rare() -> None:
    """As many epochs may pass without one as there have been; and a short epoch is followed by one."""
    run = a_run(1e-6)
    run.trace.append(run.trace[-1])
    run.activity = run.solver.activity = 1.0
    for last, wait in ((2, 10), (12, 12), (40, 40)):
        object.__setattr__(run.trace[-1], "epoch", last)
        for epoch in (last + 1, last + wait - 1, last + wait):
            run.epoch = epoch
            assert run._evaluation_is_due() == (epoch == last + wait)
    run.epoch, run.solver.part_wanted = 41, 0.5
    assert run._evaluation_is_due()


def test_what_is_known_at_the_beginning_says_nothing_of_the_zero_point() -> None:
    """A method that moved on from zero at once knows the gap there; that zero is far from the optimum does not refute it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 400))
    problem = df.Problem(X, np.sign(X @ rng.normal(size=400) + 20.0 * rng.normal(size=3000)), lam=1e-2)
    steps = Newton(problem, rng)
    steps.given_w = X.T @ problem.y / 3000
    run = Run(problem, steps, tol=1e-3, max_epochs=99, max_time=None, callback=None, evaluate_every=None)
    steps.begins_at_zero = True
    steps.start(np.zeros(problem.n), 0.0)
    assert steps.gap_estimate is not None
    steps.gap_estimate = 1e-6 * problem.at_zero
    run._evaluate()
    assert run.trace[-1].gap > 0.1 * problem.at_zero
    assert run.solver.optimism == 1.0
    steps.gap_estimate = 1e-6 * problem.at_zero
    run._evaluate()  # of the point where it is: now it is refuted
    assert run.solver.optimism == pytest.approx(run.trace[-1].gap / (1e-6 * problem.at_zero))


def test_a_method_hears_by_how_much_it_was_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next truncated step is solved as exactly as that asks for: its residual would not let tol be met otherwise."""
    problem = make_problem("logistic", n=400, d=30, lam=1e-3)
    monkeypatch.setattr(Newton, "direct", staticmethod(lambda problem: False))
    monkeypatch.setattr("dualfree.solvers.small_step.suits", lambda problem: False)
    wanted = []
    begin = Exactness.begin
    monkeypatch.setattr(
        Exactness,
        "begin",
        lambda self, energy, target, **how: wanted.append(target) or begin(self, energy, target, **how),
    )
    auto = Auto(problem, RandomSource(0))
    auto.active = Newton(problem, RandomSource(0))
    auto.target = auto.active.target = 1e-6
    auto.start(np.zeros(400), 0.0)
    auto.optimism = 7.0
    auto.visit(400)
    assert wanted == [pytest.approx(1e-6 / 7.0)]
