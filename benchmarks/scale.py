"""Rounds, bytes and seconds of a fit on worker processes, and the cost model of a round.

    python -m benchmarks.scale --data-dir DIR                 # DIR holds rcv1_subsets.npz; all of it
    python -m benchmarks.scale --quick                        # small synthetic data only, a minute
    python -m benchmarks.scale --report --out FILE.parquet    # what a file holds, nothing is run

Logistic loss, λn = 1, no intercept, as many partitions as workers. The rows are made or read on the workers before the clock
starts. Runs add to the file, so numbers of workers can be measured one at a time; what is measured again is replaced.

- fits to a certified gap of 1e-3 and 1e-6 of P(0);
- one worker against `dualfree.solve` in that same worker, in turn: at most 1.5 times as long;
- rounds of data of several sizes, for the cost model (`scale_model.py`);
- dask-ml's LogisticRegression, to the same distance from the optimum.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from distributed import Client

from dualfree.io import written_in_place

from . import scale_peer, scale_report
from .machine import commit, cores, machine, versions
from .scale_data import File, Synthetic
from .scale_measure import Resident, in_worker, on_cluster, primal, put, workers

LEVELS = (1e-3, 1e-6)
_REFERENCE_TOL = 1e-8
_LARGE = 20_000_000  # non-zeros from which a fit is not repeated and the peer is not asked
_CALIBRATION = tuple(itertools.product((1_000_000, 8_000_000), (50_000, 1_000_000)))
_QUICK_CALIBRATION = tuple(itertools.product((100_000, 400_000), (2_500, 50_000)))
_CALIBRATION_ROUNDS = 10
_KEY = ["set", "workers", "kind"]


class Results:
    """The rows of a Parquet file, written anew after each measurement."""

    def __init__(self, path: Path, fresh: bool) -> None:
        self.path = path
        self.frame = pd.DataFrame() if fresh or not path.exists() else pd.read_parquet(path)

    def put(self, where: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        """Store measurements; earlier ones of the same set, workers and kind are replaced."""
        about = {"cores": cores(), "machine": machine(), "commit": commit(), "versions": _versions()}
        new = pd.DataFrame([{**where, **row, **about} for row in rows])
        if len(self.frame):
            now = pd.MultiIndex.from_frame(new[_KEY])
            kept = self.frame[~pd.MultiIndex.from_frame(self.frame[_KEY]).isin(now)]
            new = pd.concat([kept, new], ignore_index=True)
        self.frame = new
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with written_in_place(self.path) as temporary:
            self.frame.to_parquet(temporary)


def _versions() -> str:
    return versions(("dualfree", "dask", "distributed", *scale_peer.PACKAGES))


def fits(client: Client, data: Resident, repeats: int) -> list[dict[str, Any]]:
    """Fit to each level; with one worker, in turn with `dualfree.solve`."""
    alone = len(data.futures) == 1
    on_cluster(client, data, LEVELS[0], max_rounds=1)  # kernels are loaded
    if alone:
        in_worker(client, data, LEVELS[0])
    rows = []
    for level, repeat in itertools.product(LEVELS, range(repeats)):
        rows.append({"kind": "cluster", "level": level, "repeat": repeat, **asdict(on_cluster(client, data, level))})
        if alone:
            seconds, cpu = in_worker(client, data, level)
            rows.append({"kind": "solve", "level": level, "repeat": repeat, "seconds": seconds, "cpu_seconds": cpu})
    return rows


def peer(client: Client, data: Resident, solver: str, lower: float, limit: float) -> list[dict[str, Any]]:
    """Run one of dask-ml's solvers; each fit is judged by P(w), against a lower bound on P* from a certificate."""
    kind = f"dask-ml {solver}"
    rows: list[dict[str, Any]] = []
    tries = scale_peer.attempts(client, data, solver, limit)
    while True:
        try:
            tried = next(tries, None)
        except Exception as error:  # whatever a peer raises is a result, not the end of the benchmark
            _say(f"  {kind} failed: {type(error).__name__}: {error}")
            return [*rows, {"kind": kind, "error": f"{type(error).__name__}: {error}"[:500]}]
        if tried is None:
            return rows
        distance = (primal(client, data, tried.w) - lower) / math.log(2.0)
        used = {"rounds": tried.iterations, "seconds": tried.seconds, "cpu_seconds": tried.cpu_seconds}
        rows.append({"kind": kind, "gap": distance, **used})
        _say(f"  {kind}, {tried.iterations} iterations: {tried.seconds:.2f} s, suboptimality {distance:.1e}")
        if distance <= min(LEVELS):
            return rows


