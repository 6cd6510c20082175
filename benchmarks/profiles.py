"""Performance profiles (Dolan and Moré): the share of cells that a solver solves within τ times the best time.

A row of panels for each loss, a panel for each level, a curve for each solver. Where a curve begins (τ = 1) is the share
of cells in which the solver is the fastest; where it ends is the share that it solves at all.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from dualfree.io import written_in_place

from .grid import KEY
from .peers import OURS
from .summary import KIND, kind_title

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

_MOST_TAU = 100.0
_FORMATS = ("png", "svg")


def profile(frame: pd.DataFrame) -> pd.DataFrame:
    """Return, for the rows of one loss and level, each solver's time over the best time, a row per cell."""
    times = frame.pivot_table(index=list(KEY), columns="solver", values="seconds", dropna=False)
    times = times.dropna(how="all")
    return times.div(times.min(axis=1), axis=0)


def share_within(factors: pd.Series, tau: np.ndarray) -> np.ndarray:
    """Return the share of cells solved within τ times the best; cells without a time are never solved."""
    solved = np.sort(factors.dropna().to_numpy())
    return np.searchsorted(solved, tau, side="right") / len(factors)


def write_profiles(frame: pd.DataFrame, results: Path) -> list[Path]:
    """Write a figure per kind of run, as PNG and SVG, next to the results; return the files."""
    written = []
    for kind, group in frame.groupby(list(KIND), sort=False):
        threads, dtype, intercept = kind
        name = f"{results.stem}_profile_{threads}_{dtype}" + ("_intercept" if intercept else "")
        figure = _figure(group, kind_title(*kind))
        for format in _FORMATS:
            path = results.with_name(f"{name}.{format}")
            with written_in_place(path) as temporary:
                figure.savefig(temporary, format=format, dpi=150)
            written.append(path)
        plt.close(figure)
    return written


def _figure(frame: pd.DataFrame, title: str) -> plt.Figure:
    losses = list(dict.fromkeys(frame.loss))
    levels = sorted(frame.level.unique(), reverse=True)
    size = (4.2 * len(levels) + 2.6, 3.2 * len(losses) + 0.6)
    figure, axes = plt.subplots(len(losses), len(levels), figsize=size, squeeze=False, sharex=True, sharey=True)
    for row, loss in zip(axes, losses, strict=True):
        of_loss = frame[frame.loss == loss]
        solvers = sorted(of_loss.solver.unique(), key=lambda name: (name != OURS, name))
        for panel, level in zip(row, levels, strict=True):
            _panel(panel, of_loss[of_loss.level == level], solvers)
            panel.set_title(f"{loss}, to {level:g}", fontsize=10)
        row[0].set_ylabel("share of cells")
        row[-1].legend(*row[0].get_legend_handles_labels(), loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=8)
    for panel in axes[-1]:
        panel.set_xlabel("τ: time / best time")
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    return figure


def _panel(panel: Axes, frame: pd.DataFrame, solvers: list[str]) -> None:
    tau = np.geomspace(1.0, _MOST_TAU, 400)
    factors = profile(frame)
    colours = plt.get_cmap("tab10").colors
    for number, solver in enumerate(solvers):
        share = share_within(factors[solver], tau) if solver in factors and len(factors) else np.zeros_like(tau)
        ours = solver == OURS
        colour = "black" if ours else colours[(number - 1) % len(colours)]
        style = "-" if number <= len(colours) else "--"
        panel.step(tau, share, style, where="post", label=solver, color=colour, linewidth=2.4 if ours else 1.2)
    panel.set_xscale("log")
    panel.set_xlim(1.0, _MOST_TAU)
    panel.set_ylim(-0.02, 1.02)
    panel.grid(alpha=0.3)
