"""Several threads: the same answer, the same bits for the same number of them, and no visit lost."""

from __future__ import annotations

import _thread
import time
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from problems import make_problem

import dualfree as df
from dualfree import team
from dualfree._jit import kernel
from dualfree.solvers import dealing, together
from dualfree.solvers.auto import Auto
from dualfree.solvers.base import RandomSource
from dualfree.solvers.prox_sdca import Permutations, ProxSdca
from dualfree.team import Team
from dualfree.workers import Workers


@pytest.fixture(autouse=True)
def _small_data_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let threads share data that are too small to be worth it."""
    monkeypatch.setattr(team, "_LEAST_ENTRIES", 1)
    monkeypatch.setattr(together, "_LEAST_VISITS", 4)


def overlap(one: df.Result, other: df.Result) -> bool:
    """Whether two certified points can have the same optimum."""
    a, b = one.certificate, other.certificate
    return a.dual <= b.primal and b.dual <= a.primal


def make_epochs(steps: Permutations, count: int) -> None:
    for _ in range(count):
        steps.begin_epoch()
        steps.visit(steps.problem.n)
        steps.end_epoch()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", ["dense64", "csr32-int64"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "huber", "hinge"])
def test_threads_do_not_change_the_optimum(loss: str, form: str, fit_intercept: bool) -> None:
    problem = make_problem(loss, n=120, d=6, form=form, fit_intercept=fit_intercept, lam=0.02, weights="random")
    tol = 1e-9 if loss != "hinge" else 1e-6
    alone = df.solve(problem, tol=tol, random_state=0)
    for n_threads in (2, 3):
        first, again = (df.solve(problem, tol=tol, random_state=0, n_threads=n_threads) for _ in range(2))
        assert first.status is df.Status.CONVERGED
        assert overlap(alone, first)
        assert np.array_equal(first.w, again.w)
        assert np.array_equal(first.alpha, again.alpha)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_coordinate_steps_on_several_threads(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Newton's method, which takes over where columns are few, all of the way is coordinate steps."""
    monkeypatch.setattr("dualfree.solvers.newton.Newton.suits", staticmethod(lambda problem: False))
    problem = make_problem(loss, n=200, d=30, form="csr64", lam=0.01)
    results = [df.solve(problem, tol=1e-9, max_epochs=5000, random_state=0, n_threads=k) for k in (1, 2, 4)]
    assert {entry.phase for entry in results[1].trace} <= {"prox-sdca", "adaptive"}
    for result in results:
        assert result.status is df.Status.CONVERGED
        assert overlap(results[0], result)
        assert np.allclose(problem.weights_of(result.alpha), result.w, rtol=0, atol=1e-10 * np.abs(result.w).max())


def test_correlated_rows_do_not_overshoot() -> None:
    """All rows alike: what the threads add points the same way, and σ' has to grow with the number of threads."""
    rng = np.random.default_rng(0)
    X = np.ones((400, 3)) + 0.1 * rng.normal(size=(400, 3))
    problem = df.Problem(X, 2.0 + rng.normal(size=400), loss="squared", lam=0.01)
    steps = Permutations(problem, rng)
    sigmas, duals = [], []
    with team.Team(problem, 4) as steps.team:
        steps.start(np.zeros(problem.n), 0.0)
        for _ in range(20):
            steps.begin_epoch()
            steps.visit(problem.n)
            assert steps.together is not None
            sigmas.append(steps.together.sigma)
            duals.append(problem.dual(steps.alpha))
    assert max(sigmas) > 2
    w = problem.weights_of(steps.alpha)
    assert np.allclose(steps.w, w, rtol=1e-9, atol=1e-12)
    assert problem.primal(w) - duals[-1] < 0.05 * problem.at_zero


