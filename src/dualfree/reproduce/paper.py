"""The paper's experiments, from data to page."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._checks import one_of, whole_number
from .._optional import require
from .._version import __version__
from ..io import written_in_place
from . import assumptions, claims, theory
from .claims import Claim
from .data import PaperData, find
from .download import Progress as DownloadProgress
from .machine import machine
from .paper_page import write_paper_page
from .plan import ADFSDCA, DFSDCA, PAPER_DATA, PAPER_LOSSES, PROX_PERMUTATION, PROX_UNIFORM, Plan, Run
from .runs import Progress, Store, Work, cost, execute

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What `reproduce` made.

    Attributes
    ----------
    out : Path
        The folder: ``index.html``, ``claims.json``, ``traces.parquet``, ``figures/`` and the traces of the runs.
    claims : list of Claim
        The verdicts.
    data : dict of str to PaperData
        What the experiments were run on.
    traces : DataFrame
        A row for each evaluation of each run.
    seconds : float
        Wall-clock time.
    """

    out: Path
    claims: list[Claim]
    data: dict[str, PaperData]
    traces: Any
    seconds: float


def reproduce(
    data_dir: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    mode: str = "quick",
    seeds: int | None = None,
    progress: Progress | None = None,
    download: bool = True,
    download_progress: DownloadProgress | None = None,
    note: Callable[[str], None] | None = None,
    plan: Plan | None = None,
) -> Reproduction:
    """Regenerate the paper's experiments and say, claim by claim, what holds.

    Interrupted, it goes on where it was when it is called again with the same arguments.

    Parameters
    ----------
    data_dir : path or None
        Where to look for mushrooms and rcv1, as LIBSVM text or .npz. Data that are not there are downloaded into
        ``out/data``; without a network they are made up in the same shape and labelled as synthetic.
    out : path
        Where the results go; made if need be.
    mode : {"quick", "full"}, default="quick"
        About a minute on a part of the rows, or all rows (tens of minutes).
    seeds : int, optional
        Seeds of each run; 3 by default.
    progress : callable, optional
        Called with the work done, the work of the whole plan, and what is being done.
    download : bool, default=True
        Whether the network may be used.
    download_progress : callable, optional
        Called with the bytes at hand and the size of a file, or None, during a download.
    note : callable, optional
        Called with sentences that a user should see.
    plan : Plan, optional
        A plan of your own instead of the one of `mode`.

    Returns
    -------
    Reproduction

    Examples
    --------
    >>> import tempfile
    >>> from dualfree.reproduce import reproduce
    >>> from dualfree.reproduce.plan import Plan, Strength
    >>> tiny = Plan("tiny", 60, 40, 2, 2, seeds=1, epochs=5, strengths=(Strength(1.0),))
    >>> made = reproduce(None, tempfile.mkdtemp(), plan=tiny, download=False)
    >>> all(source.synthetic for source in made.data.values())
    True
    >>> next(claim.verdict for claim in made.claims if claim.id == "optimal-probabilities")
    'holds'
    """
    began = time.perf_counter()
    one_of("mode", mode, ("quick", "full"))
    if seeds is not None:
        seeds = whole_number("seeds", seeds, low=1)
    plan = plan or Plan.of(mode, seeds)
    folder = Path(out)
    require("matplotlib", "report")
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    source_dir = None if data_dir is None else Path(data_dir)
    if source_dir is not None and not source_dir.is_dir():
        raise FileNotFoundError(f"data_dir must be a folder; there is none at {source_dir}.")
    complete = {
        name: find(name, source_dir, folder / "data", download, download_progress, note or (lambda text: None))
        for name in PAPER_DATA
    }
    data = {name: source.part(plan.rows) for name, source in complete.items()}
    runs = plan.runs()
    theory_cost = _theory_cost(plan)
    work = Work(progress, sum(cost(run, data[run.data]) for run in runs) + 4 * plan.theory_seeds * theory_cost)
    small = {name: source.part(plan.theory_rows) for name, source in complete.items()}
    checks = _theory(plan, small, folder / "theory", work, theory_cost)
    store = Store.of(folder / "traces", data)
    traces = execute(runs, data, store, work)
    _write_parquet(traces, folder / "traces.parquet")
    _write_parquet(checks, folder / "theory.parquet")
    return _report(folder, plan, data, complete, runs, store, traces, checks, began)


