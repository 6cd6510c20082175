"""The tables of the benchmark on a cluster, from its rows."""

from __future__ import annotations

import math

import pandas as pd

from .scale_model import Cluster, Constants, Rounds, fit, growth, predict, worker_bytes

OVERHEAD_LIMIT = 1.5
_TARGET = Cluster(rows=1e9, entries_per_row=50, d=10**6, workers=100, visits=1 / 6)  # as `work.py` would choose
_KEPT = 8  # dual vectors that a worker keeps at most


def report(frame: pd.DataFrame) -> str:
    """Return everything that the rows have to say, as Markdown."""
    parts = [_about(frame), _fits(frame), overhead(frame), _peers(frame), _model(frame)]
    return "\n\n".join(part for part in parts if part)


def _about(frame: pd.DataFrame) -> str:
    lines = [f"Machine: {name}." for name in frame["machine"].unique()]
    return "\n".join([*lines, *(f"Versions: {text}." for text in frame["versions"].unique())])


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _fits(frame: pd.DataFrame) -> str:
    found = frame[frame.kind == "cluster"].sort_values(
        ["nnz", "set", "level", "workers"], ascending=[True, True, False, True]
    )
    rows = []
    for (name, level, count), same in found.groupby(["set", "level", "workers"], sort=False):
        middle = same.median(numeric_only=True)
        wire = "" if math.isnan(middle.wire_bytes) else f"{middle.wire_bytes / 1e6:.1f}"
        reached = "" if same.reached.all() else " (not reached)"
        rows.append(
            [
                str(name),
                f"{level:g}{reached}",
                str(count),
                f"{middle.rounds:.0f}",
                f"{middle.passes * middle.rounds:.0f}",
                f"{middle.n_bytes / 1e6:.1f}",
                wire,
                f"{middle.seconds:.2f}",
                f"{middle.cpu_seconds:.2f}",
                f"{1e3 * middle.round_seconds / max(1.0, middle.rounds):.0f}",
                str(len(same)),
            ]
        )
    header = [
        "data",
        "gap",
        "K",
        "rounds",
        "passes",
        "MB of vectors",
        "MB on the wire",
        "seconds",
        "CPU seconds",
        "ms a round",
        "fits",
    ]
    return _table(header, rows)


def overhead(frame: pd.DataFrame) -> str:
    """Return how much longer one worker takes than `dualfree.solve`, by the median of pairs that ran in turn."""
    if not (frame.kind == "solve").any():
        return ""
    lines = []
    alone = frame[frame.workers == 1]
    for (name, level), same in alone[alone.kind.isin(["cluster", "solve"])].groupby(["set", "level"]):
        pairs = same.pivot_table(index="repeat", columns="kind", values="seconds")
        ratio = float((pairs["cluster"] / pairs["solve"]).median())
        kept = "kept" if ratio <= OVERHEAD_LIMIT else "NOT KEPT"
        times = f"{pairs['cluster'].median():.2f} s / {pairs['solve'].median():.2f} s"
        lines.append(
            f"one worker / dualfree.solve, {name}, gap {level:g}: {ratio:.2f} ({times}, {len(pairs)} pairs)   "
            f"limit {OVERHEAD_LIMIT} {kept}"
        )
    return "\n".join(lines)


def _peers(frame: pd.DataFrame) -> str:
    found = frame[frame.kind.str.startswith("dask-ml")]
    rows = []
    for row in found.itertuples():
        error = getattr(row, "error", None)
        if isinstance(error, str):
            rows.append([row.set, str(row.workers), row.kind, error, "", "", ""])
        else:
            rows.append(
                [
                    row.set,
                    str(row.workers),
                    row.kind,
                    f"{row.rounds:.0f}",
                    f"{row.seconds:.2f}",
                    f"{row.cpu_seconds:.2f}",
                    f"{row.gap:.1e}",
                ]
            )
    return (
        _table(["data", "K", "solver", "iterations", "seconds", "CPU seconds", "suboptimality"], rows) if rows else ""
    )


# --- the cost model ---------------------------------------------------------------------------------------------------


