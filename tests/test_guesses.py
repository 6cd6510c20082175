"""What coordinate steps say of the gap without a certificate: what each row had in it, and what an epoch leaves of it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from problems import CORNERED, SMOOTH, make_problem

import dualfree as df
from dualfree import team
from dualfree._jit import kernel
from dualfree.solvers.adaptive import Adaptive
from dualfree.solvers.auto import Auto
from dualfree.solvers.base import RandomSource
from dualfree.solvers.driver import Run
from dualfree.solvers.exactness import Exactness
from dualfree.solvers.guesses import evenness, gap_left, goes_on, part_of_epoch, rate_of
from dualfree.solvers.newton import Newton
from dualfree.solvers.prox_sdca import Permutations, ProxSdca
from dualfree.solvers.sample import Sample
from dualfree.solvers.visits import visit_rows
from dualfree.team import Team


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
        _, _, misfit, *_ = visit_rows(*fixed, *how, np.array([0], dtype=np.uint32), alpha, w, offset)
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
def _goes_on(guess: float, before: float, even: float, enough: float, enough_guessed: float) -> bool:
    return bool(goes_on(guess, before, even, enough, enough_guessed))


@pytest.mark.parametrize(
    ("guess", "before", "even", "goes"),
    [
        (1e-3, math.inf, 1.0, True),  # the first epoch rarely goes far enough
        (1e-3, 1e-2, 1.0, True),  # quick, and a way to go
        (1e-3, 1e-2, 0.11, True),
        (1e-3, 1e-2, 0.09, False),  # few rows matter: adaptive visits may be quicker still
        (7.9e-6, 7.9e-5, 0.09, True),  # not for less than an epoch
        (1e-3, 2e-3, 1.0, False),  # slow, with a way to go: a certificate
        (3e-5, 6e-5, 1.0, False),  # the same, five epochs from the end
        (1e-5, 2e-5, 1.0, True),  # nearly there
        (1.3e-6, 2.6e-6, 1.0, False),  # half an epoch is enough
        (1e-6, 1e-5, 1.0, False),
        (0.0, 1e-5, 1.0, False),
        (2e-3, 1e-3, 1.0, False),  # it grows
        (math.nan, 1e-3, 1.0, False),
    ],
)
def test_whether_another_epoch_comes_before_the_first_certificate(
    guess: float, before: float, even: float, goes: bool
) -> None:
    """With 1e-6 as enough; and after the first certificate it is the guess alone that counts."""
    assert _goes_on(guess, before, even, math.nan, 1e-6) == goes
    assert _goes_on(guess, before, even, 0.5e-3, 0.0) == (guess > 0.5e-3)
    if 1e-6 < guess < before < math.inf:
        rate = math.log(before / guess)
        whole = part_of_epoch(guess, 1e-6, rate) == 1.0
        run = a_run(1e-6 / 0.85)
        run.target, run.epoch, run.solver.guess, run.first_activity = 1e-6 / 0.85, 2, guess, before
        run.solver.activity, run.solver.even = guess, even
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


# --- how even residuals are ---------------------------------------------------------------------------------------------


def test_how_even_numbers_are() -> None:
    assert evenness(6.0, 12.0, 3.0) == 1.0  # 2, 2, 2
    assert evenness(5.0, 25.0, 100.0) == 0.01  # one of a hundred is all
    assert evenness(0.0, 0.0, 10.0) == 1.0  # nothing is left: nobody needs more visits than others
    assert evenness(1e200, math.inf, 10.0) == 1.0  # not known


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_an_epoch_says_how_even_the_residuals_were(loss: str, n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each had been worked out at its visit, by rows that have nothing in common: what one visit does, no other sees."""
    monkeypatch.setattr(team, "_LEAST_ENTRIES", 1)
    n, rng = 6000, np.random.default_rng(0)  # enough for several turns of two threads
    scales = 10.0 ** rng.uniform(-2.0, 1.0, size=n)
    X, y = scipy.sparse.diags_array(scales).tocsr(), np.sign(rng.normal(size=n))
    problem = df.Problem(X, y, loss=loss, lam=1.0 / n)
    steps = Permutations(problem, np.random.default_rng(0))
    with Team(problem, n_threads) as steps.team:
        steps.begins_at_zero = True
        steps.start(np.zeros(n), 0.0)
        kappa = np.abs(problem.residuals(np.zeros(n), np.zeros(n)))
        assert kappa.sum() > 0.0
        steps.begin_epoch()
        steps.visit(n)
        steps.end_epoch()
    expected = kappa.sum() ** 2 / (n * (kappa**2).sum())
    # the logistic loss's residual is that of a quadratic, halfway
    assert steps.even == pytest.approx(expected, rel=0.2 if loss == "logistic" else 1e-9)


