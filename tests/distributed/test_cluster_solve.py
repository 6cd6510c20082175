"""A distributed fit agrees with the one of a single machine, to the certificate, and its certificate holds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import dask
import numpy as np
import pytest
from clusters import partitions_of, small_cluster, tasks_left
from distributed import Client
from problems import CORNERED, LOSSES, make_problem

import dualfree as df
from dualfree.distributed import Block, Partitions, begun, solve
from dualfree.distributed.cluster import Cluster
from dualfree.distributed.part import Part


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with small_cluster() as client:
        yield client


def options_of(problem: df.Problem) -> dict[str, Any]:
    return {"loss": problem.loss, "lam": problem.lam, "fit_intercept": problem.fit_intercept, "random_state": 0}


def assert_agrees(problem: df.Problem, result: Any) -> None:
    """The gap covers the true distance to the optimum, P(0) and P are those of one machine."""
    reference = df.solve(problem, tol=1e-12, random_state=1)
    best = reference.certificate.primal - reference.certificate.gap  # P* is not below this
    certificate = result.certificate
    rounding = 1e-14 * abs(reference.certificate.primal)
    assert problem.primal(result.w, result.intercept) - reference.certificate.primal <= certificate.gap + rounding
    assert certificate.dual <= reference.certificate.primal + rounding
    assert certificate.primal == pytest.approx(problem.primal(result.w, result.intercept), rel=1e-12)
    assert certificate.relative_gap == pytest.approx(certificate.gap / problem.at_zero, rel=1e-12)
    assert certificate.primal >= best - rounding
    distance = np.linalg.norm(result.w - reference.w)
    assert distance <= certificate.distance_bound + reference.certificate.distance_bound
    if problem.fit_intercept:
        apart = abs(result.intercept - reference.intercept)
        assert apart <= certificate.intercept_bound + reference.certificate.intercept_bound


@pytest.mark.parametrize(
    ("loss", "fit_intercept"), [*((loss, True) for loss in LOSSES), ("logistic", False), ("squared", False)]
)
def test_agrees_with_one_machine(client: Client, loss: str, fit_intercept: bool) -> None:
    tol = 1e-2 if loss in CORNERED else 1e-7
    problem = make_problem(loss, n=120, d=5, lam=0.05, fit_intercept=fit_intercept, weights="random")
    result = solve(partitions_of(problem, 3), client=client, tol=tol, **options_of(problem))
    assert result.status is df.Status.CONVERGED
    assert result.certificate.relative_gap <= tol
    assert_agrees(problem, result)


@pytest.mark.parametrize(("count", "form"), [(1, "dense32"), (2, "csr64"), (4, "dense32"), (8, "csr64")])
def test_any_number_of_partitions(client: Client, count: int, form: str) -> None:
    problem = make_problem("logistic", n=90, d=6, lam=0.02, fit_intercept=True, weights="zeros", form=form, seed=3)
    result = solve(partitions_of(problem, count), client=client, tol=1e-9, **options_of(problem))
    assert result.status is df.Status.CONVERGED
    assert (result.n_rows, result.n_partitions) == (problem.n, count)
    assert_agrees(problem, result)


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_one_partition_is_solved_in_one_request(client: Client, monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    """It gives the bits of several short ones, and none of those begins again."""
    problem = make_problem(loss, n=200, d=30, lam=1e-3, fit_intercept=True, form="csr64")
    made: list[Part] = []
    requests: list[str] = []
    init, run = Part.__init__, Cluster._run

    def counted_init(self: Part, *arguments: Any) -> None:
        made.append(self)
        init(self, *arguments)

    def counted_run(self: Cluster, name: str, *arguments: Any, **more: Any) -> Any:
        requests.append(name)
        return run(self, name, *arguments, **more)

    monkeypatch.setattr(Part, "__init__", counted_init)
    monkeypatch.setattr(Cluster, "_run", counted_run)
    options = {"client": client, "tol": 1e-8, **options_of(problem)}
    alone = df.solve(problem, tol=1e-8, random_state=0)  # before the other: a first request is no longer than a second
    at_once = solve(partitions_of(problem, 1), **options)
    assert requests == ["solve"]
    assert_agrees(problem, at_once)
    assert at_once.w.tobytes() == alone.w.tobytes()
    monkeypatch.setattr("dualfree.distributed.one_partition._FIRST_SLICE", 0.0)
    sliced = solve(partitions_of(problem, 1), **options)
    assert requests == ["solve"] * 3
    assert len(made) == 2  # each fit made its part once
    assert sliced.w.tobytes() == at_once.w.tobytes()
    assert sliced.trace.epoch.tolist() == at_once.trace.epoch.tolist()
    assert not tasks_left(client)
    assert not begun._waiting


@pytest.mark.parametrize("weights", ["none", "random"])
def test_least_squares_on_one_partition(client: Client, weights: str) -> None:
    problem = make_problem("squared", n=200, d=5, weights=weights)
    result = solve(partitions_of(problem, 1), client=client, tol=1e-9, **options_of(problem))
    assert result.w.tobytes() == df.solve(problem, tol=1e-9, random_state=0).w.tobytes()
    assert_agrees(problem, result)


@pytest.mark.parametrize("passes", [2, 0.25])
def test_rounds_alone_converge(client: Client, monkeypatch: pytest.MonkeyPatch, passes: float) -> None:
    """Where Newton's method does not apply (d too large), CoCoA+ has to arrive by itself."""
    monkeypatch.setattr("dualfree.solvers.hessian._HESSIAN_BYTES", 0)
    problem = make_problem("squared_hinge", n=200, d=30, lam=0.05, fit_intercept=True, weights="random", form="csr64")
    parts = partitions_of(problem, 4)
    result = solve(parts, client=client, tol=1e-5, local_passes=passes, **options_of(problem))
    assert result.status is df.Status.CONVERGED
    assert set(result.trace.phase) == {"cocoa+"}
    assert_agrees(problem, result)


