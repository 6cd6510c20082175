"""The figures of the report, as plotly objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._checks import Array
from .._optional import require
from ..io import Model
from ..result import Result
from .residuals import Density

_HEIGHT = 380
_BINS = 60
_LARGEST = 20
_POINTS = 2000
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")


def _graph() -> Any:
    return require("plotly.graph_objects", "report")


def _figure(x: str, y: str, **layout: Any) -> Any:
    figure = _graph().Figure()
    usual = {
        "template": "plotly_white",
        "height": _HEIGHT,
        "margin": {"l": 70, "r": 20, "t": 50, "b": 60},
        "colorway": COLOURS,
        "legend": {"orientation": "h", "y": 1.15},
    }
    figure.update_layout(xaxis_title=x, yaxis_title=y, **(usual | layout))
    return figure


def plain(text: str) -> str:
    """Return text that plotly shows as it is, instead of reading it as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def convergence(names: Sequence[str], results: Sequence[Result], targets: Sequence[float], against: str) -> Any:
    """Return the certified gap against "passes" or "seconds", on a log scale, with a line at the target."""
    unit = "passes over the data" if against == "passes" else "seconds of solving"
    figure = _figure(unit, "certified gap")
    figure.update_yaxes(type="log", exponentformat="power")
    for name, result in zip(names, results, strict=True):
        trace = result.trace
        figure.add_scatter(
            x=getattr(trace, against),
            y=np.minimum.accumulate(trace.gap),
            name=plain(name),
            mode="lines+markers",
            customdata=np.column_stack([trace.epoch, trace.primal]),
            hovertemplate="gap %{y:.3e}<br>%{x:.4g} " + unit + "<br>epoch %{customdata[0]}"
            "<br>objective %{customdata[1]:.10g}<extra>" + plain(name) + "</extra>",
        )
    longest = max(float(getattr(result.trace, against)[-1]) for result in results)
    if min(targets) > 0:
        dotted = {"dash": "dot", "color": "#666666"}
        figure.add_scatter(x=[0, longest], y=[max(targets)] * 2, mode="lines", line=dotted, name="tol · P(0)")
    return figure


def residual_density(names: Sequence[str], densities: Sequence[Density]) -> Any:
    """Return the density of |κ| after some epochs, one column at a time.

    A menu chooses the column, and |κ| as it is (the paper's figure) or on a log scale.
    """
    figure = _figure("dual residual |κ|", "density", legend={"orientation": "v", "y": 1.0})
    figure.update_yaxes(type="log", exponentformat="power")
    columns = sorted({density.column for density in densities})
    drawn: list[tuple[int, bool]] = []
    for column in columns:
        mine = [density for density in densities if density.column == column]
        for logarithmic, edges in zip((False, True), _edges(mine), strict=True):
            for density in mine:
                _add_density(figure, density, edges, logarithmic, visible=column == columns[0] and not logarithmic)
                drawn.append((column, logarithmic))
    buttons = []
    for column in columns:
        for logarithmic in (False, True):
            kind = "logarithmic" if logarithmic else "linear"
            layout = {
                "xaxis.type": "log" if logarithmic else "linear",
                "xaxis.autorange": True,
                "yaxis.autorange": True,
                "yaxis.title.text": "density of log₁₀ |κ|" if logarithmic else "density",
            }
            shown = [entry == (column, logarithmic) for entry in drawn]
            label = plain(f"{names[column]}, {kind}") if len(columns) > 1 else kind
            buttons.append({"label": label, "method": "update", "args": [{"visible": shown}, layout]})
    menu = {"buttons": buttons, "x": 0.0, "xanchor": "left", "y": 1.2, "direction": "down", "type": "dropdown"}
    if len(columns) == 1:
        menu.update(type="buttons", direction="right")
    figure.update_layout(updatemenus=[menu])
    return figure