def test_of_some_rows_it_is_they_that_count() -> None:
    X, y = scipy.sparse.eye_array(100).tocsr(), np.tile([1.0, -1.0], 50)
    steps = Permutations(df.Problem(X, y, loss="squared_hinge", lam=1.0 / 100), np.random.default_rng(0))
    steps.visit_only(np.arange(0, 25))
    steps.start(np.zeros(100), 0.0)
    steps.begin_epoch()
    steps.visit(25)
    steps.end_epoch()
    assert steps.even == pytest.approx(1.0)


def test_a_part_of_the_rows_is_coupled_by_their_number() -> None:
    """With the same λ, q_i is ‖x_i‖²/(λm) for m of them: what decides how far its steps go."""
    problem = df.Problem(np.eye(100), np.tile([1.0, -1.0], 50), loss="squared_hinge", lam=0.5)
    assert Permutations(problem, np.random.default_rng(0)).coupling == pytest.approx(1.0 / 50.0)
    assert Sample(problem, np.random.default_rng(0), 10).steps.coupling == pytest.approx(1.0 / 5.0)


def text_with_few_hard_rows() -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Rows that nearly all are told apart easily; a fiftieth have the wrong label, and will matter most."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(8000, 3000, density=0.004, format="csr", rng=rng)
    X = X + scipy.sparse.csr_array((np.full(8000, 3.0), (np.arange(8000), np.arange(8000) % 20)), shape=X.shape)
    y = np.where(np.arange(8000) % 20 < 10, 1.0, -1.0)
    y[rng.choice(8000, 160, replace=False)] *= -1.0
    return X.tocsr(), y


def test_where_few_rows_matter_adaptive_visits_begin_without_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Auto, "_truncated_steps_may_be_quick", lambda _: False)
    monkeypatch.setattr(Auto, "_truncated_steps_may_pay", lambda *_: False)
    X, y = text_with_few_hard_rows()
    problem = df.Problem(X, y, loss="squared_hinge", lam=1.0 / 8000)
    result = df.solve(problem, tol=1e-8, random_state=0)
    assert result.status is df.Status.CONVERGED
    phases = [entry.phase for entry in result.trace]
    assert phases[:2] == ["prox-sdca", "adaptive"]  # the start, and the first certificate
    named = df.solve(problem, "prox-sdca", tol=1e-8, random_state=0)
    assert result.trace[-1].passes < named.trace[-1].passes
    assert np.linalg.norm(result.w - named.w) <= result.certificate.distance_bound + named.certificate.distance_bound


def after_two_epochs(problem: df.Problem) -> Auto:
    """`auto` after two epochs of permutations."""
    auto = Auto(problem, RandomSource(0))
    auto.begins_at_zero = True
    auto.target = 1e-6 * problem.at_zero
    auto.start(np.zeros(problem.n), 0.0)
    assert isinstance(auto.active, Permutations)
    auto.observe(problem.at_zero, auto.target)
    for _ in range(2):
        auto.begin_epoch()
        auto.visit(problem.n)
        auto.end_epoch()
    return auto


def test_a_guess_is_not_enough_for_what_is_not_left_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Newton and conjugate gradients take a certificate; the history does not keep the guess then."""
    X, y = text_with_few_hard_rows()
    auto = after_two_epochs(df.Problem(X, y, loss="squared_hinge", lam=1.0 / 8000))
    history = list(auto.history)
    monkeypatch.setattr(Auto, "_second_order_is_cheaper", lambda self, *_: True)
    assert not auto.judges_by_guess(0.01 * auto.problem.at_zero, auto.target)
    assert auto.history == history
    assert isinstance(auto.active, Permutations)
    monkeypatch.undo()
    assert auto.judges_by_guess(0.01 * auto.problem.at_zero, auto.target)
    assert isinstance(auto.active, Adaptive)
    assert len(auto.history) > len(history)
    assert not auto.judges_by_guess(0.01 * auto.problem.at_zero, auto.target)  # its scans know better


def test_a_rate_needs_two_points() -> None:
    """The gap of long ago may be all there is to compare with."""
    X, y = text_with_few_hard_rows()
    auto = after_two_epochs(df.Problem(X[:2000], y[:2000], loss="squared", lam=1.0 / 2000))
    auto.history = [(0.0, 1.0), (2.0, 1e-1)]
    auto.rows_touched = 12.0 * auto.problem.n
    auto.observe(1e-5, 1e-6)  # two or three passes more, not hundreds
    assert isinstance(auto.active, Permutations)