def _theory_cost(plan: Plan) -> float:
    return plan.theory_epochs * plan.theory_rows * 4e3  # in the units of `runs.cost`: single visits have an overhead


def _theory(plan: Plan, data: Mapping[str, PaperData], folder: Path, work: Work, amount: float) -> Any:
    pandas = require("pandas", "report")
    frames = []
    for name, source in data.items():
        for loss in PAPER_LOSSES:
            for seed in range(plan.theory_seeds):
                frames.append(theory.measure(source, loss, seed, plan.theory_epochs, folder))
                work.finish(amount, f"theorem: {name}, {loss}, seed {seed}")
    return pandas.concat(frames, ignore_index=True)


def _write_parquet(frame: Any, path: Path) -> None:
    with written_in_place(path) as temporary:
        frame.to_parquet(temporary, index=False)


# --- what the traces say ----------------------------------------------------------------------------------------------


def _report(
    folder: Path,
    plan: Plan,
    data: dict[str, PaperData],
    complete: Mapping[str, PaperData],
    runs: list[Run],
    store: Store,
    traces: Any,
    checks: Any,
    began: float,
) -> Reproduction:
    main, sensitivity = (traces[traces["study"] == study] for study in ("figure 1", "sensitivity"))
    kept = _residuals(runs, store)
    speed = claims.speed_rows(main)
    verdicts = [
        claims.outperforms(speed, "outperforms-dfsdca", "dfSDCA", DFSDCA.key),
        claims.outperforms(speed, "outperforms-prox-sdca", "Prox-SDCA", PROX_UNIFORM.key, [PROX_PERMUTATION.key]),
        claims.residual_claim(kept, data),
        *claims.theorem_claims(checks),
        claims.printed_plus_claim(main, sensitivity),
        claims.capped_plus_claim(main, sensitivity),
        claims.cost_claim(main),
    ]
    each = traces.groupby(["study", "data", "loss", "strength", "method", "seed"])[["seconds", "evaluation_seconds"]]
    seconds = float(each.max().to_numpy().sum())  # also of runs that an earlier call had stored
    _write_claims(folder, plan, data, verdicts)
    write_paper_page(folder, plan, data, complete, main, sensitivity, checks, kept, speed, verdicts, seconds)
    return Reproduction(folder, verdicts, data, traces, time.perf_counter() - began)


def _residuals(runs: list[Run], store: Store) -> dict[tuple[str, str, str, str], Any]:
    """Return the residuals of the first seed of dfSDCA and adfSDCA, by problem and method."""
    pandas = require("pandas", "report")
    wanted = [r for r in runs if r.seed == 0 and r.method in (DFSDCA, ADFSDCA) and store.residuals(r).exists()]
    wanted.sort(key=lambda run: run.method != DFSDCA)
    return {(r.data, r.loss, str(r.strength), r.method.key): pandas.read_parquet(store.residuals(r)) for r in wanted}


def _write_claims(folder: Path, plan: Plan, data: Mapping[str, PaperData], verdicts: list[Claim]) -> None:
    content = {
        "schema": SCHEMA,
        "version": __version__,
        "mode": plan.mode,
        "seeds": plan.seeds,
        "machine": machine(),
        "synthetic": any(source.synthetic for source in data.values()),
        "data": [
            {
                "name": source.name,
                "label": source.label,
                "origin": source.origin,
                "synthetic": source.synthetic,
                "where": source.where,
                "rows": int(source.X.shape[0]),
                "features": int(source.X.shape[1]),
                "fingerprint": source.fingerprint(),
            }
            for source in data.values()
        ],
        "assumed": list(assumptions.SILENT),
        "slips": list(assumptions.SLIPS),
        "claims": [claim.as_dict() for claim in verdicts],
    }
    with written_in_place(folder / "claims.json") as temporary:
        temporary.write_text(
            json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8"
        )


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: infinity and NaN become null, numpy's numbers plain ones."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