def measure(arguments: argparse.Namespace, results: Results) -> None:
    """Run everything for each number of workers; the cluster is started once for each."""
    sets: list[File | Synthetic] = []
    if arguments.data_dir is not None:
        sets.append(File(arguments.data_dir / "rcv1_subsets.npz"))
    if arguments.entries:
        sets.append(Synthetic(arguments.entries, arguments.features))
    calibration = _QUICK_CALIBRATION if arguments.quick else _CALIBRATION
    for count in arguments.workers:
        _say(f"{count} worker{'s' if count > 1 else ''}")
        with workers(count) as client:
            if count > 1 and not arguments.no_calibration:
                for entries, d in calibration:
                    one(client, Synthetic(entries, d), count, arguments, results, calibrate=True)
            for data in sets:
                one(client, data, count, arguments, results)


def one(
    client: Client,
    data: File | Synthetic,
    count: int,
    arguments: argparse.Namespace,
    results: Results,
    calibrate: bool = False,
) -> None:
    """Measure one set on the workers that there are."""
    resident = put(client, data.blocks(count))
    where = {"set": data.name, "workers": count, "rows": resident.rows, "d": resident.d, "nnz": resident.nnz}
    if calibrate:
        on_cluster(client, resident, 0.0, max_rounds=1)
        found = [on_cluster(client, resident, 0.0, max_rounds=_CALIBRATION_ROUNDS) for _ in range(arguments.repeats)]
        results.put(where, [{"kind": "calibration", "repeat": k, **asdict(each)} for k, each in enumerate(found)])
        _say(
            f"  {data.name}: {', '.join(f'{1e3 * each.round_seconds / each.rounds:.0f}' for each in found)} ms a round"
        )
        return
    large = resident.nnz >= _LARGE
    rows = fits(client, resident, 1 if large else arguments.repeats)
    results.put(where, rows)
    for row in rows:
        _say(f"  {data.name}, {row['kind']}, gap {row['level']:g}: {row['seconds']:.2f} s")
    if count == arguments.peer_workers:
        reason = f"{resident.nnz:,} non-zeros are more than it is asked" if large else scale_peer.missing()
        if reason is not None:
            _say(f"  dask-ml is left out: {reason}")
        else:
            lower = on_cluster(client, resident, _REFERENCE_TOL).dual
            for solver in scale_peer.ITERATIONS:
                results.put(where, peer(client, resident, solver, lower, arguments.peer_seconds))


def _say(text: str) -> None:
    print(text, flush=True)


def _whole(text: str) -> int:
    """A whole number, 1e8 included."""
    value = float(text)
    if not value.is_integer() or value < 0:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number")
    return int(value)


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="folder with rcv1_subsets.npz, which the workers can open")
    parser.add_argument("--entries", type=_whole, help="non-zeros of the synthetic set (default 1e8; 0 leaves it out)")
    parser.add_argument("--features", type=_whole, help="columns of the synthetic set (default 1e6)")
    parser.add_argument("--workers", type=_whole, nargs="+", help="numbers of worker processes (default 1 2 4 8)")
    parser.add_argument("--repeats", type=_whole, default=3, help="fits of each kind; large data are fitted once")
    parser.add_argument("--peer-workers", type=_whole, default=2, help="workers with which dask-ml is run; 0 for never")
    parser.add_argument("--peer-seconds", type=float, default=60.0, help="no more iterations after a fit this long")
    parser.add_argument("--no-calibration", action="store_true", help="leave out the rounds for the cost model alone")
    parser.add_argument("--quick", action="store_true", help="small data, 1 and 2 workers")
    parser.add_argument("--fresh", action="store_true", help="forget what --out holds")
    parser.add_argument("--report", action="store_true", help="run nothing; print what --out holds")
    parser.add_argument("--out", type=Path, default=Path("benchmark_results/scale.parquet"))
    arguments = parser.parse_args(given)
    quick = arguments.quick
    for name, usual, small in (
        ("entries", 10**8, 200_000),
        ("features", 10**6, 10_000),
        ("workers", [1, 2, 4, 8], [1, 2]),
    ):
        if getattr(arguments, name) is None:
            setattr(arguments, name, small if quick else usual)
    if min(arguments.workers) < 1 or arguments.repeats < 1:
        sys.exit("--workers and --repeats must be at least 1.")
    if arguments.data_dir is not None and not (arguments.data_dir / "rcv1_subsets.npz").exists():
        sys.exit(f"{arguments.data_dir} must hold rcv1_subsets.npz; leave --data-dir out for synthetic data alone.")
    if arguments.report and not arguments.out.exists():
        sys.exit(f"{arguments.out} does not exist; --report prints a file that an earlier run has written.")
    results = Results(arguments.out, arguments.fresh)
    if not arguments.report:
        measure(arguments, results)
    print(scale_report.report(results.frame))


if __name__ == "__main__":
    main()
