"""From data and an objective to a model: one solve, or one for each class against the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from .._version import __version__
from ..certificate import certify
from ..io import DataError, Dataset, Model, Objective, Outcome, Training
from ..problem import Problem
from ..result import Result
from ..solvers import State, solve
from ..status import Status
from ..trace import Trace

if TYPE_CHECKING:
    from ..distributed import DistributedResult

Watch = Callable[[int, Problem, State], None]
"""Called with the column, its problem and the state after each evaluation."""

_MOST_CLASSES = 1000
_INNER_TOL_FACTOR = 0.05
_LEAST_INNER_TOL = 1e-14


R = TypeVar("R", bound="Result | DistributedResult")


@dataclass(frozen=True, slots=True)
class Fit(Generic[R]):
    """A model and how it came about.

    Attributes
    ----------
    model : Model
    results : list of Result or DistributedResult
        One for each row of the model's coefficients, with its trace.
    seconds : float
        Wall-clock time of all solves.
    """

    model: Model
    results: Sequence[R]
    seconds: float


def fit_model(
    data: Dataset,
    objective: Objective,
    *,
    solver: str = "auto",
    tol: float = 1e-6,
    max_epochs: int = 1000,
    max_time: float | None = None,
    seed: int | None = None,
    threads: int = 1,
    options: Mapping[str, Any] | None = None,
    warm_start: Model | None = None,
    keep_dual: bool = True,
    skip_bad_lines: bool = False,
    watch: Watch | None = None,
) -> Fit[Result]:
    r"""Fit a model.

    Parameters
    ----------
    data : Dataset
        With targets.
    objective : Objective
        What to minimise.
    solver, tol, max_epochs, seed, threads, options
        See `dualfree.solve`.
    max_time : float, optional
        Seconds for all columns together.
    warm_start : Model, optional
        Where to begin.
    keep_dual : bool, default=True
        Whether the model keeps α. Without it the certificates are those that the weights alone can prove.
    skip_bad_lines : bool, default=False
        How the data were read; the model remembers it.
    watch : callable, optional
        See `Watch`.

    Returns
    -------
    Fit

    Examples
    --------
    >>> from io import BytesIO
    >>> from dualfree.cli.fitting import fit_model
    >>> from dualfree.io import Objective, read_data
    >>> data = read_data(BytesIO(b"a,b,kind\n1,2,x\n3,1,y\n0,1,x\n2,0,y\n"), format="csv", target="kind")
    >>> model = fit_model(data, Objective("logistic", lam=0.1), seed=0).model
    >>> model.predict(model.scores(data.X)).tolist()
    ['x', 'y', 'x', 'y']
    """
    y = check_target(data, objective)
    classes = objective.classes(y)
    began = time.perf_counter()
    deadline = None if max_time is None else began + max_time
    k = 1 if classes is None or len(classes) == 2 else len(classes)
    fingerprint = data.fingerprint()
    starts = _starting_points(warm_start, objective, data, fingerprint, classes, k)
    results: list[Result] = []
    outcomes: list[Outcome] = []
    for column, problem in enumerate(objective.problems(data.X, y, classes)):
        interrupted = bool(results) and results[-1].status is Status.INTERRUPTED
        now = time.perf_counter()
        result = (solve if keep_dual else solve_without_dual)(
            problem,
            solver=solver,
            tol=tol,
            max_epochs=0 if interrupted else max_epochs,
            max_time=None if deadline is None else max(0.0, deadline - now) / (k - column),
            random_state=seed,
            warm_start=starts[column],
            callback=None if watch is None else _watching(watch, column, problem),
            n_threads=threads,
            **(options or {}),
        )
        if interrupted and result.status is Status.MAX_EPOCHS:
            result = replace(result, status=Status.INTERRUPTED, message=Status.INTERRUPTED.sentence)
        results.append(result)
        seconds = float(result.trace.seconds[-1])
        outcomes.append(Outcome(result.certificate, result.status.value, result.n_epochs, seconds))
    model = Model(
        coef=np.array([result.w for result in results]),
        intercept=np.array([result.intercept for result in results]),
        alpha=np.array([result.alpha for result in results]) if keep_dual else None,
        classes=classes,
        objective=objective,
        encoding=data.encoding,
        training=Training(data.name, data.X.shape[0], skip_bad_lines, solver, tol, seed, fingerprint),
        outcomes=tuple(outcomes),
        version=__version__,
    )
    return Fit(model, results, time.perf_counter() - began)


def check_target(data: Dataset, objective: Objective) -> Any:
    """Return the target; a sentence where it does not fit the loss."""
    y = data.y
    if y is None:
        raise DataError(data.name, "it holds no target.")
    if not objective.is_classification:
        if y.dtype.kind != "f":
            raise DataError(data.name, f"the loss {objective.loss} needs numbers as target, got {y[0].item()!r}.")
        return y
    classes = np.unique(y)
    hint = "For numbers use --loss squared, huber or another loss for numbers."
    if len(classes) < 2:
        raise DataError(data.name, f"the target has one class only ({classes[0]}); at least two are needed.")
    if y.dtype.kind == "f" and not (classes == np.rint(classes)).all():
        fraction = classes[classes != np.rint(classes)][0]
        raise DataError(data.name, f"the loss {objective.loss} needs classes, got the number {fraction:g}. {hint}")
    if len(classes) > _MOST_CLASSES:
        raise DataError(data.name, f"the target has {len(classes)} classes, more than {_MOST_CLASSES}. {hint}")
    return y


def _watching(watch: Watch, column: int, problem: Problem) -> Callable[[State], None]:
    def callback(state: State) -> None:
        watch(column, problem, state)

    return callback


def solve_without_dual(
    problem: Problem, *, tol: float, max_epochs: int, max_time: float | None, warm_start: Any, **options: Any
) -> Result:
    """Solve until the weights alone, without α, prove that the gap is at most tol.

    What they prove is ‖∇P‖²/(2λ), which is larger than the gap with α, so the solve goes on below tol where needed.
    """
    began = time.perf_counter()
    inner, epochs, trace = tol, 0, Trace()
    while True:
        left = None if max_time is None else max(0.0, max_time - (time.perf_counter() - began))
        result = solve(
            problem, tol=inner, max_epochs=max_epochs - epochs, max_time=left, warm_start=warm_start, **options
        )
        epochs += result.n_epochs
        trace = _joined(trace, result.trace)
        certificate = certify(problem, result.w, result.intercept)
        result = replace(result, certificate=certificate, n_epochs=epochs, trace=trace)
        if certificate.relative_gap <= tol:
            return replace(result, status=Status.CONVERGED, message=Status.CONVERGED.sentence)
        if result.status not in (Status.CONVERGED, Status.STALLED):
            return result
        if result.status is Status.STALLED or inner < _LEAST_INNER_TOL:
            message = "Without the dual vectors the certificate cannot reach tol; keep them (leave out --no-dual)."
            return replace(result, status=Status.STALLED, message=message)
        inner *= _INNER_TOL_FACTOR
        warm_start = {"alpha": result.alpha, "intercept": result.intercept}


def _joined(first: Trace, second: Trace) -> Trace:
    """Return two traces as one; the second begins where the first ends."""
    if not len(first):
        return second
    last = first[-1]
    moved = [
        replace(
            entry,
            epoch=entry.epoch + last.epoch,
            passes=entry.passes + last.passes,
            seconds=entry.seconds + last.seconds,
            evaluation_seconds=entry.evaluation_seconds + last.evaluation_seconds,
        )
        for entry in second
    ]
    return Trace(first.entries + moved)


def _starting_points(
    model: Model | None, objective: Objective, data: Dataset, fingerprint: str, classes: Any, k: int
) -> list[Any]:
    """Return a starting point for each column: α where data and objective are the same, otherwise the weights."""
    if model is None:
        return [None] * k
    if model.coef.shape != (k, data.X.shape[1]):
        raise ValueError(
            f"the model to start from has {model.coef.shape[0]} columns of {model.coef.shape[1]} weights, "
            f"the data need {k} of {data.X.shape[1]}."
        )
    known, wanted = (np.array([]) if c is None else c for c in (model.classes, classes))
    if not np.array_equal(known, wanted):
        raise ValueError("the model to start from has other classes than the data.")
    same = model.objective == objective and model.training.fingerprint == fingerprint
    if model.alpha is not None and same:
        return [{"alpha": a, "intercept": float(b)} for a, b in zip(model.alpha, model.intercept, strict=True)]
    return [{"w": w, "intercept": float(b)} for w, b in zip(model.coef, model.intercept, strict=True)]
