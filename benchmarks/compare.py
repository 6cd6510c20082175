"""Time to a true suboptimality, against peers, on the same problem in one run.

    python -m benchmarks.compare --data-dir DIR --out results.parquet [--quick] [--data a9a,w8a] [--lam-n 1,0.1]

A cell is a data set, a loss and λn. The reference P* is our own certificate at a relative gap of 1e-12. The time of a
solver to a level (P(w) − P*)/(P(0) − P*) ≤ 1e-3, 1e-6, 1e-9 is the time of a whole fit (conversion included) at the
loosest of its tolerances that reaches the level; the same rule for ours, whose certificate is computed inside the
time. First tolerances run from loose to tight; then the chosen ones are repeated, solvers interleaved, and the median
counts. Cells that are in the output already are not run again. docs/benchmarks.md has the details.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from . import machine, summary
from .datasets import DataSet, NotComparedError, files_in, load
from .grid import FEW_LAM_NS, LAM_NS, LEVELS, LOSSES, Cell, cells_of
from .markdown import write_markdown
from .measure import CellRun, Effort
from .peers import OURS, Peer, installed
from .results import Results
from .worker import Worker, limit_threads, task_of

_QUICK = Effort(repeats=3, patience=5.0, give_up=5.0, contender=2.0)
_QUICK_NONZEROS = 2_000_000
_QUICK_MINUTES = 5.0


def _listed(kind: Callable[[str], object]) -> Callable[[str], tuple[object, ...]]:
    def convert(text: str) -> tuple[object, ...]:
        return tuple(kind(entry.strip()) for entry in text.split(","))

    convert.__name__ = f"list ({kind.__name__}s with commas between them)"
    return convert


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


_positive.__name__ = "positive number"


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise ValueError
    return count


_count.__name__ = "positive whole number"


def _threads(text: str) -> int:
    return machine.cores() if text == "all" else _count(text)


_threads.__name__ = "number of threads (a positive whole number or all)"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_argument_group("what to solve (comma-separated lists)")
    what.add_argument("--data-dir", type=Path, help="folder of NumPy archives and LIBSVM files")
    what.add_argument("--data", type=_listed(str), help="names of sets; by default every set of the folder")
    what.add_argument("--losses", type=_listed(str), default=tuple(loss for task in LOSSES.values() for loss in task))
    what.add_argument("--lam-n", type=_listed(_positive), help="by default 10,1,0.1,0.01; with --intercept 1,0.01")
    what.add_argument("--levels", type=_listed(_positive), default=LEVELS, help="by default 1e-3,1e-6,1e-9")
    what.add_argument("--solvers", type=_listed(str), help="beginnings of solvers' names, as dualfree,sklearn")
    what.add_argument(
        "--intercept", action="store_true", help="with an unpenalised intercept, for solvers that have one"
    )
    what.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    what.add_argument("--threads", type=_threads, default=1, help="a number or all")
    how = parser.add_argument_group("how much time to spend")
    how.add_argument("--quick", action="store_true", help="about five minutes: fewer sets and λ, fewer repeats")
    how.add_argument("--repeats", type=_count, help="repeats of a fit (three times as many where it is short)")
    how.add_argument("--patience", type=_positive, help="the most seconds for one fit")
    how.add_argument("--give-up", type=_positive, help="no tighter tolerance beyond so many times the best time")
    how.add_argument("--minutes", type=_positive, help="begin no cell after that many")
    how.add_argument("--fresh", action="store_true", help="measure again what is in the output already")
    output = parser.add_argument_group("output")
    output.add_argument("--out", type=Path, default=Path("benchmark_results/compare.parquet"))
    output.add_argument("--summary-only", action="store_true", help="measure nothing; sum up what --out holds")
    output.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables as Markdown")
    output.add_argument("--plots", action="store_true", help="also draw performance profiles, next to --out")
    options = parser.parse_args(arguments)
    known = {loss for task in LOSSES.values() for loss in task}
    if unknown := set(options.losses) - known:
        parser.error(f"--losses: {', '.join(sorted(unknown))} is none of {', '.join(sorted(known))}")
    if not options.summary_only and (options.data_dir is None or not options.data_dir.is_dir()):
        parser.error(f"--data-dir must name a folder of data sets, got {options.data_dir}")
    return options


def _effort(options: argparse.Namespace) -> Effort:
    preset = _QUICK if options.quick else Effort()
    chosen = {name: getattr(options, name) for name in ("repeats", "patience", "give_up")}
    return replace(preset, **{name: value for name, value in chosen.items() if value is not None})


class Program:
    """One run of the benchmark."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.results = Results(options.out)
        self.effort = _effort(options)
        minutes = options.minutes or (_QUICK_MINUTES if options.quick else float("inf"))
        self.deadline = time.monotonic() + 60 * minutes
        self.lam_ns = options.lam_n or (FEW_LAM_NS if options.quick or options.intercept else LAM_NS)
        self.not_begun = 0
        self.peers: list[Peer] = []

    def measure(self) -> None:
        """Go through the data sets of the folder."""
        peers, missing = installed()
        for sentence in missing:
            print(sentence)
        wanted = self.options.solvers
        self.peers = [peer for peer in peers if wanted is None or peer.name.startswith(wanted)]
        if not self.peers:
            sys.exit(f"--solvers: no installed solver begins with {' or '.join(wanted)}.")
        limit_threads(self.options.threads)
        files = files_in(self.options.data_dir)
        for name in self.options.data or files:
            if name not in files:
                sys.exit(f"--data: there is no {name} in {self.options.data_dir}; it holds {', '.join(files)}.")
        for name in self.options.data or files:
            try:
                data = load(name, files[name], self.options.dtype)
            except NotComparedError as reason:
                print(reason)
                continue
            if self.options.quick and not self.options.data and data.nnz > _QUICK_NONZEROS:
                print(f"{name} is left out of the quick run: it has {data.nnz:,} non-zeros.")
                continue
            worker = Worker(name, files[name], self.options.dtype, self.options.threads)
            try:
                self._measure_set(data, worker)
            finally:
                worker.close()
        if self.not_begun:
            print(
                f"The time is up: {self.not_begun} cells were not measured. The same command without --fresh goes on."
            )

    def _measure_set(self, data: DataSet, worker: Worker) -> None:
        options = self.options
        for cell in cells_of(
            data.name, data.task, options.losses, self.lam_ns, options.dtype, options.intercept, options.threads
        ):
            peers = [peer for peer in self.peers if peer.takes(task_of(data, cell))]
            if not options.fresh and self.results.has(cell, [peer.name for peer in peers], options.levels):
                continue
            if time.monotonic() > self.deadline:
                self.not_begun += 1
                continue
            self._measure_cell(cell, data, worker, peers)

    def _measure_cell(self, cell: Cell, data: DataSet, worker: Worker, peers: list[Peer]) -> None:
        run = CellRun(cell, data, worker, self.effort)
        rows = run.measure(peers, self.options.levels)
        self.results.put(
            cell,
            rows,
            n=data.X.shape[0],
            d=data.X.shape[1],
            nnz=data.nnz,
            at_zero=run.reference.at_zero,
            optimum=run.reference.optimum,
            reference_gap=run.reference.gap,
            reference_gap_computed=run.reference.computed,
            machine=machine.machine(),
            versions=machine.versions(tuple(sorted({peer.package for peer in installed()[0]}))),
            commit=machine.commit(),
        )
        cells = summary.ratios(self.results.frame[self.results.rows_of(cell)])
        for _, line in cells.iterrows():
            print(summary.cell_line(line), flush=True)
        if cells.empty:  # nothing to compare with
            for row in rows:
                print(
                    f"  {cell} to {row['level']:g}: {row['solver']} {row['note'] or summary.milliseconds(row['seconds'])}"
                )