@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_the_intercept_does_not_overshoot(size: int) -> None:
    """It is one column that all rows have: where only w was looked at, more than two threads made it grow without bound."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(6000, 3000, density=0.005, format="csr", random_state=0)
    y = np.sign(X @ rng.normal(size=3000) + 0.3 + 0.1 * rng.normal(size=6000))
    problem = df.Problem(X, y, loss="squared_hinge", lam=1.0 / 6000, fit_intercept=True)
    steps = Permutations(problem, rng)
    with team.Team(problem, size) as steps.team:
        steps.start(np.zeros(problem.n), 0.0)
        make_epochs(steps, 12)
    assert steps.together is not None
    assert steps.together.frequent.size > 0
    w = problem.weights_of(steps.alpha)
    gap = df.certify(problem, w, steps.intercept, steps.alpha).relative_gap
    assert gap < (0.03 if size < 4 else 0.1)  # over ten seeds 0.002 to 0.024, and 0.015 to 0.09; it had been 1e13
    assert np.linalg.norm(w - steps.w) <= steps.drift


def test_long_dense_rows_are_put_together_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread's visits to 100 rows of 50 columns are 5,000 entries, and so many windows as their number allows."""
    monkeypatch.setattr(together, "_LEAST_VISITS", 100)
    problem = make_problem("squared_hinge", n=200, d=50)
    for entries, most, windows in ((1 << 20, 64, 1), (500, 64, 10), (500, 4, 4)):
        monkeypatch.setattr(together, "_LEAST_ENTRIES", entries)
        monkeypatch.setattr(together, "_MOST_WINDOWS", most)
        steps = Permutations(problem, np.random.default_rng(0))
        with team.Team(problem, 2) as steps.team:
            steps.start(np.zeros(problem.n), 0.0)
            make_epochs(steps, 30)
            assert steps.together is not None
            visits = dealing.Visits(steps.everyone, dealing.ONE_EACH, 200, 1)
            epochs = together.Epochs(np.array([1], dtype=np.uint64))
            made = steps.together.visit(steps.data, visits, epochs, 0.0, steps.alpha, steps.w, steps.offset)
        assert (made.epochs, made.visits, made.additions) == (1, 200, 200 + windows)
        w = problem.weights_of(steps.alpha)
        assert np.allclose(w, steps.w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_short_epochs_begin_with_the_rows_that_have_waited_longest(size: int) -> None:
    """They take up the order of the last epoch, where the last short one ended; a whole epoch has a new one."""
    problem = make_problem("squared", n=300, d=3, lam=1e-3)
    steps = Permutations(problem, np.random.default_rng(0))
    with team.Team(problem, 1) as steps.team:
        steps.team._share(problem, size)
        steps.team._workers = Workers(size)
        steps.start(np.zeros(problem.n), 0.0)
        make_epochs(steps, 1)
        orders = [steps.permutation.copy()] if size == 1 else [own[: int(own[-1])].copy() for own in _dealt(steps)]
        for begin in (0.0, 0.25, 0.5, 0.75, 0.0):
            steps.part_wanted, before = 0.25, steps.alpha.copy()
            touched = steps.rows_touched
            make_epochs(steps, 1)
            if size == 1:  # what a whole epoch would have gained; of the squared loss each gain is known exactly
                gained = problem.dual(steps.alpha) - problem.dual(before)
                assert steps.gain == pytest.approx(4.0 * gained, rel=1e-6, abs=1e-14)
            changed = set(np.flatnonzero(steps.alpha != before).tolist())
            expected = [own[int(begin * own.size) : int((begin + 0.25) * own.size)] for own in orders]
            visited = set(np.concatenate(expected).tolist())
            assert changed <= visited
            assert len(changed) > 0.9 * len(visited)  # some rows have nothing to gain
            assert steps.rows_touched - touched == len(visited)
        steps.part_wanted = 1.0
        make_epochs(steps, 1)
        after = [steps.permutation] if size == 1 else [own[: int(own[-1])] for own in _dealt(steps)]
        assert any(own.size != new.size or (own != new).any() for own, new in zip(orders, after, strict=True))
        assert np.linalg.norm(problem.weights_of(steps.alpha) - steps.w) <= steps.drift


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("size", [2, 3])
def test_epochs_in_one_call_are_those_of_several(
    size: int, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit by bit without an intercept, and the first certificate comes when the driver would have asked for it."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(3000, 3000, density=0.01, format="csr", rng=rng)
    y = np.asarray(X @ rng.normal(size=3000)) > 0.1
    problem = df.Problem(X, y, loss="squared_hinge", lam=10.0 / 3000, fit_intercept=fit_intercept)
    results, calls = [], []
    for at_once in (Permutations._epochs_at_once, lambda steps: 1):
        made: list[int] = []
        monkeypatch.setattr(Permutations, "_epochs_at_once", at_once)
        monkeypatch.setattr(
            Permutations, "_hear_of_epochs", lambda steps, *said, made=made: made.append(said[0]) or _hear(steps, *said)
        )
        until = {"callback": lambda state: state.epoch > 0, "tol": 1e-6}
        results.append(df.solve(problem, random_state=0, n_threads=size, **until))
        calls.append(made)
    several, single = results
    assert max(calls[0]) >= 3
    assert set(calls[1]) == {1}
    assert sum(calls[0]) == sum(calls[1]) == several.n_epochs == single.n_epochs
    assert several.trace[-1].passes == single.trace[-1].passes
    if fit_intercept:  # NumPy adds up Σ α in another order than a kernel
        assert several.intercept == pytest.approx(single.intercept, rel=1e-11)
        assert several.alpha == pytest.approx(single.alpha, rel=1e-10, abs=1e-13)
    else:
        assert several.w.tobytes() == single.w.tobytes()
        assert several.alpha.tobytes() == single.alpha.tobytes()


_hear = Permutations._hear_of_epochs


def test_an_epoch_is_one_call_however_many_rows_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that each thread shuffles its own; as long as Ctrl-C is heard in time."""
    X = scipy.sparse.csr_matrix((np.ones(70_000), np.arange(70_000) % 7, np.arange(70_001)), shape=(70_000, 7))
    problem = df.Problem(X, np.arange(70_000) % 2, lam=1e-3)
    steps, by_name = (kind(problem, np.random.default_rng(0)) for kind in (Permutations, ProxSdca))
    with team.Team(problem, 2) as steps.team:
        assert steps.threads_shuffle
        assert by_name.visits_per_call < problem.n
        monkeypatch.setattr("dualfree.solvers.exact_steps.ENTRIES_PER_CALL", 1000)
        assert steps.visits_per_call == 1000
        assert not steps.threads_shuffle


def test_a_call_is_no_longer_than_ctrl_c_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem("logistic", n=100, d=10)  # 2,000 entries, with what a visit costs besides
    steps = Permutations(problem, np.random.default_rng(0))
    steps.epochs_allowed, steps.enough_guessed = 9, 1e-6
    assert steps._epochs_at_once() == 9
    for entries, most in ((10_000, 5), (1000, 1)):
        monkeypatch.setattr("dualfree.solvers.prox_sdca.ENTRIES_PER_CALL", entries)
        assert steps._epochs_at_once() == most
    cornered = Permutations(make_problem("hinge", n=100, d=10), np.random.default_rng(0))  # nothing is guessed there
    cornered.epochs_allowed, cornered.enough_guessed = 9, 1e-6
    assert cornered._epochs_at_once() == 1


def test_threads_go_beyond_the_top_too() -> None:
    """Where rows hold one another back: with the same epochs, a smaller gap."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(3000, 3000, density=0.01, format="csr", rng=rng)
    problem = df.Problem(X, np.asarray(X @ rng.normal(size=3000)) > 0, loss="squared_hinge", lam=1e-5)
    gaps = []
    for part in (0.75, 1.0):
        steps = Permutations(problem, np.random.default_rng(0))
        assert steps.part_of_q == 0.75
        steps.part_of_q = part
        with team.Team(problem, 1) as steps.team:
            steps.team._share(problem, 2)
            steps.team._workers = Workers(2)
            steps.start(np.zeros(problem.n), 0.0)
            make_epochs(steps, 15)
        w = problem.weights_of(steps.alpha)
        assert np.linalg.norm(w - steps.w) <= steps.drift
        gaps.append(df.certify(problem, w, 0.0, steps.alpha).gap)
    assert gaps[0] < 0.5 * gaps[1]


def _dealt(steps: Permutations) -> np.ndarray:
    assert steps.together is not None
    return steps.together.dealt[0]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_frequent_columns_are_found(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    def found(X: Any) -> list[int]:
        problem = df.Problem(X, np.arange(40.0), loss="squared", lam=1.0)
        with Team(problem, size) as team:
            return [int(column) for column in together._frequent_columns(team)]

    monkeypatch.setattr(together, "_FREQUENT", 3)
    X = np.zeros((40, 9))
    X[:, [2, 7]] = 1.5
    X[:25, 4] = 1.0
    X[25:29, 5] = X[29:33, 6] = 2.0  # as frequent as each other: one of them would be one too many
    assert found(scipy.sparse.csr_matrix(X)) == [2, 4, 7]
    monkeypatch.setattr(together, "_FREQUENT", 4)
    X[:5, 0] = 1.0  # as rare as a column may be that is still taken
    assert found(scipy.sparse.csr_matrix(X)) == [0, 2, 4, 7]
    assert found(X) == []  # dense
    X[np.arange(40) % 4 != 0, 8] = 3.0
    matrix = scipy.sparse.csr_matrix(X)
    assert 8 in found(matrix)
    monkeypatch.setattr(together, "_COUNTED", matrix.nnz // 4)  # every fourth row is looked at, whosever it is
    assert matrix.nnz // together._COUNTED == 4
    assert 8 not in found(matrix)


@intrinsic
def owner_of(typing_context: Any, array: Any) -> Any:
    """Where the number is that counts an array's views; 0 if nobody counts."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(array)(context, builder, value=arguments[0])
        return builder.ptrtoint(view.meminfo, ir.IntType(64))

    return types.int64(array), generate


@kernel
def tell_owners(own: int, array: Any, several: Any, out: Any) -> None:
    out[own, 0] = owner_of(array)
    out[own, 1] = owner_of(several[1][0])
    out[own, 2] = owner_of(array[1:])


def test_threads_do_not_count_views_of_what_they_share() -> None:
    """Counting is one number for all threads: they would wait for each other at every view."""
    workers = Workers(2)
    found = np.full((2, 3), -1)
    try:
        workers.run(tell_owners, (np.ones(4), (1.0, (np.ones(3),)), found))
    finally:
        workers.end()
    assert (found == 0).all()


@pytest.mark.parametrize("form", ["dense64", "csr64"])
@pytest.mark.parametrize("size", [1, 2, 5, 50])
def test_parts_cover_all_rows(form: str, size: int) -> None:
    problem = make_problem("squared", n=23, d=4, form=form)
    with team.Team(problem, size) as threads:
        assert threads.cuts[0] == 0
        assert threads.cuts[-1] == problem.n
        assert (np.diff(threads.cuts) > 0).all()
        w, factors = np.arange(4.0), np.arange(23.0)
        z, out = np.empty(23), np.empty(4)
        threads.margins_into(w, z)
        threads.sum_rows_into(factors, out, np.empty(4))
    assert np.allclose(z, problem.X @ w)
    assert np.allclose(out, factors @ problem.X)


@kernel
def _note(own: int, found: Any, rounds: int) -> None:
    for _ in range(rounds):
        found[own, 0] += own + 1


@kernel
def _fail(own: int, failing: int) -> None:
    if own == failing:
        raise RuntimeError("from one thread")


def all_go_home(before: int) -> bool:
    """Whether soon there are no more threads than there were."""
    deadline = time.monotonic() + 10
    while _thread._count() > before and time.monotonic() < deadline:
        time.sleep(0.001)
    return _thread._count() <= before


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_thread_does_its_piece_each_time(size: int) -> None:
    """Also after a rest that is long enough to fall asleep, and with more threads than cores."""
    before = _thread._count()
    workers = Workers(size)
    found = np.zeros((size, 16))
    for times in range(1, 201):
        if times % 100 == 0:
            time.sleep(0.1)
        workers.run(_note, (found, 10))
        assert found[:, 0].tolist() == [10 * times * (own + 1) for own in range(size)]
    workers.end()
    assert all_go_home(before)


def test_nobody_runs_when_the_threads_have_gone() -> None:
    workers, found = Workers(2), np.zeros((2, 16))
    workers.end()
    with pytest.raises(RuntimeError, match="sent home"):
        workers.run(_note, (found, 1))
    assert not found.any()


def test_threads_without_work_take_little_time() -> None:
    workers = Workers(3)
    workers.run(_note, (np.zeros((3, 16)), 1))
    time.sleep(0.2)  # they are asleep
    before = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - before < 0.15
    workers.end()


class _Strange(df.Loss):
    """It cannot be evaluated far from zero."""

    smoothness = 1.0

    @staticmethod
    def value(z: float, y: float) -> float:
        return 0.5 * (z - y) ** 2

    @staticmethod
    def derivative(z: float, y: float) -> float:
        if z > 1.5:
            raise ValueError("too large a margin")
        return z - y


def test_a_loss_that_raises_an_error_with_threads() -> None:
    """The error is told, and no thread waits for another one."""
    X = scipy.sparse.random(3000, 40, density=0.2, format="csr", random_state=0)
    problem = df.Problem(X, np.asarray(X.sum(axis=1)).ravel() * 10.0, loss=_Strange(), lam=1e-4)
    before = _thread._count()
    with pytest.raises(ValueError, match="too large a margin"):
        df.solve(problem, tol=1e-6, random_state=0, n_threads=2)
    assert all_go_home(before)


def test_one_long_row_leaves_rows_for_all() -> None:
    X = np.zeros((5, 100))
    X[:, 0], X[2] = 1.0, 1.0
    problem = df.Problem(scipy.sparse.csr_matrix(X), np.arange(5.0), loss="squared", lam=1.0)
    for size in (2, 3, 5):
        with Team(problem, size) as several:
            assert (np.diff(several.cuts) > 0).all()
            z = np.empty(5)
            several.margins_into(np.arange(100.0), z)
        assert np.allclose(z, X @ np.arange(100.0))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_nothing_is_known_of_w_after_a_ctrl_c_in_the_steps(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem("squared_hinge", n=200, d=20, lam=1e-3)
    steps = Permutations(problem, np.random.default_rng(0))

    def pressed(*given: Any) -> None:
        raise KeyboardInterrupt

    with Team(problem, n_threads) as steps.team:
        steps.start(np.zeros(problem.n), 0.0)
        steps.begin_epoch()
        monkeypatch.setattr(steps, "_account", pressed)
        with pytest.raises(KeyboardInterrupt):
            steps.visit(problem.n)
    assert steps.drift is None


def test_ctrl_c_while_threads_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The point so far is returned, certified, and no thread is left behind."""
    monkeypatch.setattr("dualfree.solvers.newton.Newton.suits", staticmethod(lambda problem: False))
    problem = make_problem("squared_hinge", n=3000, d=40, form="csr64", lam=1e-9)

    def press(state: df.State) -> None:
        if state.epoch > 3:
            raise KeyboardInterrupt

    before = _thread._count()
    result = df.solve(problem, tol=0.0, max_epochs=500, random_state=0, n_threads=3, callback=press)
    assert all_go_home(before)
    assert result.status is df.Status.INTERRUPTED
    assert df.certify(problem, result.w, alpha=result.alpha).gap <= result.certificate.gap * (1 + 1e-6)


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_while_threads_are_started_leaves_none_behind(presses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, calls, before = _thread.start_new_thread, [0], _thread._count()

    def interrupted(*given: Any) -> int:
        calls[0] += 1
        if calls[0] == presses:
            raise KeyboardInterrupt
        return start(*given)

    monkeypatch.setattr(_thread, "start_new_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Workers(4)
    monkeypatch.undo()
    assert calls[0] == presses
    assert all_go_home(before)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_in_one_thread_reaches_the_caller(failing: int) -> None:
    workers = Workers(3)
    with pytest.raises(RuntimeError, match="from one thread"):
        workers.run(_fail, (failing,))
    workers.run(_fail, (-1,))  # nothing is left of it
    workers.end()


def test_drift_bounds_the_distance_from_the_sum_with_threads() -> None:
    """‖w − w(α)‖ against arithmetic of 60 digits after many windows: never above the bound, and the bound is small."""
    problem = make_problem("squared_hinge", n=120, d=20, lam=1e-3, weights="random")
    solver = Permutations(problem, np.random.default_rng(0))
    with Team(problem, 3) as solver.team:
        assert solver.team.size == 3
        solver.start(np.zeros(problem.n), 0.0)
        make_epochs(solver, 30)
    assert solver.together is not None
    with mp.workdps(60):
        factor = 1 / (mp.mpf(problem.lam) * problem.n)
        exact = [mp.mpf(float(a)) for a in solver.alpha]
        sums = [sum(a * mp.mpf(float(x)) for a, x in zip(exact, column, strict=True)) for column in problem.X.T]
        far = mp.norm([mp.mpf(float(w)) - factor * total for w, total in zip(solver.w, sums, strict=True)])
    assert 0.0 < far <= solver.drift
    assert solver.drift < 1e-9 * np.linalg.norm(solver.w)


@pytest.mark.parametrize(
    ("loss", "n", "d", "asked", "worth"),
    [
        ("squared", 50_000, 9, 2, 1),
        ("squared", 50_000, 9, 8, 1),  # one step, done before the others are awake
        ("squared", 2_000_000, 5, 8, 8),
        ("squared", 5_000, 400, 2, 2),  # BLAS forms the Hessian, a part on each thread
        ("logistic", 50_000, 9, 2, 2),
    ],
)
def test_threads_that_are_worth_starting(loss: str, n: int, d: int, asked: int, worth: int) -> None:
    X = np.broadcast_to(np.arange(d, dtype=float), (n, d)).copy()
    problem = df.Problem(X, np.arange(n) % 2.0, loss, 1.0)
    assert Auto(problem, RandomSource(0)).threads(asked) == worth