def measured_rounds(frame: pd.DataFrame) -> list[Rounds]:
    """Return the rounds of all fits on at least two partitions, the tightest level of each."""
    many = frame[(frame.workers > 1) & frame.kind.isin(["cluster", "calibration"]) & (frame.rounds > 0)]
    tight = many[(many.kind == "calibration") | (many.level == many.level.min())]
    rounds = []
    for (name, count, kind), same in tight.groupby(["set", "workers", "kind"], sort=False):
        row = same.median(numeric_only=True)
        rounds.append(
            Rounds(
                name=f"{name}{', calibration' if kind == 'calibration' else ''}",
                partitions=int(count),
                cores=int(row.cores),
                # after whole passes a partition goes through its rows once more, to sum Σ α_i x_i
                entries=row.nnz * (row.passes + (1 if row.passes >= 1 else 0)),
                d=row.d,
                seconds=row.round_seconds / row.rounds * _own_share(row),
            )
        )
    return rounds


def _own_share(row: pd.Series) -> float:
    """The part of the time in which other programs did not have the core.

    On a single core nothing overlaps, so that a fit takes as long as its processes compute, and the rest belongs to others.
    With more cores time is taken as it is.
    """
    return min(1.0, row.cpu_seconds / row.seconds) if row.cores == 1 else 1.0


def _model(frame: pd.DataFrame) -> str:
    rounds = measured_rounds(frame)
    if len(rounds) < 5:
        return ""
    constants = fit(rounds)
    rows = [
        [
            one.name,
            str(one.partitions),
            f"{1e3 * one.seconds:.0f}",
            f"{1e3 * constants.seconds(one):.0f}",
            f"{100 * constants.residual(one):+.0f} %",
        ]
        for one in rounds
    ]
    return "\n\n".join(
        [
            f"{1e9 * constants.per_entry:.2f} ns a non-zero visited with w in the cache, "
            f"{1e9 * constants.per_far_entry:.2f} ns without, {1e3 * constants.per_round:.1f} ms a round, "
            f"{1e3 * constants.per_partition:.2f} ms a partition, {1e9 * constants.per_byte:.2f} ns a byte",
            _table(["round of", "K", "measured, ms", "model, ms", "residual"], rows),
            _prediction(frame, constants),
        ]
    )


def _prediction(frame: pd.DataFrame, constants: Constants) -> str:
    made = predict(constants, _TARGET)
    lines = [
        f"A round at {_TARGET.rows:.0e} rows, {_TARGET.entries_per_row:g} non-zeros each, d = {_TARGET.d:,}, "
        f"{_TARGET.workers} workers, {_TARGET.visits:.2g} visits of each row: computation {made.computation:.1f} s, latency "
        f"{made.latency:.2f} s, bytes {made.tree:.2f} s (workers send at the same time) to {made.one_wire:.2f} s (one wire); "
        f"together {made.best:.1f} to {made.worst:.1f} s. A worker holds about {worker_bytes(_TARGET, _KEPT) / 1e9:.1f} GB."
    ]
    fits = frame[(frame.kind == "cluster") & (frame.workers > 1)]
    for (name, level), same in fits.groupby(["set", "level"]):
        middle = same.groupby("workers").median(numeric_only=True)
        if len(middle) < 2:
            lines.append(f"{name}, gap {level:g}: one K > 1 was measured, which says nothing of how rounds grow.")
            continue
        passes = middle.passes * middle.rounds
        exponent = growth(list(middle.index), list(passes))
        counts = ", ".join(f"{p:.0f}" for p in passes)
        line = f"{name}, gap {level:g}: passes {counts} for K = {', '.join(map(str, middle.index))}, ∝ K^{exponent:.2f}"
        if (middle.passes < 1).all():  # rounds of the kind that is predicted
            most = middle.index.max()
            rounds = passes[most] * (_TARGET.workers / most) ** exponent / _TARGET.visits
            share = float((middle.evaluation_seconds / middle.round_seconds).median())
            line += (
                f"; at {_TARGET.workers} workers {rounds:.0f} rounds, certificates {100 * share:.0f} % on top: "
                f"{rounds * made.best * (1 + share):.0f} to {rounds * made.worst * (1 + share):.0f} s"
            )
        lines.append(line)
    return "\n\n".join(lines)
