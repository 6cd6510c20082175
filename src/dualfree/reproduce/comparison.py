"""The same machinery on other data: any solvers, losses and λ, the same figures."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import real_number, whole_number
from .._optional import require
from ..io import Dataset, written_in_place
from . import figures
from .data import PaperData, signs
from .machine import machine
from .measures import curves
from .page import Page
from .plan import Method, Run, Strength, comparison
from .runs import Progress, Store, Work, check_losses, check_solvers, cost, execute
from .style import SHORT_AXES, look

SOLVERS = ("dfsdca", "adfsdca+:step=safe", "adfsdca+:step=exact", "prox-sdca", "auto")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` made.

    Attributes
    ----------
    out : Path
        The folder: ``index.html``, ``traces.parquet``, ``summary.parquet``, ``figures/`` and the traces of the runs.
    summary : DataFrame
        A row for each loss, λ, method and target: epochs, passes and seconds to that relative gap.
    traces : DataFrame
        A row for each evaluation of each run.
    """

    out: Path
    summary: Any
    traces: Any


def compare(
    data: Dataset,
    out: str | os.PathLike[str],
    solvers: Sequence[str] = SOLVERS,
    losses: Sequence[str] = ("logistic",),
    lams: Sequence[str | float] = ("1/n",),
    seeds: int = 3,
    epochs: int = 50,
    tol: float = 1e-8,
    progress: Progress | None = None,
) -> Comparison:
    r"""Run solvers on your data and draw the paper's figures of them.

    Parameters
    ----------
    data : Dataset
        What `dualfree.io.read_data` returns.
    out : path
        Where the results go; made if need be. Runs that are stored there already are not run again.
    solvers : sequence of str
        Names of solvers, with options if wanted: ``adfsdca+:step=safe:shrink=2``.
    losses : sequence of str
        Names of losses. Losses for classes need two classes; the losses for numbers take the target as it is, or ±1
        where it is text.
    lams : sequence of str or float
        λ as numbers or as multiples of 1/n: ``0.1/n``.
    seeds : int, default=3
        Seeds of each run.
    epochs : int, default=50
        The most epochs.
    tol : float, default=1e-8
        The relative gap at which a run ends.
    progress : callable, optional
        Called with the work done, the work of all runs, and what is being done.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import tempfile
    >>> from io import BytesIO
    >>> from dualfree.io import read_data
    >>> from dualfree.reproduce import compare
    >>> text = b"1 1:1 2:3\n0 1:2\n1 2:1\n0 1:1\n"
    >>> data = read_data(BytesIO(text), format="libsvm")
    >>> made = compare(data, tempfile.mkdtemp(), solvers=["dfsdca", "prox-sdca"], seeds=1, epochs=20)
    >>> sorted(made.summary["method"].unique())
    ['dfsdca', 'prox-sdca']
    """
    began = time.perf_counter()
    require("matplotlib", "report")
    for name, values in (("solvers", solvers), ("losses", losses), ("lams", lams)):
        if isinstance(values, str) or not len(values):
            raise ValueError(f"{name} must be a list with at least one entry, got {values!r}.")
    check_losses(losses)
    methods = [Method.parse(text) for text in dict.fromkeys(solvers)]
    strengths = [Strength.parse(text) for text in dict.fromkeys(lams)]
    name = os.path.basename(data.name) or "data"
    source = PaperData(name, name, data.X, _targets(data), "file", name)
    runs = comparison(
        name,
        list(dict.fromkeys(losses)),
        strengths,
        methods,
        whole_number("seeds", seeds, low=1),
        whole_number("epochs", epochs, low=1),
        real_number("tol", tol, low=0.0),
    )
    check_solvers(runs, {name: source})
    folder = Path(out)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    store = Store.of(folder / "traces", {name: source})
    work = Work(progress, sum(cost(run, source) for run in runs))
    traces = execute(runs, {name: source}, store, work)
    summary = _summary(traces, tol)
    for frame, file in ((traces, "traces.parquet"), (summary, "summary.parquet")):
        with written_in_place(folder / file) as temporary:
            frame.to_parquet(temporary, index=False)
    _page(folder, source, runs, store, traces, summary, time.perf_counter() - began)
    return Comparison(folder, summary, traces)


def _targets(data: Dataset) -> Any:
    """Return numbers as they are; text as ±1."""
    if data.y is not None and data.y.dtype.kind == "f":
        return data.y
    return signs(data)


def _summary(traces: Any, tol: float) -> Any:
    """Return epochs, passes and seconds to each target, a row each; missing where it was not reached."""
    pandas = require("pandas", "report")
    targets = sorted({t for t in (1e-2, 1e-4, 1e-6, tol) if t > 0}, reverse=True)
    rows = []
    for (data, loss, strength, method), curve in curves(traces).items():
        for target in targets:
            reached = {short: curve.reach(target, axis) for axis, short in SHORT_AXES.items()}
            needs = {short: value if np.isfinite(value) else np.nan for short, value in reached.items()}
            statuses = ", ".join(dict.fromkeys(curve.statuses))
            row = {"data": data, "loss": loss, "lam": strength, "method": method, "target": target}
            rows.append({**row, **needs, "status": statuses})
    return pandas.DataFrame(rows)


def _page(
    folder: Path, source: PaperData, runs: Sequence[Run], store: Store, traces: Any, summary: Any, seconds: float
) -> None:
    pandas = require("pandas", "report")
    pictures = folder / "figures"
    page = Page(f"dualfree bench: {source.label}")
    n, d = source.X.shape
    page.paragraph(f"{n:,} rows × {d:,} features. {len(runs)} runs; this took {seconds:.0f} s on {machine()}.")
    page.section("Epochs, passes and seconds to a relative gap")
    page.table(
        ("loss", "λ", "method", "gap / P(0)", *SHORT_AXES.values(), "ended"),
        [
            (
                r.loss,
                r.lam,
                look(r.method).label,
                f"{r.target:.0e}",
                *map(_shown, (r.epochs, r.passes, r.seconds)),
                r.status,
            )
            for r in summary.itertuples()
        ],
    )
    page.section("The duality gap")
    losses = list(dict.fromkeys(run.loss for run in runs))
    for loss in losses:
        page.figure(
            pictures,
            figures.gap_figure(traces, pictures, source.name, loss),
            f"{loss} loss; median and range of the seeds.",
        )
    page.section("The dual residuals")
    shown = runs[0].strength
    for loss in losses:
        first = {r.method.key: r for r in runs if r.loss == loss and r.strength == shown and r.seed == 0}
        kept = {k: pandas.read_parquet(store.residuals(r)) for k, r in first.items() if store.residuals(r).exists()}
        if kept:
            drawn = figures.residual_figure(kept, pictures, source.name, loss, str(shown), source.label)
            page.figure(pictures, drawn, f"{loss} loss, λ = {shown}: |κ| after 1 to 5 epochs, first seed.")
    page.write(folder / "index.html")


def _shown(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "not reached"
