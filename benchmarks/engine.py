"""Speed and memory of the engine, as ratios measured in one run.

    python benchmarks/engine.py --data-dir DIR        # DIR holds rcv1_subsets.npz (data, indices, indptr, shape, y)

Prints, with the limit that each should keep:

- one epoch of dfsdca and prox-sdca against one ``X @ w`` of scipy on the same matrix (float64), interleaved;
- one iteration of adfsdca against one that recomputes all residuals with scipy and numpy;
- the first solve of a new process against the second, with a warm and with an empty kernel cache; the import;
- peak memory of a fit beyond the data, dense and CSR, for each solver.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

import dualfree as df


def load(path: Path) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    with np.load(path) as f:
        X = scipy.sparse.csr_matrix((f["data"], f["indices"], f["indptr"]), shape=f["shape"])
        return X.astype(np.float64), f["y"]


def seconds(work: Callable[[], object], at_least: int = 1) -> float:
    began = time.perf_counter()
    for _ in range(at_least):
        work()
    return (time.perf_counter() - began) / at_least


def line(what: str, value: str, limit: str, kept: bool) -> None:
    print(f"{what:<58} {value:>22}   limit {limit:<10} {'ok' if kept else 'NOT KEPT'}", flush=True)


# --- epochs -----------------------------------------------------------------------------------------------------------


def epochs(X: scipy.sparse.csr_matrix, y: np.ndarray, repeats: int = 31) -> None:
    n = X.shape[0]
    problem = df.Problem(X, y, loss="logistic", lam=1.0 / n)
    w = np.random.default_rng(0).normal(size=X.shape[1])
    solvers = {name: df.SOLVERS[name](problem, np.random.default_rng(0)) for name in ("dfsdca", "prox-sdca")}
    times: dict[str, list[float]] = {"X @ w": [], **{name: [] for name in solvers}}
    for solver in solvers.values():
        solver.start(np.zeros(n), 0.0)
    for _ in range(repeats):  # interleaved: other work on the machine then hits all of them
        times["X @ w"].append(seconds(lambda: X @ w, 3))
        for name, solver in solvers.items():

            def one_epoch(solver: df.solvers.Solver = solver) -> None:
                solver.begin_epoch()
                solver.visit(n)
                solver.end_epoch()

            times[name].append(seconds(one_epoch))
    base = np.array(times["X @ w"][1:])
    print(f"one X @ w: {1e3 * np.median(base):.2f} ms (median of {repeats - 1})")
    for name in solvers:
        ratios = np.array(times[name][1:]) / base
        median = float(np.median(ratios))
        what = f"one epoch of {name} / X @ w"
        line(what, f"{median:.1f} ({1e3 * np.median(times[name]):.1f} ms)", "8", median <= 8)


# --- one iteration of adfsdca -----------------------------------------------------------------------------------------


def iteration(X: scipy.sparse.csr_matrix, y: np.ndarray, repeats: int = 21) -> None:
    per_repeat, naive_per_repeat = (
        200,
        20,
    )  # about the same time for both, long enough for each to find its data in the caches again
    n = X.shape[0]
    lam = 1.0 / n
    problem = df.Problem(X, y, loss="logistic", lam=lam)
    solver = df.SOLVERS["adfsdca"](problem, np.random.default_rng(0))
    solver.start(np.zeros(n), 0.0)
    solver.begin_epoch()
    solver.visit(5)
    signs, alpha, w = problem.y, np.zeros(n), np.zeros(X.shape[1])
    c = np.sqrt(4.0 + problem.row_norms_squared / (n * lam))
    rng = np.random.default_rng(0)

    def naive() -> None:
        kappa = alpha - signs / (1.0 + np.exp(signs * (X @ w)))
        weights = c * np.abs(kappa)
        cumulative = np.cumsum(weights)
        i = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        theta = 4.0 * (kappa @ kappa) / cumulative[-1] ** 2
        delta = -theta * cumulative[-1] / weights[i] * kappa[i]
        alpha[i] += delta
        row = slice(X.indptr[i], X.indptr[i + 1])
        w[X.indices[row]] += delta / (lam * n) * X.data[row]

    ours, theirs = [], []
    for _ in range(repeats):
        ours.append(seconds(lambda: solver.visit(per_repeat)) / per_repeat)
        theirs.append(seconds(naive, naive_per_repeat))
    ratio = float(np.median(np.array(ours) / np.array(theirs)))
    value = f"{ratio:.3f} ({1e6 * np.median(ours):.0f}/{1e6 * np.median(theirs):.0f} µs)"
    line("one iteration of adfsdca / a naive one", value, "0.1", ratio <= 0.1)


# --- starting up ------------------------------------------------------------------------------------------------------

_IMPORTS = """
import json, sys, time
a = time.perf_counter()
import numba, sklearn.linear_model, sklearn.utils.validation, scipy.sparse, scipy.linalg, scipy.optimize
b = time.perf_counter()
import dualfree
c = time.perf_counter()
print(json.dumps([b - a, c - b]))
"""

_FIRST = """
import json, time, numpy as np, dualfree as df
X = np.random.default_rng(0).normal(size=(1000, 20)); y = X[:, 0] > 0
if {sparse}:
    import scipy.sparse; X = scipy.sparse.csr_matrix(X)
