"""The figures, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import Array
from .measures import Curve, curves
from .style import AXES, in_order, look, new_figure, save

_GRID = 300
_BANDWIDTH = 1.5
_FEWEST_ROWS = 3.0
_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def gap_figure(frame: Any, folder: Path, data: str, loss: str) -> str:
    """Figure 1: the gap against epochs, passes and seconds (rows) for each λ (columns); median and range over seeds."""
    frame = frame[(frame["data"] == data) & (frame["loss"] == loss)]
    strengths = list(dict.fromkeys(frame["strength"]))
    all_curves = curves(frame)
    figure = new_figure(1.2 + 4.2 * len(strengths), 10.2)
    axes = figure.subplots(3, len(strengths), squeeze=False, sharey=True)
    floor = float(frame["tol"].min()) / 5
    methods = in_order(frame["method"])
    for column, strength in enumerate(strengths):
        for row, (axis_name, title) in enumerate(AXES.items()):
            axis = axes[row][column]
            for method in methods:
                if (data, loss, strength, method) in all_curves:
                    _draw_curve(axis, all_curves[data, loss, strength, method], method, axis_name, floor)
            axis.set_yscale("log")
            axis.set_ylim(floor, 3.0)
            if axis_name != "epoch":
                axis.set_xscale("log")
            axis.minorticks_off()
            axis.set_xlabel(title)
            axis.grid(alpha=0.3)
            if column == 0:
                axis.set_ylabel("duality gap / P(0)")
            if row == 0:
                axis.set_title(f"λ = {strength}")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(3, len(labels)), frameon=False)
    figure.suptitle(f"{_label(frame)} · {loss} loss · {_seeds(frame)}")
    return save(figure, folder, f"figure1_{data}_{loss}")


def _draw_curve(axis: Any, curve: Curve, method: str, axis_name: str, floor: float) -> None:
    pen = look(method)
    x: Array = getattr(curve, axis_name)
    first = 0 if axis_name == "epoch" else 1  # a log axis has no place for 0
    if x.size <= first:
        return
    with np.errstate(invalid="ignore"):
        gap, low, high = (np.clip(g[first:], floor / 10, 1e6) for g in (curve.gap, curve.low, curve.high))
    axis.fill_between(x[first:], low, high, color=pen.colour, alpha=0.15, linewidth=0)
    axis.plot(
        x[first:],
        gap,
        label=pen.label,
        color=pen.colour,
        linestyle=pen.line,
        linewidth=pen.width,
        marker=pen.marker,
        markersize=4.5,
        markevery=max(1, gap.size // 8),
    )


def _label(frame: Any) -> str:
    return str(frame["data_label"].iloc[0])


def _seeds(frame: Any) -> str:
    seeds = frame["seed"].nunique()
    return "one seed" if seeds == 1 else f"median and range of {seeds} seeds"


def residual_figure(
    residuals: Mapping[str, Any], folder: Path, data: str, loss: str, strength: str, data_label: str
) -> str:
    """Figure 2: the density of |κ| after some epochs (above), and the share of rows beyond a value (below).

    `residuals` maps a method to a DataFrame with the columns ``epoch`` and ``residual``.
    """
    figure = new_figure(1.0 + 5.0 * len(residuals), 7.8)
    highest = 1.0
    axes = figure.subplots(2, len(residuals), squeeze=False, sharex=True, sharey="row")
    widest = max(
        float(np.quantile(f.loc[f["epoch"] == f["epoch"].min(), "residual"], 0.98)) for f in residuals.values()
    )
    right = max(widest, 0.08)
    for column, (method, frame) in enumerate(residuals.items()):
        pen = look(method)
        epochs = sorted(frame["epoch"].unique())
        for shade, epoch in enumerate(epochs):
            values = frame.loc[frame["epoch"] == epoch, "residual"].to_numpy(dtype=np.float64)
            colour = _shade(pen.colour, 0.35 + 0.65 * shade / max(1, len(epochs) - 1))
            style = {"color": colour, "linestyle": _LINES[shade % len(_LINES)], "linewidth": 1.7}
            label = f"after {epoch} epoch{'s' if epoch > 1 else ''}"
            x, density = reflected_density(values, right)
            highest = max(highest, float(np.nanmax(density, initial=0.0)))
            axes[0][column].plot(x, density, label=label, **style)
            ordered = np.sort(values)
            above = 1.0 - np.searchsorted(ordered, x, side="right") / values.size
            axes[1][column].plot(x, np.where(above > 0, above, np.nan), label=label, **style)
        axes[0][column].set_title(pen.label)
        axes[0][column].set_yscale("log")
        axes[1][column].set_yscale("log")
        axes[1][column].set_ylim(0.5 / values.size, 1.5)
        axes[1][column].set_xlabel("dual residual |κ|")
        for row in range(2):
            axis = axes[row][column]
            for mark in (0.03, 0.06):
                axis.axvline(mark, color="0.45", linewidth=0.9, linestyle=":")
            axis.set_xlim(0, right)
            axis.grid(alpha=0.3)
        axes[0][column].legend(frameon=False, fontsize="small")
    axes[0][0].set_ylim(0.02, 2 * highest)
    axes[0][0].set_ylabel("density")
    axes[1][0].set_ylabel("share of rows with a larger |κ|")
    figure.suptitle(f"{data_label} · {loss} loss · λ = {strength} · dotted: 0.03 and 0.06")
    return save(figure, folder, f"figure2_{data}_{loss}")


def reflected_density(values: Array, right: float) -> tuple[Array, Array]:
    """Return (x, density on [0, right]): a Gaussian kernel on a fine histogram, reflected at 0 where |κ| ends.

    NaN from where fewer than three rows carry the estimate: single rows would show as bumps.
    """
    edges = np.linspace(0.0, right, _GRID + 1)
    step = edges[1]
    counts, _ = np.histogram(values, bins=np.append(edges, np.inf))
    spread = min(float(values.std()), float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34 or np.inf)
    width = max(_BANDWIDTH * spread * values.size**-0.2, step)  # Silverman's rule, wider: the tails are long
    reach = np.arange(-_GRID + 1, _GRID)
    kernel = np.exp(-0.5 * (reach * step / width) ** 2)
    kernel /= kernel.sum() * step
    inside = counts[:_GRID] / values.size
    mirrored = np.concatenate([inside[::-1], inside])
    smooth = np.convolve(mirrored, kernel, mode="same")[_GRID:]
    one_row = 1.0 / (values.size * width * np.sqrt(2 * np.pi))
    thin = np.logical_or.accumulate(smooth < _FEWEST_ROWS * one_row)
    return edges[:-1] + 0.5 * step, np.where(thin, np.nan, smooth)


def _shade(colour: str, strength: float) -> tuple[float, float, float]:
    """Mix a colour with white: 1 is the colour itself."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (1.0 - strength * (1.0 - part) for part in parts)
    return red, green, blue