@pytest.mark.parametrize("passes", ["counted", 0.25])
def test_same_bits_on_any_cluster(client: Client, monkeypatch: pytest.MonkeyPatch, passes: float | str) -> None:
    """The partitioning and the seed decide the bits; workers, threads, repetitions and ways of the vectors do not."""
    problem = make_problem("logistic", n=300, d=40, lam=1e-3, fit_intercept=True, form="csr64")
    parts = partitions_of(problem, 5)
    options = options_of(problem) | {"max_rounds": 6, "tol": 0.0, "local_passes": passes}
    first = solve(parts, client=client, **options)
    assert first.local_passes == (2.0 if passes == "counted" else 0.25)
    monkeypatch.setattr("dualfree.distributed.cluster._INLINE_BYTES", 0)  # as for long vectors
    with small_cluster(workers=3) as other:
        elsewhere = solve(parts, client=other, **options)
    for result in (solve(parts, client=client, **options), elsewhere):
        assert result.w.tobytes() == first.w.tobytes()
        assert result.intercept == first.intercept
        assert result.certificate == first.certificate


@pytest.mark.parametrize("slow_messages", [False, True])
def test_measured_work_follows_the_clock_and_can_be_repeated(
    client: Client, monkeypatch: pytest.MonkeyPatch, slow_messages: bool
) -> None:
    problem = make_problem("logistic", n=300, d=40, lam=1e-3, form="csr64")
    parts = partitions_of(problem, 3)
    options = options_of(problem) | {"client": client, "tol": 1e-4}
    run = Cluster._run

    def timed(self: Cluster, name: str, *arguments: Any, **more: Any) -> Any:
        reply = run(self, name, *arguments, **more)
        if name == "probe":
            time.sleep(0.2 if slow_messages else 0.0)
            reply = replace(reply, terms=[0.001 if slow_messages else 10.0] * 3)
        return reply

    monkeypatch.setattr(Cluster, "_run", timed)
    if not slow_messages:
        monkeypatch.setattr("dualfree.distributed.work.time", Mock(perf_counter=Mock(side_effect=[0, 33, 40, 73])))
    measured = solve(parts, local_passes="measured", **options)
    assert measured.local_passes == (2.0 if slow_messages else 0.125)
    assert measured.status is df.Status.CONVERGED
    again = solve(parts, local_passes=measured.local_passes, **options)
    assert again.w.tobytes() == measured.w.tobytes()
    assert again.certificate == measured.certificate


@pytest.mark.slow  # a loss of one's own is compiled anew in each process
def test_user_defined_loss(client: Client) -> None:
    """Without a conjugate the gradient bound certifies; the class travels to the workers."""

    class LogCosh(df.Loss):
        name = "log_cosh"
        smoothness = 1.0

        @staticmethod
        def value(z: float, y: float) -> float:
            r = abs(z - y)
            return r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0)

        @staticmethod
        def derivative(z: float, y: float) -> float:
            return np.tanh(z - y)

    problem = make_problem(LogCosh(), n=60, d=3, lam=0.2, fit_intercept=True)
    result = solve(partitions_of(problem, 2), client=client, tol=1e-6, **options_of(problem))
    assert result.status is df.Status.CONVERGED
    assert result.certificate.source == "gradient"
    assert_agrees(problem, result)


