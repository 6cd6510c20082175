"""Workers that die, leave and join, a scheduler that stops, clients that are killed or interrupted: with real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from clusters import partitions_of, small_cluster, tasks_left
from distributed import Client, LocalCluster
from problems import make_problem

import dualfree as df
from dualfree.distributed import Block, ClusterError, Partitions, solve, tasks
from dualfree.distributed.cluster import Cluster
from dualfree.distributed.summary import summarise

TESTS = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
PROBLEM = {"n": 400, "d": 40, "lam": 1e-3, "fit_intercept": True, "form": "csr64"}


def options_of(problem: df.Problem) -> dict[str, Any]:
    return {"loss": problem.loss, "lam": problem.lam, "fit_intercept": problem.fit_intercept, "random_state": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with small_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def processes() -> Iterator[Client]:
    """Two worker processes with nannies, for the tests that leave them as they were."""
    with small_cluster(2, processes=True) as client:
        yield client


def assert_good(problem: df.Problem, result: Any, tol: float) -> None:
    assert result.status is df.Status.CONVERGED, result.message
    reference = df.solve(problem, tol=1e-12, random_state=1)
    assert problem.primal(result.w, result.intercept) - reference.certificate.primal <= result.certificate.gap
    assert result.certificate.gap <= tol * problem.at_zero


class At:
    """A callback that does something once, at the first evaluation from a certain round on."""

    def __init__(self, number: int, act: Any) -> None:
        self.number, self.act, self.done = number, act, False

    def __call__(self, state: Any) -> None:
        if state.epoch >= self.number and not self.done:
            self.done = True
            self.act()


def without_newton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the fit in rounds, where there is an α to lose."""
    monkeypatch.setattr("dualfree.solvers.hessian._HESSIAN_BYTES", 0)