def _chosen(frame: pd.DataFrame, options: argparse.Namespace) -> pd.DataFrame:
    """Return the rows that a summary is asked for: the lists of the command line narrow it down."""
    for column, wanted in (
        ("data", options.data),
        ("lam_n", options.lam_n),
        ("loss", options.losses),
        ("level", options.levels),
    ):
        if wanted is not None and len(frame):
            frame = frame[frame[column].isin(wanted)]
    if options.solvers is not None and len(frame):
        frame = frame[frame.solver.str.startswith((OURS, *options.solvers))]
    return frame


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, then sum up."""
    options = _options(arguments)
    try:
        program = Program(options)
    except ValueError as problem:
        sys.exit(str(problem))
    if not options.summary_only:
        print(f"{machine.machine()}; {options.threads} thread(s).")
        program.measure()
    frame = _chosen(program.results.frame, options)
    if frame.empty:
        sys.exit(f"{options.out} holds no results for this choice.")
    if options.summary_only:
        for _, line in summary.ratios(frame).iterrows():
            print(summary.cell_line(line))
    print()
    for line in summary.lines(frame):
        print(line)
    if options.markdown:
        write_markdown(frame, options.markdown)
        print(f"Wrote {options.markdown}.")
    if options.plots:
        from .profiles import write_profiles  # matplotlib takes a second to import

        for path in write_profiles(frame, options.out):
            print(f"Wrote {path}.")


if __name__ == "__main__":
    main()