def test_labels_of_any_kind_and_one_against_the_rest(client: Client) -> None:
    problem = make_problem("logistic", n=90, d=4, lam=0.05, seed=2)
    names = np.array(["a", "b", "c"])[np.arange(90) % 3]
    parts = partitions_of(problem, 3, labels=names)
    result = solve(parts, client=client, loss="logistic", lam=0.05, positive="b", tol=1e-9, random_state=0)
    assert result.classes is None
    assert_agrees(df.Problem(problem.X, names == "b", "logistic", 0.05), result)
    with pytest.raises(ValueError, match=r"exactly two classes.*got 3: 'a', 'b', 'c'.*positive"):
        solve(parts, client=client, lam=0.05)
    with pytest.raises(ValueError, match="positive must be one of the labels in y, got 'z'"):
        solve(parts, client=client, lam=0.05, positive="z")


def test_blocks_without_rows_or_with_one_class(client: Client) -> None:
    problem = make_problem("logistic", n=60, d=4, lam=0.05, fit_intercept=True)
    order = np.argsort(problem.y, kind="stable")  # each block but one holds a single class
    X, y = problem.X[order], problem.y[order]
    make = dask.delayed(lambda a, b: Block(X[a:b], y[a:b]))
    result = solve(
        Partitions([make(0, 20), make(20, 20), make(20, 60)]), client=client, tol=1e-9, **options_of(problem)
    )
    assert result.n_partitions == 2
    assert result.classes is not None
    assert result.classes.tolist() == [-1.0, 1.0]
    assert_agrees(df.Problem(X, y, "logistic", 0.05, fit_intercept=True), result)


def test_callback_limits_and_what_is_left_behind(client: Client) -> None:
    problem = make_problem("logistic", n=200, d=30, lam=1e-4, form="csr64")
    parts = partitions_of(problem, 2)
    options = options_of(problem) | {"client": client, "tol": 1e-12}
    seen = []
    stopped = solve(parts, callback=lambda state: seen.append(state.epoch) or len(seen) == 2, **options)
    assert stopped.status is df.Status.INTERRUPTED
    assert seen == [0, 1]
    ended = solve(parts, max_rounds=2, local_passes=1, **options)
    assert ended.status is df.Status.MAX_EPOCHS
    assert ended.n_rounds == 2
    assert np.isfinite(ended.certificate.gap)
    late = solve(parts, max_time=0.0, **options)
    assert late.status is df.Status.MAX_TIME
    assert not tasks_left(client)
    assert ended.bytes_moved >= 2 * 2 * 8 * problem.d


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": -1.0}, "lam must be a finite number > 0"),
        ({"tol": "small"}, "tol must be a finite number"),
        ({"loss": "hinges"}, "Did you mean 'hinge'"),
        ({"local_passes": 0}, "local_passes must be a finite number > 0"),
        ({"local_passes": 1.5}, r"local_passes must be a whole number or 1 over a whole number.*got 1\.5"),
        ({"local_passes": "clock"}, "local_passes must be a number, 'counted' or 'measured', got 'clock'"),
        ({"timeout": 0}, "timeout must be a finite number > 0"),
        ({"client": "tcp://x"}, "client must be a distributed.Client"),
        ({"checkpoint": "no/such/folder/file"}, "checkpoint .* cannot be written: there is no folder"),
    ],
)
def test_bad_arguments(client: Client, change: dict[str, Any], message: str) -> None:
    problem = make_problem("logistic", n=20, d=2)
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        solve(partitions_of(problem, 2), **({"client": client} | options_of(problem) | change))
    assert not tasks_left(client)


def test_bad_rows_name_their_partition(client: Client) -> None:
    bad = np.eye(4)
    bad[2, 1] = np.nan
    make = dask.delayed(lambda X, y: Block(X, y))
    good = make(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"Partition 1: X contains NaN \(row 2, column 1\)"):
        solve(Partitions([good, make(bad, [0, 1, 0, 1])]), client=client)
    with pytest.raises(ValueError, match="partition 0 has 4, partition 1 has 3"):
        solve(Partitions([good, make(np.eye(3), [0, 1, 0])]), client=client)
    with pytest.raises(ValueError, match="Partition 1: y must have one entry per row"):
        solve(Partitions([good, make(np.eye(4), [0, 1])]), client=client)
    with pytest.raises(ValueError, match="Partition 0 has 4 columns, expected 5"):
        solve(Partitions([good], n_features=5), client=client)
    with pytest.raises(TypeError, match="entry 0 is a Block"):
        Partitions([Block(np.eye(2), [0, 1])])
    with pytest.raises(ValueError, match="partitions have no rows"):
        solve(Partitions([make(np.empty((0, 4)), [])]), client=client)
    assert not tasks_left(client)