def kill(client: Any, count: int = 1) -> None:
    for pid in list(client.run(os.getpid, on_error="ignore").values())[:count]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_a_worker_is_killed(processes: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a round; the nanny starts another one."""
    without_newton(monkeypatch)
    problem = make_problem("logistic", **PROBLEM)
    killers: list[threading.Timer] = []

    def soon() -> None:
        killers.append(threading.Timer(0.05, kill, (processes,)))
        killers[0].start()

    act = At(2, soon)
    result = solve(
        partitions_of(problem, 4), client=processes, tol=1e-6, timeout=60, callback=act, **options_of(problem)
    )
    killers[0].join()
    assert_good(problem, result, 1e-6)
    assert not tasks_left(processes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "passes", "inline_bytes"),
    [(4, 2, 1 << 23), (4, 0.25, 0), (1, 2, 1 << 23)],
    ids=["passes", "windows", "one"],
)
def test_workers_are_killed_again_and_again(
    monkeypatch: pytest.MonkeyPatch, count: int, passes: float, inline_bytes: int
) -> None:
    """More often than Dask forgives (three times for the same task); sometimes all of them, at any moment of a stage.

    A nanny gives up a worker that dies while it starts, so each time both have to be there first.
    """
    without_newton(monkeypatch)
    monkeypatch.setattr("dualfree.distributed.cluster._INLINE_BYTES", inline_bytes)
    problem = make_problem("squared_hinge", **PROBLEM)
    rng = np.random.default_rng(0)
    strikes: list[int] = []
    ended = threading.Event()
    with small_cluster(2, processes=True) as client:

        def chaos() -> None:
            while len(strikes) < 5 and not ended.wait(0.5 * rng.random()):
                client.wait_for_workers(2, timeout=60)
                time.sleep(1.0)
                strikes.append(int(rng.integers(1, 3)))
                kill(client, strikes[-1])

        def slowly(state: Any) -> None:
            """Do not end before the last strike."""
            if len(strikes) < 5:
                time.sleep(0.2)

        thread = threading.Thread(target=chaos)
        thread.start()
        options = options_of(problem) | {"client": client, "timeout": 120, "callback": slowly, "local_passes": passes}
        try:
            while True:
                result = solve(partitions_of(problem, count), tol=1e-6, max_rounds=100_000, **options)
                assert_good(problem, result, 1e-6)
                if len(strikes) == 5:
                    break
        finally:
            ended.set()
            thread.join()
        assert max(strikes) == 2
        assert not tasks_left(client)


def deadly(deaths: Path, times: int, X: Any, y: Any) -> Block:
    """Load rows, but kill the worker the first so many times."""
    so_far = int(deaths.read_text()) if deaths.exists() else 0
    if so_far < times:
        deaths.write_text(str(so_far + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    return Block(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kind", ["delayed", "future"])
def test_what_dask_has_given_up_is_tried_again(tmp_path: Path, kind: str, count: int) -> None:
    """Dask is told to give up a task after the first worker that dies of it; two workers die of loading the first rows."""
    problem = make_problem("logistic", **PROBLEM)
    deaths, edges = tmp_path / "deaths", np.linspace(0, problem.n, count + 1).astype(int)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        small_cluster(2, processes=True) as client,
    ):
        made = dask.delayed(deadly) if kind == "delayed" else partial(client.submit, deadly)
        blocks = [made(deaths, 2 - 2 * k, problem.X[a:b], problem.y[a:b]) for k, (a, b) in enumerate(pairwise(edges))]
        result = solve(Partitions(blocks), client=client, tol=1e-6, timeout=60, **options_of(problem))
        assert deaths.read_text() == "2"
        assert_good(problem, result, 1e-6)


@pytest.mark.slow
def test_rows_that_no_worker_survives(tmp_path: Path) -> None:
    """A sentence, long before `timeout`."""
    problem = make_problem("logistic", **PROBLEM)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        small_cluster(2, processes=True) as client,
    ):
        block = dask.delayed(deadly)(tmp_path / "deaths", 1000, problem.X, problem.y)
        with pytest.raises(ClusterError, match=r"Partition 0 could not be loaded.*out of memory"):
            solve(Partitions([block]), client=client, timeout=60, **options_of(problem))
        assert not tasks_left(client)


@pytest.mark.slow
@pytest.mark.parametrize("inline_bytes", [1 << 23, 0], ids=["inline", "scattered"])
def test_workers_that_do_not_answer(monkeypatch: pytest.MonkeyPatch, inline_bytes: int) -> None:
    """Alive, connected, and stopped: the wait ends all the same."""
    without_newton(monkeypatch)
    monkeypatch.setattr("dualfree.distributed.cluster._INLINE_BYTES", inline_bytes)
    problem = make_problem("logistic", **PROBLEM)
    with small_cluster(2, processes=True) as client:
        workers = list(client.run(os.getpid).values())

        def send(number: signal.Signals) -> None:
            for pid in workers:
                os.kill(pid, number)

        options = options_of(problem) | {"client": client, "tol": 0.0, "timeout": 5}
        began = time.monotonic()
        try:
            with pytest.raises(ClusterError, match=r"No answer for 5 s|No worker took the weights within 5 s"):
                solve(partitions_of(problem, 3), callback=At(1, partial(send, signal.SIGSTOP)), **options)
            assert time.monotonic() - began < 60
        finally:
            send(signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 4])
def test_workers_leave_and_join(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    without_newton(monkeypatch)
    problem = make_problem("logistic", **PROBLEM)
    with small_cluster(2, processes=True) as client:

        def change() -> None:
            first = next(iter(client.scheduler_info()["workers"]))
            client.cluster.scale(3)
            client.wait_for_workers(3, timeout=60)
            client.retire_workers([first])

        act = At(1, change)
        result = solve(
            partitions_of(problem, count), client=client, tol=1e-8, timeout=60, callback=act, **options_of(problem)
        )
        assert act.done
        assert_good(problem, result, 1e-8)


@pytest.mark.slow
def test_a_new_worker_gets_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions move with their α: the answer is the same, to the bit, as without the new worker."""
    without_newton(monkeypatch)
    monkeypatch.setattr("dualfree.distributed.cluster._SPREAD_SECONDS", 0.0)
    problem = make_problem("logistic", **PROBLEM)
    options = options_of(problem) | {"tol": 1e-9, "timeout": 60}
    with small_cluster(1, processes=True) as client:
        places: list[set[str]] = []

        def watch(state: Any) -> None:
            if len(places) == 2:
                client.cluster.scale(2)
                client.wait_for_workers(2, timeout=60)
            parts = [key for key in client.who_has() if key.startswith(("dualfree-part", "dualfree-move"))]
            places.append({place for key in parts for place in client.who_has()[key]})

        changed = solve(partitions_of(problem, 4), client=client, callback=watch, **options)
        alone = solve(partitions_of(problem, 4), client=client, **options)
    assert len(places[0]) == 1
    assert len(places[-1]) == 2
    assert_good(problem, changed, 1e-9)
    assert changed.w.tobytes() == alone.w.tobytes()


def test_a_moved_partition_is_not_kept_where_it_was(client: Client) -> None:
    """Even when somebody, as the traceback of a lost stage does, still refers to it."""
    problem = make_problem("logistic", **PROBLEM)
    cluster = Cluster(partitions_of(problem, 4), client, timeout=60)
    try:
        cluster.load(problem.loss)
        summarise(cluster)
        held = {part.key for part in cluster.parts}
        references = list(cluster.parts)
        cluster.places = [min(client.scheduler_info()["workers"])] * 4
        cluster.spread_again = 0.0
        cluster.spread()
        moved = held - {part.key for part in cluster.parts}
        assert len(moved) == 2
        assert summarise(cluster).n == problem.n
        wait_until(lambda: not any(client.who_has().get(key) for key in moved), 10.0)
    finally:
        cluster.close()
    assert not tasks_left(client)
    assert len(references) == 4


def test_what_is_not_needed_any_more_is_let_go(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions left out, and weights that newer ones replaced: even when somebody still refers to them."""
    monkeypatch.setattr("dualfree.distributed.cluster._INLINE_BYTES", 0)  # as for long vectors
    problem = make_problem("logistic", **PROBLEM)
    cluster = Cluster(partitions_of(problem, 4), client, timeout=60)
    try:
        cluster.load(problem.loss)
        references = [*cluster.parts, *cluster.computed.values()]
        summarise(cluster)
        kept = {cluster.parts[0].key, cluster.parts[2].key}
        cluster.keep([0, 2])
        let_go = {future.key for future in references} - kept
        assert len(let_go) == 6
        wait_until(lambda: not any(client.who_has().get(key) for key in let_go), 10.0)
        assert all(client.who_has()[key] for key in kept)
        for forget in (lambda: cluster._sent(np.zeros(problem.d)), cluster.close):
            weights = cluster._sent(np.zeros(problem.d))
            references.append(weights)
            assert client.who_has()[weights.key]
            forget()
            wait_until(lambda key=weights.key: not client.who_has().get(key), 10.0)
    finally:
        cluster.close()
    assert not tasks_left(client)


@pytest.mark.slow
def test_scattered_rows_cannot_come_back() -> None:
    problem = make_problem("logistic", **PROBLEM)
    with small_cluster(2, processes=True) as client:
        blocks = client.scatter([Block(problem.X[:200], problem.y[:200]), Block(problem.X[200:], problem.y[200:])])
        act = At(1, lambda: kill(client, 2))
        with pytest.raises(ClusterError, match=r"cannot be made again.*Delayed"):
            solve(Partitions(blocks), client=client, tol=0.0, timeout=60, callback=act, **options_of(problem))


def dask_process(*arguments: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([*TESTS, os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-m", "dask", *arguments], stderr=subprocess.DEVNULL, env=environment)


@pytest.mark.slow
@pytest.mark.parametrize("restarted", [False, True])
def test_the_scheduler_stops(tmp_path: Path, restarted: bool) -> None:
    """A clear error, and the checkpoint is there for the next call, on another cluster."""
    problem = make_problem("logistic", **PROBLEM)
    checkpoint, address_file = tmp_path / "fit.checkpoint", str(tmp_path / "scheduler.json")
    parts = partitions_of(problem, 3)
    options = options_of(problem) | {"checkpoint": checkpoint, "timeout": 30}
    start = ("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", address_file)
    scheduler = dask_process(*start)
    workers = [dask_process("worker", "--scheduler-file", address_file, "--nthreads", "1", "--no-dashboard")]
    try:
        with Client(scheduler_file=address_file, timeout=60) as client:
            client.wait_for_workers(1, timeout=60)
            port = client.scheduler.address.rsplit(":", 1)[1]

            def stop() -> None:
                scheduler.kill()
                scheduler.wait()
                if restarted:
                    workers.append(dask_process("scheduler", "--port", port, "--no-dashboard"))

            began = time.monotonic()
            with pytest.raises(ClusterError, match=r"scheduler was lost.*fit\.checkpoint is kept"):
                solve(parts, client=client, tol=0.0, callback=At(1, stop), **options)
            assert time.monotonic() - began < 90
    finally:
        for process in (scheduler, *workers):
            process.kill()
            process.wait()
    assert checkpoint.exists()
    with small_cluster() as client:
        rounds = []
        result = solve(parts, client=client, tol=1e-9, callback=lambda state: rounds.append(state.epoch), **options)
    assert rounds[0] > 0
    assert_good(problem, result, 1e-9)


def test_the_client_is_closed(client: Client, tmp_path: Path) -> None:
    problem = make_problem("logistic", **PROBLEM)
    options = options_of(problem) | {"tol": 0.0, "checkpoint": tmp_path / "fit.checkpoint"}
    with (
        Client(client.scheduler.address) as other,
        pytest.raises(ClusterError, match=r"client has been closed.*fit\.checkpoint is kept"),
    ):
        solve(partitions_of(problem, 3), client=other, callback=lambda state: other.close(), **options)
    assert options["checkpoint"].exists()


CLIENT = """
    import sys
    import numpy as np
    from distributed import Client
    sys.path[:0] = {path!r}
    from clusters import partitions_of
    from problems import make_problem
    from dualfree.distributed import solve

    problem = make_problem("logistic", **{problem!r})
    with Client({address!r}) as client:
        result = solve(partitions_of(problem, 3), loss="logistic", lam=problem.lam, fit_intercept=True, tol={tol!r},
                       random_state=0, client=client, checkpoint={checkpoint!r}, max_rounds=100_000, progress=True)
    print(result.status.name, result.n_rounds, result.certificate.relative_gap)
"""


def client_process(address: str, checkpoint: Path, tol: float) -> subprocess.Popen[str]:
    script = textwrap.dedent(CLIENT).format(
        path=TESTS, problem=PROBLEM, address=address, tol=tol, checkpoint=str(checkpoint)
    )
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(true: Any, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


@pytest.mark.slow
def test_the_client_is_killed_and_comes_back(tmp_path: Path) -> None:
    checkpoint = tmp_path / "fit.checkpoint"
    with small_cluster(2, processes=True) as client:
        address = client.scheduler.address
        with client_process(address, checkpoint, 0.0) as process:
            wait_until(checkpoint.exists)
            process.kill()
        wait_until(lambda: not tasks_left(client))
        with client_process(address, checkpoint, 1e-8) as process:
            output, errors = process.communicate(timeout=120)
        assert output, errors
        status, _, gap = output.split()
        assert status == "CONVERGED"
        assert float(gap) <= 1e-8
        assert "relative gap" in errors


def test_ctrl_c_returns_the_best_point(processes: Client, tmp_path: Path) -> None:
    checkpoint = tmp_path / "fit.checkpoint"
    with client_process(processes.scheduler.address, checkpoint, 0.0) as process:
        wait_until(checkpoint.exists)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert output, errors
    status, _, gap = output.split()
    assert status in ("INTERRUPTED", "STALLED")
    assert float(gap) < 1.01
    assert not tasks_left(processes)


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_while_the_result_is_put_together(client: Client, monkeypatch: pytest.MonkeyPatch, presses: int) -> None:
    """The first one keeps the result, complete with the bound on the intercept; the second one ends the call."""
    problem = make_problem("logistic", **PROBLEM)
    stage, left = Cluster.stage, [presses]

    def interrupted(self: Cluster, name: str, function: Any, *arguments: Any, **options: Any) -> Any:
        if function is tasks.shifted_slopes and left[0]:
            left[0] -= 1
            raise KeyboardInterrupt
        return stage(self, name, function, *arguments, **options)

    monkeypatch.setattr(Cluster, "stage", interrupted)
    fit = partial(solve, partitions_of(problem, 2), client=client, tol=1e-6, **options_of(problem))
    if presses == 1:
        result = fit()
        assert result.status is df.Status.CONVERGED
        assert np.isfinite(result.certificate.intercept_bound)
    else:
        with pytest.raises(KeyboardInterrupt):
            fit()
    assert left == [0]
    assert not tasks_left(client)


def test_two_fits_at_once(client: Client) -> None:
    """Each gets what it gets alone, to the bit."""
    problems = [make_problem(loss, **PROBLEM) for loss in ("logistic", "squared_hinge")]
    results: dict[str, Any] = {}

    def run(name: str, problem: df.Problem) -> None:
        results[name] = solve(partitions_of(problem, 3), client=client, tol=1e-4, **options_of(problem))

    for k, problem in enumerate(problems):
        run(f"alone {k}", problem)
    threads = [threading.Thread(target=run, args=(f"together {k}", p)) for k, p in enumerate(problems)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        assert results[f"alone {k}"].w.tobytes() == results[f"together {k}"].w.tobytes()
    assert not tasks_left(client)


def test_waiting_ends_with_a_sentence(client: Client) -> None:
    """A block that takes for ever, and a cluster without workers."""

    def slow() -> Block:
        time.sleep(2)
        return Block(np.eye(2), np.array([0, 1]))

    with pytest.raises(ClusterError, match=r"No answer for 0\.5 s while waiting for solve.*Raise timeout"):
        solve(Partitions([dask.delayed(slow)()]), client=client, timeout=0.5)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        Client(empty) as other,
        pytest.raises(ClusterError, match="the cluster has no workers"),
    ):
        solve(partitions_of(make_problem("logistic"), 2), client=other, timeout=0.5)
    assert not tasks_left(client)


# --- checkpoints --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 3])
def test_a_checkpoint_goes_on(client: Client, tmp_path: Path, count: int) -> None:
    problem = make_problem("logistic", **PROBLEM)
    checkpoint = tmp_path / "fit.checkpoint"
    options = options_of(problem) | {"client": client, "checkpoint": checkpoint}
    parts = partitions_of(problem, count)
    first = solve(parts, tol=1e-12, max_rounds=3, **options)
    assert first.status is df.Status.MAX_EPOCHS
    second = solve(parts, tol=1e-9, **options)
    assert second.n_rounds > first.n_rounds
    assert_good(problem, second, 1e-9)
    assert [path.name for path in tmp_path.iterdir()] == ["fit.checkpoint"]

    with pytest.raises(ValueError, match=r"belongs to another problem: its lam is 0\.001, here it is 0\.1"):
        solve(parts, tol=1e-9, **(options | {"lam": 0.1}))
    checkpoint.write_bytes(b"not a checkpoint")
    with pytest.raises(ValueError, match="is not a checkpoint of dualfree"):
        solve(parts, tol=1e-9, **options)


def test_a_sentence_without_dask() -> None:
    script = "import sys; sys.modules['dask'] = None; import dualfree.distributed"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "pip install 'dualfree[dask]'" in run.stderr
