"""The HTML report: one page that opens without a network."""

from __future__ import annotations

import datetime
import html
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._optional import require
from .._version import __version__
from ..io import Dataset, Model, written_in_place
from ..result import Result
from . import plots
from .residuals import Density
from .words import certificate_paragraphs, column_names, score_names

_MOST_CURVES = 10
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1b1b; max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.verdict { display: inline-block; padding: 0.15rem 0.7rem; border-radius: 0.3rem; color: white; background: #00754a; }
.verdict.open { background: #a85400; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .pair > div { min-width: 0; }
@media (max-width: 900px) { .pair { grid-template-columns: 1fr; } }
table { border-collapse: collapse; }
td, th { overflow-wrap: anywhere; text-align: left; padding: 0.2rem 1.2rem 0.2rem 0; vertical-align: top; }
th { font-weight: 600; } td.number { font-variant-numeric: tabular-nums; text-align: right; }

.single { max-width: 760px; }
.faint { color: #666; } .plotly-graph-div { width: 100%; }
"""


def write_report(
    path: str | os.PathLike[str],
    model: Model,
    results: Sequence[Result],
    training: Dataset,
    densities: Sequence[Density] = (),
    valid: Dataset | None = None,
    scores: dict[str, float | None] | None = None,
) -> None:
    r"""Write the report of a fit: certificate, convergence, residuals, coefficients, and how well it predicts.

    Parameters
    ----------
    path : path
        The HTML file.
    model : Model
        What was fitted.
    results : sequence of Result
        One for each row of the model's coefficients, for their traces.
    training : Dataset
        The training data.
    densities : sequence of Density
        The residuals that a `ResidualRecorder` kept.
    valid : Dataset, optional
        Other data with targets, for a ROC curve or a plot of the errors.
    scores : dict, optional
        The scores on `valid`.

    Examples
    --------
    >>> import tempfile
    >>> from io import BytesIO
    >>> from pathlib import Path
    >>> from dualfree.cli.fitting import fit_model
    >>> from dualfree.io import Objective, read_data
    >>> from dualfree.report import write_report
    >>> data = read_data(BytesIO(b"1 1:2\n-1 2:3\n1 1:1 2:-1\n"), format="libsvm")
    >>> fit = fit_model(data, Objective("logistic", lam=0.1), seed=0)
    >>> path = Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(path, fit.model, fit.results, data)
    >>> "<h2>Certificate</h2>" in path.read_text(encoding="utf-8")
    True
    """
    page = _Page()
    names = column_names(model)
    certified = all(outcome.status == "converged" for outcome in model.outcomes)
    page.heading(f"dualfree fit: {os.path.basename(training.name)}")
    page.verdict(certified, model, results)
    page.section("Certificate")
    page.paragraphs(certificate_paragraphs(model))
    if len(names) > 1:
        page.table(("", "objective", "gap at most", "of P(0)", "epochs", "status"), _certificate_rows(model, names))
    page.section("Convergence")
    targets = [_target(result, model.training.tol) for result in results]
    shown = slice(0, _MOST_CURVES)
    if len(names) > _MOST_CURVES:
        page.paragraphs([f"The first {_MOST_CURVES} of {len(names)} classes are drawn."])
    curves = (names[shown], results[shown], targets[shown])
    page.figures([plots.convergence(*curves, against) for against in ("passes", "seconds")])
    if densities:
        page.section("Dual residuals")
        page.paragraphs(
            [
                "How the residuals |κ| of the rows are spread after some epochs. At the optimum all are zero; the mass "
                "moves to the left as the fit goes on."
            ]
        )
        page.figures([plots.residual_density(names, densities)])
    if np.any(model.coef):
        page.section("Largest coefficients")
        page.figures([plots.coefficients(model, names[shown])])
    if valid is not None and valid.y is not None:
        page.section(f"Validation: {os.path.basename(valid.name)}")
        page.table(("score", "value"), [(score_names[k], _shown(v)) for k, v in (scores or {}).items()])
        page.figures([_validation_figure(model, valid)])
    page.section("Data and settings")
    page.table(("", ""), _settings(model, training, results))
    with written_in_place(path) as temporary:
        temporary.write_text(page.finish(), encoding="utf-8")


class _Page:
    """Collects the parts; everything that comes from a file is escaped."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.title = "dualfree"

    def heading(self, text: str) -> None:
        self.title = text
        self.parts.append(f"<h1>{html.escape(text)}</h1>")

    def verdict(self, certified: bool, model: Model, results: Sequence[Result]) -> None:
        word = "certified" if certified else "not certified to tol"
        reason = "" if certified else next(r.message for r in results if str(r.status) != "converged")
        css = "verdict" if certified else "verdict open"
        self.parts.append(f'<p><span class="{css}">{word}</span> {html.escape(reason)}</p>')

    def section(self, text: str) -> None:
        self.parts.append(f"<h2>{html.escape(text)}</h2>")

    def paragraphs(self, texts: Iterable[str]) -> None:
        self.parts.extend(f"<p>{html.escape(text)}</p>" for text in texts)

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header) if any(header) else ""
        body = "".join(
            "<tr><th>"
            + html.escape(row[0])
            + "</th>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in rows
        )
        self.parts.append(f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>")

    def figures(self, figures: Sequence[Any]) -> None:
        drawn = [f.to_html(full_html=False, include_plotlyjs=False, config={"responsive": True}) for f in figures]
        css = "pair" if len(drawn) > 1 else "single"
        inner = "".join(f"<div>{figure}</div>" for figure in drawn)
        self.parts.append(f'<div class="{css}">{inner}</div>')

    def finish(self) -> str:
        library = require("plotly.offline", "report").get_plotlyjs()
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<link rel="icon" href="data:,">'
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style><script>{library}</script></head>\n<body>\n"
            + "\n".join(self.parts)
            + f'\n<p class="faint">Written by dualfree {__version__} on {datetime.date.today():%d %B %Y}.</p>\n</body></html>\n'
        )


def _target(result: Result, tol: float) -> float:
    certificate = result.certificate
    return tol * certificate.gap / certificate.relative_gap if certificate.relative_gap > 0 else 0.0


def _shown(value: Any) -> str:
    if value is None:
        return "not defined here"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _certificate_rows(model: Model, names: Sequence[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name, outcome in zip(names, model.outcomes, strict=True):
        c = outcome.certificate
        gap = f"{c.gap:.2e}" if math.isfinite(c.gap) else "unknown"
        rows.append((name, f"{c.primal:.8g}", gap, f"{c.relative_gap:.2e}", str(outcome.n_epochs), outcome.status))
    return rows


def _validation_figure(model: Model, valid: Dataset) -> Any:
    scores = model.scores(valid.X)
    y = np.asarray(valid.y)
    return plots.prediction_residuals(y, scores[:, 0]) if model.classes is None else plots.roc(model, y, scores)


def _settings(model: Model, training: Dataset, results: Sequence[Result]) -> list[tuple[str, str]]:
    n, d = training.X.shape
    nnz = int(getattr(training.X, "nnz", n * d))
    objective = model.objective
    parameter = "" if objective.loss_parameter is None else f" ({objective.loss_parameter:g})"
    rows = [
        ("data", training.name),
        ("rows, features", f"{n:,} × {d:,}, {nnz:,} stored entries ({nnz / (n * d):.2%}), {training.X.dtype}"),
        ("loss", objective.loss + parameter),
        ("λ", f"{objective.lam:.6g} (C = {1 / (objective.lam * n):.6g})"),
        ("intercept", "fitted, not penalised" if objective.fit_intercept else "none"),
        ("class weights", objective.class_weight or "none"),
        ("solver", f"{model.training.solver}, tol {model.training.tol:g}, seed {model.training.seed}"),
        ("time", f"{sum(float(r.trace.seconds[-1]) for r in results):.3f} s of solving"),
        ("fingerprint of the data", model.training.fingerprint or "unknown"),
    ]
    if training.bad_lines:
        rows.insert(2, ("broken lines skipped", str(training.bad_lines)))
    return rows