def theorem_figure(frame: Any, folder: Path) -> str:
    """The potential of the theorem against its bound Π(1 − θ_t)."""
    problems = list(frame.groupby(["data", "loss"], sort=False))
    columns = min(2, len(problems))
    figure = new_figure(5.4 * columns, 4.0 * -(-len(problems) // columns) + 0.8)
    axes = figure.subplots(-(-len(problems) // columns), columns, squeeze=False)
    for axis, ((_, loss), part) in zip(axes.ravel(), problems, strict=False):
        for solver, runs in part.groupby("solver", sort=False):
            pen = look(str(solver))
            by_epoch = runs.groupby("epoch")
            x = np.array(list(by_epoch.groups), dtype=np.float64)
            axis.fill_between(
                x, by_epoch["potential"].min(), by_epoch["potential"].max(), color=pen.colour, alpha=0.15, linewidth=0
            )
            axis.plot(
                x,
                by_epoch["potential"].mean(),
                color=pen.colour,
                marker=pen.marker,
                markevery=4,
                label=f"{pen.label}: measured",
            )
            bound = np.exp(by_epoch["log_bound"].mean())
            axis.plot(x, bound, color=pen.colour, linestyle="--", label=f"{pen.label}: bound Π(1 − θ)")
        axis.set_yscale("log")
        axis.set_title(f"{part['data_label'].iloc[0]}\n{loss} loss", fontsize="medium")
        axis.set_xlabel("epochs")
        axis.set_ylabel("potential / its start")
        axis.grid(alpha=0.3)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle(f"The theorem at λ = 1/n: mean and range of {frame['seed'].nunique()} seeds")
    return save(figure, folder, "theorem")


def sensitivity_figure(frame: Any, folder: Path, strength: str, epochs: int) -> str:
    """What s and the step do to adfSDCA+: the gap after some epochs."""
    frame = frame[frame["strength"] == strength]
    problems = list(frame.groupby(["data", "loss"], sort=False))
    columns = min(2, len(problems))
    figure = new_figure(5.4 * columns, 3.8 * -(-len(problems) // columns) + 0.8)
    axes = figure.subplots(-(-len(problems) // columns), columns, squeeze=False)
    for axis, ((_, loss), part) in zip(axes.ravel(), problems, strict=False):
        for step in ("safe", "exact", "paper"):
            pen = look(f"adfsdca+:step={step}")
            runs = part[
                part["method"].str.startswith(f"adfsdca+:step={step}:shrink=") & ~part["method"].str.contains("theta")
            ]
            points = sorted((_shrink(m), *_gap_after(r, epochs)) for m, r in runs.groupby("method"))
            shrinks = [p[0] for p in points]
            gaps = np.array([min(p[1], 1e3) if np.isfinite(p[1]) else 1e3 for p in points])
            places = range(len(points))
            axis.plot(
                places, gaps, color=pen.colour, linestyle=pen.line, marker=pen.marker, label=pen.label, markersize=7
            )
            for place, (_, _, diverged) in enumerate(points):
                if diverged:
                    where = (place, gaps[place])
                    axis.annotate("diverged", where, (0, -12), textcoords="offset points", ha="center", fontsize=8)
        axis.set_yscale("log")
        axis.set_ylim(top=1e4)
        axis.set_xlim(-0.4, len(shrinks) - 0.6)
        axis.set_xticks(range(len(shrinks)), [f"{s:g}" for s in shrinks])
        axis.set_xlabel("s: p is divided by s after each visit")
        axis.set_ylabel(f"duality gap / P(0) after {epochs} epochs")
        axis.set_title(f"{part['data_label'].iloc[0]}\n{loss} loss", fontsize="medium")
        axis.grid(alpha=0.3)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"adfSDCA+ at λ = {strength}: what the paper leaves open (gaps above 10³ are drawn at 10³)")
    return save(figure, folder, "sensitivity")


def _shrink(method: str) -> float:
    return float(method.split("shrink=")[1].split(":")[0])


def _gap_after(run: Any, epochs: int) -> tuple[float, bool]:
    """Return the gap after that many epochs, or at the end of a shorter run, and whether the run diverged."""
    diverged = str(run["status"].iloc[0]) == "diverged"
    gap = run.loc[run["epoch"] <= epochs].sort_values("epoch")["relative_gap"].iloc[-1]
    return float(gap), diverged


def speedup_figure(rows: Sequence[Mapping[str, Any]], folder: Path, data_labels: str) -> str:
    """How many times fewer epochs, passes or seconds each adaptive method needs than each baseline, problem by problem."""
    pairs = list(dict.fromkeys((row["method"], row["baseline"]) for row in rows))
    baselines = list(dict.fromkeys(b for _, b in pairs))
    methods = list(dict.fromkeys(m for m, _ in pairs))
    axis_names = ("epoch", "passes", "seconds")
    figure = new_figure(13.0, 1.6 + 1.15 * len(methods) * 1.6)
    axes = figure.subplots(1, len(baselines), squeeze=False, sharey=True, sharex=True)[0]
    rng = np.random.default_rng(0)
    for axis, baseline in zip(axes, baselines, strict=True):
        for position, (method, name) in enumerate((m, a) for m in methods for a in axis_names):
            factors = np.array([r["factor"][name] for r in rows if r["method"] == method and r["baseline"] == baseline])
            pen = look(method)
            jitter = position + rng.uniform(-0.22, 0.22, size=factors.size)
            axis.plot(factors, jitter, linestyle="", marker=pen.marker, color=pen.colour, alpha=0.65, markersize=5)
            if factors.size:
                axis.plot([np.median(factors)] * 2, [position - 0.35, position + 0.35], color="black", linewidth=2)
        axis.axvline(1.0, color="0.3", linewidth=1)
        axis.set_xscale("log")
        axis.set_title(f"against {look(baseline).label}", fontsize="medium")
        axis.set_xlabel("times fewer (right of 1: adaptive wins)")
        axis.grid(alpha=0.3, axis="x")
    names = [f"{look(m).label}: {'epochs' if a == 'epoch' else a}" for m in methods for a in axis_names]
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    figure.suptitle(f"{data_labels}\neach mark is one problem (data × loss × λ); the black bar is the median")
    return save(figure, folder, "speedup")
