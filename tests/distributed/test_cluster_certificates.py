"""Certificates from sums over partitions are never wrong either; and what rounds, acceleration and recovery do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import InProcess, solve_in_process
from problems import LOSSES, SMOOTH, make_problem
from reference import Reference
from test_certificate import assert_certificate_holds, cases

import dualfree as df
from dualfree.distributed.windows import Windows


@settings(max_examples=40)
@given(
    problem=cases(forms=["dense64"]),
    count=st.integers(2, 5),
    rounds=st.sampled_from([1, 3, 12]),
    passes=st.sampled_from([2, 0.5]),
    newton=st.booleans(),
)
def test_gap_holds_at_every_evaluation(
    problem: df.Problem, count: int, rounds: int, passes: float, newton: bool
) -> None:
    reference = Reference(problem)
    evaluations: list[Any] = []
    result = solve_in_process(
        problem,
        min(count, problem.n),
        tol=0.0,
        rounds=rounds,
        passes=passes,
        newton=newton,
        callback=lambda state: evaluations.append((state.w, state.intercept, state.certificate)),
    )
    for w, b, certificate in [*evaluations, (result.w, result.intercept, result.certificate)]:
        assert_certificate_holds(problem, reference, w, b, certificate)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_at_the_limit_of_precision(loss: str, fit_intercept: bool) -> None:
    problem = make_problem(loss, n=15, d=3, lam=1e-2, fit_intercept=fit_intercept, weights="random", seed=5)
    reference = Reference(problem)
    result = solve_in_process(problem, 3, tol=0.0, rounds=300)
    assert_certificate_holds(problem, reference, result.w, result.intercept, result.certificate)
    if loss in SMOOTH:
        assert result.certificate.relative_gap < 1e-14
    if fit_intercept:
        assert np.isfinite(result.certificate.intercept_bound)


def test_acceleration_saves_rounds() -> None:
    problem = make_problem("squared_hinge", n=200, d=30, lam=0.05, weights="random", form="csr64")
    plain = solve_in_process(problem, 4, tol=1e-7, depth=1, newton=False)
    accelerated = solve_in_process(problem, 4, tol=1e-7, depth=5, newton=False)
    assert plain.status is accelerated.status is df.Status.CONVERGED
    assert accelerated.n_rounds < 0.6 * plain.n_rounds


def test_windows_save_passes() -> None:
    """Parts of a pass, with what partitions do put together in between, come near the passes of one machine."""
    problem = make_problem("logistic", n=600, d=400, lam=2e-2, form="csr64")
    alone = df.solve(problem, "prox-sdca", tol=1e-6, random_state=0)
    whole = solve_in_process(problem, 4, tol=1e-6, newton=False)
    parts = solve_in_process(problem, 4, tol=1e-6, passes=0.125, newton=False)
    assert whole.status is parts.status is df.Status.CONVERGED
    assert parts.trace[-1].passes == parts.n_rounds / 8
    assert parts.trace[-1].passes < 0.5 * whole.trace[-1].passes
    assert parts.trace[-1].passes <= 2.5 * alone.n_epochs


def test_windows_take_what_they_have_seen() -> None:
    windows = Windows(4, partitions=8)
    assert windows.next == (0, 4, 1.0)
    windows.learn(together=3.0, apart=1.0, activity=4.0)
    assert windows.next == (1, 4, pytest.approx(3.3))
    windows.learn(together=0.1, apart=1.0, activity=1.0)  # partitions that cancel out are no reason for longer steps
    assert windows.next == (2, 4, 1.0)
    windows.learn(together=20.0, apart=1.0, activity=1.0)  # as rounding may have it
    assert windows.next == (3, 4, 8.0)
    assert not windows.evaluation_is_due(1.0)
    windows.learn(together=1.0, apart=1.0, activity=1.0)
    assert windows.evaluation_is_due(1e-9)  # the first pass has one, whatever tol is
    windows.heed(0.1)
    for gap in (0.2, 0.3, 0.4):  # each time it grows, the least σ' doubles
        windows.heed(gap)
    assert windows.next.sigma == 8.0
    windows.learn(together=1.0, apart=1.0, activity=1.0)
    assert windows.next.sigma == 8.0


@pytest.mark.parametrize("passes", [2, 0.25])
@pytest.mark.parametrize("name", ["round", "certificate", "margins"])
def test_lost_dual_vectors_are_rebuilt(name: str, passes: float) -> None:
    """A part that was made anew knows nothing: whatever is asked of it next, the fit goes on and is certified."""
    problem = make_problem("logistic", n=200, d=30, lam=0.005, fit_intercept=True, form="csr64")
    reference = df.solve(problem, tol=1e-12, random_state=0)
    asked = []

    def lose(cluster: InProcess, stage: str) -> None:
        asked.append(stage)
        if stage == name and asked.count(name) in (3, 4, 9):
            cluster.parts[1].outputs.clear()

    result = solve_in_process(problem, 3, tol=1e-8, passes=passes, newton=False, before_stage=lose)
    assert "rebuild" in asked[1:]
    assert result.status is df.Status.CONVERGED
    assert problem.primal(result.w, result.intercept) - reference.certificate.primal <= result.certificate.gap


@pytest.mark.parametrize("passes", [2, 0.25])
def test_losing_dual_vectors_often_does_not_blow_up(passes: float) -> None:
    """w(α̂) is farther from the optimum than w, by a factor that grows as λ falls; repeated, that would end in overflow."""
    problem = make_problem("squared_hinge", n=400, d=40, lam=1e-3, fit_intercept=True, form="csr64")
    count = 0

    def lose(cluster: InProcess, stage: str) -> None:
        nonlocal count
        if stage == "round" and count < 8:
            count += 1
            for part in cluster.parts[: 1 + count % 3]:
                part.outputs.clear()

    result = solve_in_process(problem, 3, tol=1e-6, passes=passes, newton=False, before_stage=lose)
    assert count == 8
    assert result.status is df.Status.CONVERGED


def test_trace_quantiles_are_those_of_the_residuals() -> None:
    problem = make_problem("logistic", n=300, d=5, lam=0.01)
    result = solve_in_process(problem, 3, tol=0.0, rounds=0)
    kappa = np.abs(problem.residuals(np.zeros(5), np.zeros(300)))
    for found, exact in zip(result.trace[0].residual_quantiles, np.quantile(kappa, [0.5, 0.9, 0.99, 1.0]), strict=True):
        assert exact <= found * (1 + 1e-12)
        assert found <= exact * 2**0.25 * (1 + 1e-12)
