"""Run a plan: each run is stored as Parquet as soon as it is done, so that an interrupted plan goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._optional import require
from ..io import written_in_place
from ..losses import LOSSES
from ..problem import Problem
from ..result import Result
from ..solvers import SOLVERS, State, solve
from ..solvers.adfsdca_plus import AdfSdcaPlus
from ..solvers.driver import Run as Drive
from ..status import Status
from .data import PaperData
from .plan import RESIDUAL_EPOCHS, Run

Progress = Callable[[float, float, str], None]
"""Called with the work done, the work of the whole plan, and what is being done."""


class PrintedPlus(AdfSdcaPlus):
    """adfSDCA+ as printed, with θ a multiple of the lemma's Θ*: the paper leaves θ open."""

    theta_factor = 1.0

    def begin_epoch(self) -> None:
        """Scan the residuals, then scale θ."""
        super().begin_epoch()
        self.theta_total *= self.theta_factor


@dataclass(frozen=True, slots=True)
class Store:
    """The folder of the traces, and the fingerprints of the data that they belong to."""

    folder: Path
    fingerprints: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, data: Mapping[str, PaperData]) -> Store:
        """Open, or make, a folder for runs on these data."""
        (folder / "residuals").mkdir(parents=True, exist_ok=True)
        return cls(folder, {name: source.fingerprint() for name, source in data.items()})

    def trace(self, run: Run) -> Path:
        """Where the trace of a run is kept."""
        return self.folder / f"{run.file_stem(self.fingerprints[run.data])}.parquet"

    def residuals(self, run: Run) -> Path:
        """Where the residuals of a run are kept."""
        return self.folder / "residuals" / self.trace(run).name


class Work:
    """Counts work, so that one progress bar spans runs of very different length."""

    def __init__(self, progress: Progress | None, total: float) -> None:
        self.progress, self.total, self.done = progress, max(total, 1e-300), 0.0

    def tell(self, begun: float, title: str) -> None:
        """Report the work done, `begun` being that of the current step."""
        if self.progress is not None:
            self.progress(min(self.total, self.done + begun), self.total, title)

    def tell_share(self, cost: float, title: str, share: float) -> None:
        """Report that a share of a step is done."""
        self.tell(share * cost, title)

    def finish(self, cost: float, title: str) -> None:
        """Count a step as done."""
        self.done += cost
        self.tell(0.0, title)


def cost(run: Run, data: PaperData) -> float:
    """Return a rough cost, in stored entries touched: adfSDCA updates nearly all residuals at each iteration."""
    n, nnz = data.X.shape[0], int(getattr(data.X, "nnz", data.X.size))
    per_epoch = nnz * max(1.0, n / 40) if run.method.solver == "adfsdca" else 30.0 * nnz
    return run.epochs * per_epoch + 1e5


def execute(runs: Sequence[Run], data: Mapping[str, PaperData], store: Store, work: Work) -> Any:
    """Do the runs that are not stored yet, on one thread; return all traces as one DataFrame."""
    pandas = require("pandas", "report")
    require("pyarrow", "report")
    problems: dict[tuple[str, str, str], Problem] = {}
    warmed: set[tuple[str, str, str]] = set()
    frames = []
    for run in runs:
        source = data[run.data]
        file = store.trace(run)
        amount = cost(run, source)
        if not file.exists():
            key = (run.data, run.loss, str(run.strength))
            if key not in problems:
                problems[key] = make_problem(source, run)
            kind = (str(source.X.dtype), run.loss, run.method.solver)
            if kind not in warmed:
                _warm_up(source, run)
                warmed.add(kind)
            _do(run, problems[key], source, store, partial(work.tell_share, amount, run.title))
        work.finish(amount, run.title)
        frames.append(pandas.read_parquet(file))
    return pandas.concat(frames, ignore_index=True)


def make_problem(data: PaperData, run: Run) -> Problem:
    """Return the problem of a run: no intercept, no weights, as in the paper."""
    return Problem(data.X, data.y, loss=run.loss, lam=run.strength.lam(data.X.shape[0]))


