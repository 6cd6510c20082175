"""What workers do: one function a kind of task, each of which handles one partition.

A task takes the part, the `Spec` and a request, and answers with a `Reply`. Running one twice is harmless: Dask may do so
after a failure, and a task that the client has given up may still be running while its successor begins. Hence the
lock, and the refusal of requests that are older than the newest one seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._checks import Array
from .._threads import one_blas_thread
from ..certificate import norm_of
from ..dual_domain import Balance, exact_sum, farthest_row, room_to_shift, shift, shrinkage
from ..losses import Loss
from ..problem import loss_sum, slopes_into
from ..row_sums import GapTerms, LocalSums, ResidualTerms, Slope, SlopeDoubt
from ..solvers import hessian as hessians
from ..solvers.hessian import curvature_sum, slopes_to_curvatures
from ..team import Team
from . import begun
from ._dask import distributed
from .local_solver import LocalSolver
from .part import LocalProblem, Part
from .partitions import Block
from .reply import Reply
from .residual_histogram import histogram
from .spec import Spec
from .windows import Window, WindowTerms

Recipe = tuple[tuple[int, float], ...]


class Stale(Exception):
    """A task that the client gave up has come too late."""


class EvaluationLost(Exception):
    """A later stage of an evaluation found nothing left of the earlier one: the part has been made anew."""


# --- the rows, before anything is known of the whole --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartSummary:
    """Sizes of a partition and, for classification, its labels with their weights."""

    rows: int
    d: int
    nnz: int
    nnz_per_row_max: int
    norms_squared: float
    weight: float
    largest_target: float
    labels: list[Any]
    label_weights: list[float]
    hessian_cost: float


def prepare(block: Block, k: int, loss: Loss, n_features: int | None, fit: int) -> Part:
    """Check a block's rows, unless this fit has done so before; nothing is copied where the form is right."""
    return begun.taken(block, fit) or Part(block, k, loss, n_features)


def handed_over(part: Part) -> Part:
    """Take a partition over from another worker: Dask has copied it here."""
    return part


def describe(part: Part) -> Reply:
    """Say what the client needs to know of a partition."""
    problem = part.problem
    if problem is None:
        return reply_of(part, PartSummary(0, 0, 0, 0, 0.0, 0.0, 0.0, [], [], 0.0))
    labels: list[Any] = []
    weights: list[float] = []
    largest = 0.0
    if problem.loss.task == "classification":
        try:
            unique, inverse = np.unique(problem.labels, return_inverse=True)
        except TypeError as error:
            raise TypeError(
                f"Partition {part.k}: y must hold labels of one type that can be sorted: {error}."
            ) from None
        labels = list(unique)
        weights = [float(x) for x in np.bincount(inverse, problem.sample_weight, minlength=unique.size)]
    else:
        largest = float(np.abs(problem.labels).max())
    return reply_of(
        part,
        PartSummary(
            rows=problem.n,
            d=problem.d,
            nnz=problem.nnz,
            nnz_per_row_max=problem.nnz_per_row_max,
            norms_squared=float(problem.row_norms_squared.sum()),
            weight=float(problem.sample_weight.sum()),
            largest_target=largest,
            labels=labels,
            label_weights=weights,
            hessian_cost=hessians.cost(problem),
        ),
    )


def at_zero(part: Part, spec: Spec, at: float) -> Reply:
    """Return Σ s φ(b) and the slope there, all margins being zero."""
    problem = bound_problem(part, spec)
    loss, y, s = problem.loss.compiled, problem.y, problem.sample_weight
    z = np.zeros(problem.n)
    slope = LocalSums(problem, 0.0, 0.0, z, Balance(0.0, 0, 1.0), z, spec.n).slopes([at])[0]
    return reply_of(part, (loss_sum(loss, z, at, y, s), slope))


# --- rounds -------------------------------------------------------------------------------------------------------------


class Round(NamedTuple):
    """Where a round begins and how much to do in it.

    `seq` names the result, `recipe` says from which earlier results the starting α is mixed; they are kept, because the round
    may have to be asked for again. `total` is Σ α of all partitions at the start. What to do are so many passes, or a window.
    """

    seq: int
    recipe: Recipe
    b: float
    total: float
    work: int | Window