def _add_density(figure: Any, density: Density, edges: Array, logarithmic: bool, visible: bool) -> None:
    values = np.log10(np.maximum(density.residuals, 10.0 ** edges[0])) if logarithmic else density.residuals
    heights, _ = np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges, density=True)
    figure.add_scatter(
        x=10.0**edges if logarithmic else edges,
        y=np.append(np.where(heights > 0, heights, np.nan), np.nan),  # an empty bin is a hole on a log scale
        name=f"after {density.epoch} epoch{'s' if density.epoch != 1 else ''}",
        line_shape="hv",
        mode="lines",
        visible=visible,
        hovertemplate="|κ| %{x:.3g}, density %{y:.3g}<extra>%{fullData.name}</extra>",
    )


def _edges(densities: Sequence[Density]) -> tuple[Array, Array]:
    everything = np.concatenate([density.residuals for density in densities])
    positive = everything[everything > 0]
    largest = float(everything.max()) or 1.0
    smallest = float(np.quantile(positive, 0.001)) if positive.size else 1e-16
    low, high = np.log10(smallest), np.log10(largest)
    return np.linspace(0.0, largest, _BINS + 1), np.linspace(min(low, high - 1.0), high, _BINS + 1)


def coefficients(model: Model, names: Sequence[str]) -> Any:
    """Return the largest coefficients as bars, the greatest on top."""
    figure = _figure("coefficient", "", barmode="group")
    size = np.abs(model.coef).max(axis=0)
    order = [j for j in np.argsort(-size, kind="stable")[:_LARGEST].tolist() if size[j] > 0][::-1]
    features = model.encoding.feature_names
    labels = [plain(_shortened(features[j])) for j in order]
    for name, row in zip(names, model.coef, strict=False):  # the names say how many are drawn
        figure.add_bar(
            x=row[order],
            y=labels,
            orientation="h",
            name=plain(name),
            hovertemplate="%{y}: %{x:.6g}<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(height=max(_HEIGHT, 12 * len(order) * (1 + len(names)) + 120), showlegend=len(names) > 1)
    figure.update_yaxes(type="category")
    return figure


def _shortened(text: str, longest: int = 40) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def roc(model: Model, y: Array, scores: Array) -> Any:
    """Return the ROC curve of each class that occurs."""
    from sklearn.metrics import roc_auc_score, roc_curve

    assert model.classes is not None
    figure = _figure("false positive rate", "true positive rate")
    columns = (
        [(model.classes[1], scores[:, 0])]
        if len(model.classes) == 2
        else list(zip(model.classes, scores.T, strict=True))
    )
    for label, column in columns:
        positive = y == label
        if not 0 < positive.sum() < y.size:
            continue
        false_rate, true_rate, _ = roc_curve(positive, column)
        name = plain(f"{label:g}" if isinstance(label, float) else str(label))
        keep = _thinned(len(false_rate))
        figure.add_scatter(
            x=false_rate[keep],
            y=true_rate[keep],
            mode="lines",
            name=f"{name} (AUC {roc_auc_score(positive, column):.4f})",
            hovertemplate="%{x:.3f}, %{y:.3f}<extra>" + name + "</extra>",
        )
    figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line={"dash": "dot", "color": "#999999"}, name="chance")
    return figure


def prediction_residuals(y: Array, predicted: Array) -> Any:
    """Return target minus prediction over the prediction."""
    figure = _figure("prediction", "target − prediction")
    keep = _thinned(y.size)
    figure.add_scatter(
        x=predicted[keep],
        y=(y - predicted)[keep],
        mode="markers",
        marker={"size": 5, "opacity": 0.5},
        hovertemplate="prediction %{x:.5g}<br>error %{y:.5g}<extra></extra>",
    )
    figure.add_hline(y=0.0, line_color="#666666")
    return figure


def _thinned(count: int) -> Array:
    """Return at most some thousand evenly spaced positions, both ends included: a page must stay small."""
    return np.unique(np.linspace(0, count - 1, min(count, _POINTS)).astype(int))