times = []
for _ in range(2):
    began = time.perf_counter()
    df.solve(df.Problem(X, y, lam=1e-3), {solver!r}, tol=1e-8, random_state=0)
    times.append(time.perf_counter() - began)
print(json.dumps(times))
"""


def child(code: str, **environment: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    answer: list[float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def starting(repeats: int = 5) -> None:
    extra = float(np.median([child(_IMPORTS)[1] for _ in range(repeats)]))
    line("import dualfree, beyond numba and scikit-learn", f"{extra:.2f} s", "0.3 s", extra <= 0.3)
    for solver in ("auto", "adfsdca+"):
        for sparse in (False, True):
            code = _FIRST.format(sparse=sparse, solver=solver)
            with tempfile.TemporaryDirectory() as empty:
                cold = child(code, NUMBA_CACHE_DIR=empty, DUALFREE_QUIET="1")[0]
                warm = [child(code, NUMBA_CACHE_DIR=empty) for _ in range(repeats)]
            slower = float(np.median([first - second for first, second in warm]))
            kind = f"{solver}, {'CSR' if sparse else 'dense'}"
            line(f"first solve − second, warm cache ({kind})", f"{slower:.2f} s", "0.6 s", slower <= 0.6)
            line(f"first fit on a machine that never compiled ({kind})", f"{cold:.1f} s", "30 s", cold < 30)


# --- memory -----------------------------------------------------------------------------------------------------------

_MEMORY = """
import json, numpy as np, scipy.sparse, dualfree as df
def kilobytes(field):
    with open("/proc/self/status") as f:
        return next(int(l.split()[1]) for l in f if l.startswith(field))
n, d, sparse = {n}, {d}, {sparse}
rng = np.random.default_rng(0)
def data(n, d):
    if sparse:
        X = scipy.sparse.csr_matrix((rng.normal(size=10 * n), rng.integers(d, size=10 * n, dtype=np.int32),
                                     np.arange(0, 10 * n + 1, 10, dtype=np.int32)), shape=(n, d))
        X.sum_duplicates()
    else:
        X = rng.normal(size=(n, d))
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)
df.solve(df.Problem(*data(200, d), lam=1e-2), {solver!r}, max_epochs=3, tol=0)
X, y = data(n, d)
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
before = kilobytes("VmRSS")
df.solve(df.Problem(X, y, lam=1.0 / n), {solver!r}, max_epochs=4, tol=0, random_state=0)
print(json.dumps([before, kilobytes("VmHWM")]))
"""


def memory(constant_mb: float = 48.0) -> None:
    for sparse, n, d in ((False, 2_000_000, 10), (True, 1_500_000, 300_000)):
        limit = 64.0 * (n + d) / 1e6 + constant_mb
        for solver in ("dfsdca", "importance", "prox-sdca", "adfsdca+", "auto"):
            before, peak = child(_MEMORY.format(n=n, d=d, sparse=sparse, solver=solver))
            used = (peak - before) * 1024 / 1e6
            what = f"memory beyond the data ({solver}, {'CSR' if sparse else 'dense'})"
            line(what, f"{used:.0f} MB", f"{limit:.0f} MB", used <= limit)
    print(f"the limit is 64 bytes × (n + d) plus a constant of {constant_mb:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--only", choices=["epochs", "iteration", "starting", "memory"])
    arguments = parser.parse_args()
    path = arguments.data_dir / "rcv1_subsets.npz"
    if not path.exists():
        sys.exit(f"{path} does not exist; --data-dir must name a folder that holds rcv1_subsets.npz.")
    X, y = load(path)
    threadpool_limits(1)  # a threaded dot product would make the naive iteration look worse than it is
    if arguments.only in (None, "epochs"):
        epochs(X, y)
    if arguments.only in (None, "iteration"):
        iteration(X, y)
    if arguments.only in (None, "starting"):
        starting()
    if arguments.only in (None, "memory"):
        memory()


if __name__ == "__main__":
    main()