def advance(part: Part, spec: Spec, request: Round, w: Array) -> Reply:
    """Improve the partition's α on CoCoA+'s subproblem.

    After passes, return Σ α_i x_i and Σ α_i of the result; after a window, Δw and its `WindowTerms`.
    """
    problem = bound_problem(part, spec)
    with part.lock, one_blas_thread():
        _refuse_if_old(part, request.seq)
        alpha, rebuilt = part.base(request.recipe, w, request.b)
        if rebuilt:
            return reply_of(part, None, np.zeros(spec.d), rebuilt=True)  # w has to be made consistent first
        work = request.work
        offset = request.b + spec.extra * spec.scale * request.total
        if isinstance(work, Window):
            solver = LocalSolver(problem, spec, part.k, work.sigma, work.number // work.of)
            change, moved, activity = solver.visit_window(alpha, w, offset, work)
            total = exact_sum(alpha, problem.sample_weight)[0] if spec.fit_intercept else 0.0
            apart = float(change @ change) + (moved * moved / spec.extra if spec.fit_intercept else 0.0)
            terms: Any = WindowTerms(total, moved, apart, activity)
        else:
            LocalSolver(problem, spec, part.k, float(spec.partitions)).improve(alpha, w, offset, work)
            terms, change = _sums(part, alpha)
        part.keep(request.seq, alpha, dict(request.recipe))
        return reply_of(part, terms, change)


PROBED = 8  # a part of a pass


def probe(part: Part, spec: Spec, w: Array) -> Reply:
    """Visit a window, as a round would, and forget it; return the change of w and the seconds that it took."""
    problem = bound_problem(part, spec)
    with part.lock, one_blas_thread():
        began = time.perf_counter()
        window = Window(0, PROBED, float(spec.partitions))
        solver = LocalSolver(problem, spec, part.k, window.sigma)
        change, *_ = solver.visit_window(np.zeros(problem.n), w, spec.intercept_at_zero, window)
        return reply_of(part, time.perf_counter() - began, change)


def restore(part: Part, spec: Spec, request: Round, empty: bool, w: Array) -> Reply:
    """Take the mixture itself, or α̂ = −s φ'(Xw + b) where something is missing; return its Σ α_i x_i and Σ α_i.

    With `empty`, an α that was rebuilt for the recipe is set to 0 instead.
    """
    bound_problem(part, spec)
    with part.lock, one_blas_thread():
        _refuse_if_old(part, request.seq)
        alpha, rebuilt = part.base(request.recipe, w, request.b)
        if empty and part.rebuilt in dict(request.recipe):
            alpha[:] = 0.0
        part.keep(request.seq, alpha, dict(request.recipe))
        part.rebuilt = request.seq if rebuilt else None
        total, vector = _sums(part, alpha)
        return reply_of(part, total, vector, rebuilt=rebuilt)


def _sums(part: Part, alpha: Array) -> tuple[float, Array]:
    problem = part.rows
    vector = np.empty(problem.d)
    problem.sum_rows_into(alpha, vector, np.empty(problem.d))
    return float(exact_sum(alpha, problem.sample_weight)[0]), vector


# --- certificates -------------------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """A point to be evaluated: its intercept, and which result of a round is its α (None: α̂ = −s φ'(Xw + b))."""

    evaluation: int
    b: float
    seq: int | None


class Survey(NamedTuple):
    """Σ α with its error, the room to shift it down and up (see `dual_domain`), and the slope of P(w, ·) at b."""

    total: float
    error: float
    down: tuple[float, float]
    up: tuple[float, float]
    slope: Slope


class Shift(NamedTuple):
    """What to take away from Σ α so that it is zero, and the room of all partitions for it."""

    total: float
    unlimited: float
    room: float
    shrink: bool = False


class PartTerms(NamedTuple):
    """A partition's share of the gap, and what it could do about the rest of Σ α."""

    gap: GapTerms
    sums_error: float
    total: float
    total_error: float
    reach: float
    farther: float
    norm: float
    residuals: Array


@dataclass(slots=True)
class _Evaluation:
    number: int
    z: Array
    alpha: Array
    sums: LocalSums
    applied: Shift | None = None


def survey(part: Part, spec: Spec, point: Point, w: Array) -> Reply:
    """First stage, with an intercept: margins, and how far Σ α is from zero."""
    problem = bound_problem(part, spec)
    with part.lock, one_blas_thread():
        evaluation, rebuilt = _begin(part, spec, point, w)
        loss, y, s, alpha = problem.loss.compiled, problem.y, problem.sample_weight, evaluation.alpha
        total, error = exact_sum(alpha, s)
        found = Survey(
            total,
            error,
            room_to_shift(loss, y, s, alpha, 1.0),
            room_to_shift(loss, y, s, alpha, -1.0),
            evaluation.sums.slopes([point.b])[0],
        )
        return reply_of(part, found, rebuilt=rebuilt)


def gap_terms(part: Part, spec: Spec, point: Point, balance: Shift | None, w: Array) -> Reply:
    """Second stage: shift α to Σ α = 0, return Σ α_i x_i and the terms of the gap."""
    problem = bound_problem(part, spec)
    with part.lock, one_blas_thread():
        rebuilt = False
        if balance is None:
            evaluation, rebuilt = _begin(part, spec, point, w)
        else:
            evaluation = _of_point(part, point)
            evaluation.sums.b = point.b
        loss, y, s, alpha = problem.loss.compiled, problem.y, problem.sample_weight, evaluation.alpha
        if balance is not None and evaluation.applied != balance:  # Dask may run a task twice
            if balance.total != 0.0:
                shift(loss, y, s, alpha, balance.total, balance.unlimited, balance.room)
            if balance.shrink:
                alpha *= 1.0 - shrinkage(spec.n)
            evaluation.applied = balance
        vector = np.empty(problem.d)
        error = problem.sum_rows_into(alpha, vector, np.empty(problem.d))
        terms, _ = evaluation.sums.gap_terms()
        total, total_error, reach, farther, norm = 0.0, 0.0, 1.0, 0.0, 0.0
        if spec.fit_intercept:
            total, total_error = exact_sum(alpha, s)
            row, space = farthest_row(loss, y, s, alpha)
            reach = 0.25 * space
            farther, norm = evaluation.sums.cost_of_moving(row, reach)
        residuals = histogram(problem, evaluation.z, point.b, alpha)
        found = PartTerms(terms, error, total, total_error, reach, farther, norm, residuals)
        return reply_of(part, found, vector, rebuilt=rebuilt)


def slopes(part: Part, spec: Spec, point: Point, at: Sequence[float]) -> Reply:
    """Return the slopes of P(w, ·) at several intercepts."""
    return _of_evaluation(part, point, lambda sums: sums.slopes(at))


def slope_doubt(part: Part, spec: Spec, point: Point) -> Reply:
    """Return what rounding may hide of a slope."""
    return _of_evaluation(part, point, lambda sums: sums.slope_doubt())


def shifted_slopes(part: Part, spec: Spec, point: Point, at: Sequence[float], radius: float, fuzz: float) -> Reply:
    """Return slopes with every margin moved by its row's norm; see `certificate.bound_intercept`."""
    return _of_evaluation(part, point, lambda sums: sums.shifted_slopes(at, radius, fuzz))


def residual_rows(part: Part, spec: Spec, point: Point, h: float) -> Reply:
    """Return (1/n) Σ κ_i x_i and its terms."""
    with part.lock:
        vector = np.zeros(spec.d)
        terms: ResidualTerms = _of_point(part, point).sums.residual_rows(h, vector)
        return reply_of(part, terms, vector)


def _of_evaluation(part: Part, point: Point, ask: Callable[[LocalSums], list[Any] | SlopeDoubt]) -> Reply:
    with part.lock:
        return reply_of(part, ask(_of_point(part, point).sums))


def _begin(part: Part, spec: Spec, point: Point, w: Array) -> tuple[_Evaluation, bool]:
    problem = part.rows
    z = problem.margins(w)
    kept = None if point.seq is None else part.outputs.get(point.seq)
    rebuilt = point.seq is not None and kept is None
    alpha = part.dual_of_margins(z, point.b) if kept is None else kept.copy()
    sums = LocalSums(problem, norm_of(w), point.b, alpha, Balance(0.0, 0, 1.0), z, spec.n)
    part.evaluation = _Evaluation(point.evaluation, z, alpha, sums)
    return part.evaluation, rebuilt


def _of_point(part: Part, point: Point) -> _Evaluation:
    evaluation: _Evaluation | None = part.evaluation
    if evaluation is None or evaluation.number != point.evaluation:
        raise EvaluationLost(f"Partition {part.k} has lost the first stage of evaluation {point.evaluation}.")
    return evaluation


# --- Newton steps -------------------------------------------------------------------------------------------------------


def hessian(part: Part, spec: Spec, b: float, w: Array) -> Reply:
    """Return Σ s_i φ''(z_i) x_i x_iᵀ, the upper triangle as a vector."""
    problem = bound_problem(part, spec)
    with part.lock, one_blas_thread():
        loss, margins, curvatures = problem.loss.compiled, problem.margins(w), np.empty(problem.n)
        slopes_into(loss, margins, b, problem.y, problem.sample_weight, curvatures)
        slopes_to_curvatures(loss, margins, b, problem.y, problem.sample_weight, curvatures)
        total = curvature_sum(Team(problem), curvatures)
        return reply_of(part, None, total[np.triu_indices(total.shape[0])])


# --- small things -------------------------------------------------------------------------------------------------------


def bound_problem(part: Part, spec: Spec) -> LocalProblem:
    """Return the rows, bound to the whole problem."""
    problem = part.rows
    problem.bind(spec)
    return problem


def _refuse_if_old(part: Part, seq: int) -> None:
    newest = max(part.outputs, default=-1)
    if seq <= newest:
        raise Stale(f"Partition {part.k} is at {newest}; request {seq} comes too late.")


def reply_of(part: Part, terms: Any, vector: Array | None = None, *, rebuilt: bool = False) -> Reply:
    """Return a reply that says where the partition is."""
    return Reply(vector, [terms], [_place()], rebuilt)


def _place() -> str:
    try:
        return str(distributed.get_worker().address)
    except ValueError:  # called outside of a worker, by a test
        return ""
