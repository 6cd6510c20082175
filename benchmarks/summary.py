"""From rows to ratios: for each cell and level our time, the best peer's, and one divided by the other."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from .grid import KEY
from .peers import OURS
from .reference import TRUSTED_GAP

KIND = ("threads", "dtype", "intercept")  # what is summed up apart


def ratios(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row per cell and level that we and our peers were measured at.

    `ratio` is the best peer's time divided by ours: infinite where no peer reached the level, 0 where we did not and a
    peer did, NaN where nobody did.
    """
    rows = []
    for key, group in frame.groupby([*KEY, "level"], sort=False):
        ours = group[group.solver == OURS]
        peers = group[group.solver != OURS]
        if ours.empty or peers.empty:
            continue
        mine = float(ours.seconds.iloc[0])
        reached = peers[peers.seconds.notna()]
        best = reached.loc[reached.seconds.idxmin()] if len(reached) else None
        rows.append(
            {
                **dict(zip((*KEY, "level"), key, strict=True)),
                "ours": mine,
                "peer": "" if best is None else best.solver,
                "theirs": math.nan if best is None else float(best.seconds),
                "ratio": _ratio(mine, best),
                "reference_gap": float(group.reference_gap.iloc[0]),
                "reference_gap_computed": float(group.reference_gap_computed.iloc[0]),
                "note": ours.note.iloc[0],
            }
        )
    return pd.DataFrame(rows)


def _ratio(mine: float, best: pd.Series | None) -> float:
    if best is None:
        return math.nan if math.isnan(mine) else math.inf
    return 0.0 if math.isnan(mine) else float(best.seconds) / mine


def totals(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row per kind of run and level: geometric mean, worst and best cell, cells won.

    The geometric mean is over the cells that both we and a peer solved; cells that only one of them solved are counted
    apart, and a cell that we did not solve is the worst one.
    """
    rows = []
    for key, group in cells.groupby([*KIND, "level"], sort=False):
        both = group[(group.ratio > 0) & np.isfinite(group.ratio)]
        known = group[group.ratio.notna()]
        worst = known.loc[known.ratio.idxmin()] if len(known) else None
        rows.append(
            {
                **dict(zip((*KIND, "level"), key, strict=True)),
                "cells": len(group),
                "geometric_mean": float(np.exp(np.log(both.ratio).mean())) if len(both) else math.nan,
                "worst": math.nan if worst is None else float(worst.ratio),
                "worst_cell": "" if worst is None else f"{worst.data} {worst.loss} {worst.lam_n:g} ({worst.peer})",
                "won": int((group.ratio >= 1).sum()),
                "compared": len(both),
                "only_ours": int(np.isinf(group.ratio).sum()),
                "only_peers": int((group.ratio == 0).sum()),
                "nobody": int(group.ratio.isna().sum()),
            }
        )
    return pd.DataFrame(rows).sort_values([*KIND, "level"], ascending=[True, False, True, False], ignore_index=True)


def kind_title(threads: int, dtype: str, intercept: bool) -> str:
    """Return how a kind of run is called."""
    how_many = "one thread" if threads == 1 else f"{threads} threads"
    return f"{how_many}, {dtype}, {'with' if intercept else 'no'} intercept"


def cell_line(row: pd.Series) -> str:
    """Return the line of a cell: ours, the best peer and its name, the ratio."""
    name = f"{row.data} {row.loss} λn={row.lam_n:g} to {row.level:g}"
    ours = f"ours {milliseconds(row.ours):>12}" if row.ours == row.ours else f"ours NOT REACHED ({row.note})"
    if not row.peer:
        return f"  {name:<52} {ours}   no peer reached it"
    return f"  {name:<52} {ours}   {row.peer:<26} {milliseconds(row.theirs):>12}   ratio {row.ratio:6.2f}"


def total_line(row: pd.Series) -> str:
    """Return the line of a level."""
    extra = [
        f"{count} {what}"
        for count, what in (
            (row.only_ours, "that no peer solved"),
            (row.only_peers, "that only peers solved"),
            (row.nobody, "that nobody solved"),
        )
        if count
    ]
    return (
        f"  {row.level:g}: geometric mean {row.geometric_mean:.2f} over {row.compared} cells, worst {row.worst:.2f} "
        f"[{row.worst_cell}], ahead in {row.won} of {row.cells}" + ("; " + ", ".join(extra) if extra else "")
    )


def lines(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the summary: geometric mean and worst cell at each level, and the references that are not close enough."""
    cells = ratios(frame)
    if cells.empty:
        yield "No cell has been measured both with dualfree and with a peer."
        return
    for kind, group in totals(cells).groupby(list(KIND), sort=False):
        yield f"Best peer's time / ours, {kind_title(*kind)}:"
        yield from (total_line(row) for _, row in group.iterrows())
    yield from loose_references(cells)


def loose_references(cells: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each cell whose P* is not known to 1e-10."""
    loose = cells[~(cells.reference_gap <= TRUSTED_GAP)].drop_duplicates(list(KEY))
    for _, row in loose.iterrows():
        yield (
            f"The reference of {row.data} {row.loss} λn={row.lam_n:g} ({kind_title(*row[list(KIND)])}) is certified to "
            f"{row.reference_gap:.1e} only; without the allowance for rounding its gap is {row.reference_gap_computed:.1e}."
        )


def milliseconds(seconds: float) -> str:
    """Return a time as it is printed."""
    return f"{1e3 * seconds:.1f} ms"
