"""Whether a change makes fits faster: this checkout against another one, fit by fit in turn.

    git worktree add ../before HEAD~3
    python -m benchmarks.versions --data-dir folder --before ../before
    python -m benchmarks.versions --data-dir folder --before ../before --data a9a,w8a --threads 2 --tols 1e-6

Each version runs in a process of its own, that waits while the other one fits; both get the same problem and the same seed, and
another seed each time. A shared machine's speed changes by the minute, so only what was measured in turn is worth comparing:
the ratio of medians, and that of the quickest fits. Above 1 this checkout is faster. Passes tell what is due to the algorithm.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from .datasets import DataSet, NotComparedError, files_in, load
from .grid import LOSSES
from .worker import limit_threads

_LAM_NS, _TOLS, _THREADS = "10,1,0.1,0.01", "1e-3,1e-6,1e-9", "1"
_REPEATS, _MOST_REPEATS, _SECONDS = 5, 40, 2.0  # of each fit: no fewer, no more, and about as long as this
_SERVE = "--serve"
_HERE = Path(__file__).resolve().parents[1]


class Fit(NamedTuple):
    """What is to be fitted."""

    loss: str
    lam_n: float
    tol: float
    threads: int


class Version:
    """A process that fits with the code of one checkout."""

    def __init__(self, checkout: Path, name: str, path: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{checkout / 'src'}{os.pathsep}{_HERE}"}
        command = [sys.executable, "-m", "benchmarks.versions", _SERVE, name, str(path.resolve())]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True, cwd=_HERE)
        where = self._hear()
        if not Path(where).is_relative_to(checkout.resolve()):
            raise SystemExit(f"--before: {checkout} holds no dualfree in src/; {where} was imported instead.")

    def fit(self, fit: Fit, seed: int) -> tuple[float, float]:
        """Return seconds and passes of a fit."""
        self._say([*fit, seed])
        seconds, passes = self._hear()
        return seconds, passes

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _say(self, message: Any) -> None:
        assert self._process.stdin is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)

    def _hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("A version ended before it had answered; what it printed is above.")
        return json.loads(line)


def serve(name: str, path: Path) -> None:
    """Fit what is asked for on standard input, one line each."""
    import dualfree as df

    data = load(name, path, "float64")
    print(json.dumps(df.__file__), flush=True)
    with threadpool_limits(1):
        for line in sys.stdin:
            loss, lam_n, tol, threads, seed = json.loads(line)
            began = time.perf_counter()
            problem = df.Problem(data.X, data.y, loss=loss, lam=lam_n / data.X.shape[0])
            result = df.solve(problem, tol=tol, max_epochs=100_000, random_state=seed, n_threads=threads)
            seconds = time.perf_counter() - began
            print(json.dumps((seconds, result.trace[-1].passes)), flush=True)


def compared(fit: Fit, before: Version, now: Version) -> tuple[float, float]:
    """Print a line; return the ratios of medians and of the quickest fits."""
    versions, seconds, passes = (before, now), ([], []), ([], [])
    for version in versions:
        version.fit(fit, 0)  # it may compile
    turns = 0
    while turns < _REPEATS or (turns < _MOST_REPEATS and sum(seconds[0]) + sum(seconds[1]) < 2 * _SECONDS):
        for k in (0, 1) if turns % 2 == 0 else (1, 0):
            taken, made = versions[k].fit(fit, turns)
            seconds[k].append(taken)
            passes[k].append(made)
        turns += 1
    medians, quickest = ([1e3 * float(of(times)) for times in seconds] for of in (np.median, np.min))
    print(
        f"  {fit.loss:<13} λn = {fit.lam_n:<5g} to {fit.tol:<6g} {fit.threads} thread(s)   "
        f"{medians[0]:8.2f} → {medians[1]:8.2f} ms   ratio {medians[0] / medians[1]:.3f}   "
        f"quickest {quickest[0] / quickest[1]:.3f}   passes {np.mean(passes[0]):.2f} → {np.mean(passes[1]):.2f}",
        flush=True,
    )
    return medians[0] / medians[1], quickest[0] / quickest[1]


def fits_of(data: DataSet, options: argparse.Namespace) -> Iterator[Fit]:
    """Yield the fits of a set that the options ask for."""
    for loss in LOSSES[data.task]:
        if options.losses is None or loss in options.losses.split(","):
            for threads in options.threads.split(","):
                for lam_n in options.lam_n.split(","):
                    for tol in options.tols.split(","):
                        yield Fit(loss, float(lam_n), float(tol), int(threads))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True, help="folder of data sets")
    parser.add_argument("--before", type=Path, required=True, help="another checkout of this project")
    parser.add_argument("--data", help="names of sets, with commas between them; by default all")
    parser.add_argument("--losses", help="by default all that suit a set")
    parser.add_argument("--lam-n", default=_LAM_NS, help=f"by default {_LAM_NS}")
    parser.add_argument("--tols", default=_TOLS, help=f"by default {_TOLS}")
    parser.add_argument("--threads", default=_THREADS, help=f"numbers of threads, by default {_THREADS}")
    return parser.parse_args()


def main() -> None:
    """Run the command."""
    options = _options()
    limit_threads(1)
    ratios: dict[tuple[float, int], list[tuple[float, float]]] = {}
    for name, path in files_in(options.data_dir).items():
        if options.data is not None and name not in options.data.split(","):
            continue
        try:
            data = load(name, path, "float64")
        except NotComparedError as reason:
            print(reason)
            continue
        print(name)
        before, now = Version(options.before, name, path), Version(_HERE, name, path)
        for fit in fits_of(data, options):
            ratios.setdefault((fit.tol, fit.threads), []).append(compared(fit, before, now))
        before.close()
        now.close()
    for (tol, threads), found in ratios.items():
        medians, quickest = np.exp(np.log(found).mean(axis=0))
        print(
            f"to {tol:g}, {threads} thread(s): geometric mean of the ratios {medians:.3f}, "
            f"of the quickest {quickest:.3f}, over {len(found)} fits"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == [_SERVE]:
        serve(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