def solve_run(run: Run, problem: Problem, callback: Callable[[State], Any] | None = None) -> Result:
    """Solve, with a certificate after each epoch."""
    options = dict(run.method.options)
    if run.method.theta_factor == 1.0:
        return solve(
            problem,
            run.method.solver,
            tol=run.tol,
            max_epochs=run.epochs,
            random_state=run.seed,
            evaluate_every=1,
            callback=callback,
            **options,
        )
    solver = PrintedPlus(problem, np.random.default_rng(run.seed), **options)
    solver.theta_factor = run.method.theta_factor
    drive = Drive(
        problem, solver, tol=run.tol, max_epochs=run.epochs, max_time=None, callback=callback, evaluate_every=1
    )
    return drive.go(np.zeros(problem.n), 0.0)


def _warm_up(data: PaperData, run: Run) -> None:
    """Compile, or load from disk, what the run needs; this must not count as time of solving."""
    rows = np.unique(np.concatenate([np.flatnonzero(data.y == v)[:20] for v in np.unique(data.y)[:2]]))
    small = Problem(data.X[rows], data.y[rows], loss=run.loss, lam=1.0 / rows.size)
    solve(small, run.method.solver, tol=0.0, max_epochs=2, random_state=0, evaluate_every=1, **dict(run.method.options))


def _do(run: Run, problem: Problem, data: PaperData, store: Store, tell: Callable[[float], None]) -> None:
    pandas = require("pandas", "report")
    kept: list[Any] = []
    pair_gaps: list[float] = []
    sources: list[str] = []
    keep_residuals = run.study == "figure 1"

    def callback(state: State) -> None:
        # P(w) − D(α) as the paper plots it; the certified gap is the smaller of it and ‖∇P‖²/(2λ).
        with np.errstate(over="ignore", invalid="ignore"):
            pair_gaps.append(problem.primal(state.w) - problem.dual(state.alpha))
            sources.append(state.certificate.source)
            if keep_residuals and state.epoch in RESIDUAL_EPOCHS:
                kappa = np.abs(problem.residuals(state.w, state.alpha)).astype(np.float32)
                kept.append(pandas.DataFrame({"epoch": state.epoch, "residual": kappa}))
        tell(state.epoch / max(1, run.epochs))

    result = solve_run(run, problem, callback)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    if kept:
        _write(pandas.concat(kept, ignore_index=True), store.residuals(run))
    _write(_frame(run, problem, data, result, pair_gaps, sources), store.trace(run))


def _frame(
    run: Run, problem: Problem, data: PaperData, result: Result, pair_gaps: list[float], sources: list[str]
) -> Any:
    frame = result.trace.to_frame()
    # A run whose iterates are no longer finite ends without a last callback.
    frame["pair_gap"] = np.array(pair_gaps + [np.nan] * (len(frame) - len(pair_gaps)))
    frame["gap_source"] = sources + [""] * (len(frame) - len(sources))
    frame["relative_gap"] = frame["gap"] / problem.at_zero
    frame["relative_pair_gap"] = frame["pair_gap"] / problem.at_zero
    labels: dict[str, Any] = {
        "study": run.study,
        "data": run.data,
        "data_label": data.label,
        "origin": data.origin,
        "synthetic": data.synthetic,
        "n": problem.n,
        "d": problem.d,
        "loss": run.loss,
        "strength": str(run.strength),
        "lam": problem.lam,
        "method": run.method.key,
        "solver": run.method.solver,
        "seed": run.seed,
        "max_epochs": run.epochs,
        "tol": run.tol,
        "status": str(result.status),
    }
    for position, (name, value) in enumerate(labels.items()):
        frame.insert(position, name, value)
    return frame


def _write(frame: Any, path: Path) -> None:
    with written_in_place(path) as temporary:
        frame.to_parquet(temporary, index=False)


def check_losses(losses: Sequence[str]) -> None:
    """Refuse names of losses that are unknown."""
    for loss in losses:
        if loss not in LOSSES:
            raise ValueError(f"loss {loss!r} is unknown. Known: {', '.join(LOSSES)}.")


def check_solvers(runs: Sequence[Run], data: Mapping[str, PaperData]) -> None:
    """Let each solver refuse what it cannot do before the first run starts."""
    for run in {(r.loss, r.method): r for r in runs}.values():
        SOLVERS[run.method.solver].check(make_problem(data[run.data], run), dict(run.method.options))
