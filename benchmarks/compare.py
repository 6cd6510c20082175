"""Time to a true suboptimality, against peers, on the same problem in one run.

    python -m benchmarks.compare --data-dir DIR --out results.parquet [--quick] [--data a9a,w8a] [--lam-n 1,0.1]

A cell is a data set, a loss and λn. The reference P* is our own certificate at a relative gap of 1e-12. The time of a
solver to a level (P(w) − P*)/(P(0) − P*) ≤ 1e-3, 1e-6, 1e-9 is the time of a whole fit (conversion included) at the
loosest of its tolerances that reaches the level; the same rule for ours, whose certificate is computed inside the
time. First every tolerance runs once, from loose to tight; then the chosen ones are repeated, solvers interleaved, and
the median counts. Cells that are in the output already are not run again.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse
from threadpoolctl import threadpool_limits

import dualfree as df

from .peers import Peer, installed

LEVELS = (1e-3, 1e-6, 1e-9)
BINARY = ("logistic", "squared_hinge")
QUICK_DATA = ("mushrooms", "phishing", "a9a", "ijcnn1", "w8a", "rcv1_subsets", "news20groups_tfidf", "cpusmall")
FULL_MULTICLASS = ("mnist",)  # not binary; left out


def load(path: Path, dtype: str) -> tuple[Any, np.ndarray]:
    with np.load(path) as f:
        X = scipy.sparse.csr_matrix((f["data"], f["indices"], f["indptr"]), shape=f["shape"]).astype(dtype)
        y = f["y"].astype(np.float64)
    if X.nnz > 0.5 * X.shape[0] * X.shape[1]:
        X = np.ascontiguousarray(X.toarray())
    classes = np.unique(y)
    return X, np.where(y == classes[-1], 1.0, -1.0) if classes.size == 2 else y


def timed(peer: Peer, X: Any, y: np.ndarray, loss: str, lam: float, tol: float, threads: int) -> tuple[float, Any]:
    began = time.perf_counter()
    w = peer.fit(X, y, loss, lam, tol, threads)
    return time.perf_counter() - began, w


def cell(
    peers: list[Peer], X: Any, y: np.ndarray, loss: str, lam_n: float, threads: int, repeats: int, patience: float
) -> list[dict[str, Any]]:
    lam = lam_n / X.shape[0]
    problem = df.Problem(X, y, loss=loss, lam=lam)
    reference = df.solve(problem, tol=1e-12, max_epochs=20_000, max_time=120, random_state=0).certificate
    best, at_zero = reference.primal - reference.gap, problem.at_zero
    chosen: dict[str, dict[float, tuple[Peer, float]]] = {}
    for peer in peers:
        if loss not in peer.losses or (peer.max_features and X.shape[1] > peer.max_features):
            continue
        left = list(LEVELS)
        chosen[peer.name] = {}
        for position, tol in enumerate(peer.tolerances):
            try:
                if position == 0:
                    timed(peer, X, y, loss, lam, tol, threads)  # imports and compilation do not count
                seconds, w = timed(peer, X, y, loss, lam, tol, threads)
            except Exception as error:
                print(f"    {peer.name}: {type(error).__name__}: {error}", flush=True)
                break
            reached = (problem.primal(w) - best) / (at_zero - best)
            while left and reached <= left[0]:
                chosen[peer.name][left.pop(0)] = (peer, tol)
            if not left or seconds > patience:
                break
    times: dict[tuple[str, float], list[float]] = {}
    for _ in range(repeats):
        for name, levels in chosen.items():
            for level, (peer, tol) in levels.items():
                times.setdefault((name, level), []).append(timed(peer, X, y, loss, lam, tol, threads)[0])
    return [
        {
            "solver": name,
            "level": level,
            "seconds": float(np.median(times[name, level])) if level in levels else np.nan,
            "tol": levels[level][1] if level in levels else np.nan,
            "reference_gap": reference.relative_gap,
        }
        for name, levels in chosen.items()
        for level in LEVELS
    ]


def summary(frame: pd.DataFrame) -> None:
    """Print one line per cell and level: ours, the best peer, the ratio; then geometric means and the worst cells."""
    for level in LEVELS:
        ratios = []
        print(f"\nlevel {level:g}: best peer's time / ours")
        for key, group in frame[frame.level == level].groupby(
            ["data", "dtype", "loss", "lam_n", "threads"], sort=False
        ):
            ours = group[group.solver == "dualfree"].seconds.iloc[0]
            others = group[(group.solver != "dualfree") & group.seconds.notna()]
            name = " ".join(str(k) for k in key)
            if others.empty or not ours > 0:
                print(f"  {name:<52} ours {1e3 * ours:9.1f} ms   {'no peer reached it' if ours > 0 else 'NOT REACHED'}")
                continue
            peer = others.loc[others.seconds.idxmin()]
            ratios.append(peer.seconds / ours)
            print(
                f"  {name:<52} ours {1e3 * ours:9.1f} ms   {peer.solver:<26} {1e3 * peer.seconds:9.1f} ms   "
                f"ratio {ratios[-1]:6.2f}"
            )
        if ratios:
            print(
                f"  geometric mean {np.exp(np.mean(np.log(ratios))):.2f} over {len(ratios)} cells, worst {min(ratios):.2f}, "
                f"ahead in {sum(r >= 1 for r in ratios)}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("benchmark_results/compare.parquet"))
    parser.add_argument("--quick", action="store_true", help="a smaller grid, about five minutes")
    parser.add_argument("--data", help="names, separated by commas")
    parser.add_argument("--losses", default="logistic,squared_hinge,squared")
    parser.add_argument("--lam-n", default=None, help="values of λn, separated by commas")
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--patience", type=float, default=20.0, help="no tighter tolerance after a fit of that many seconds"
    )
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    arguments = parser.parse_args()
    if not arguments.data_dir.is_dir():
        sys.exit(f"--data-dir {arguments.data_dir} is not a folder.")
    available = {path.stem: path for path in sorted(arguments.data_dir.glob("*.npz"))}
    wanted = arguments.data.split(",") if arguments.data else list(QUICK_DATA if arguments.quick else available)
    lam_ns = [float(v) for v in (arguments.lam_n or ("1,0.01" if arguments.quick else "10,1,0.1,0.01")).split(",")]
    repeats, patience = (3, 2.0) if arguments.quick else (arguments.repeats, arguments.patience)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    done = pd.read_parquet(arguments.out) if arguments.out.exists() and not arguments.fresh else pd.DataFrame()
    peers = installed()
    for name in wanted:
        if name not in available:
            print(f"{name}: not in {arguments.data_dir}")
            continue
        X, y = load(available[name], arguments.dtype)
        if np.unique(y).size != 2 and name in FULL_MULTICLASS:
            continue
        for loss in arguments.losses.split(","):
            if (loss in BINARY) != (np.unique(y).size == 2):
                continue
            for lam_n in lam_ns:
                key = {
                    "data": name,
                    "dtype": arguments.dtype,
                    "loss": loss,
                    "lam_n": lam_n,
                    "threads": arguments.threads,
                }
                if len(done) and (done[list(key)] == pd.Series(key)).all(axis=1).any():
                    continue
                print(f"{name} {loss} λn={lam_n:g}", flush=True)
                with threadpool_limits(arguments.threads):
                    rows = cell(peers, X, y, loss, lam_n, arguments.threads, repeats, patience)
                done = pd.concat([done, pd.DataFrame([{**key, **row} for row in rows])], ignore_index=True)
                part = arguments.out.with_suffix(".part")
                done.to_parquet(part)
                part.replace(arguments.out)
    if len(done):
        summary(done)


if __name__ == "__main__":
    main()
