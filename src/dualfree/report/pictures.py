"""Pictures in files: convergence of several solvers, and a λ-path."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._optional import require
from ..io import Model, written_in_place
from ..result import Result
from .plots import COLOURS
from .words import score_names

_SUFFIXES = (".png", ".svg", ".pdf")
_MOST_LINES = 200


def _canvas(columns: int) -> tuple[Any, Any]:
    """Return a figure that belongs to no window, and its axes."""
    figure = require("matplotlib.figure", "report").Figure(figsize=(5.5 * columns, 4.2), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for axis in axes:
        axis.set_prop_cycle(color=COLOURS)
        axis.grid(alpha=0.3)
    return figure, axes


def _save(figure: Any, path: str | os.PathLike[str]) -> None:
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ValueError(
            f"{os.fspath(path)}: a picture is written as {', '.join(_SUFFIXES)}; choose one by the suffix."
        )
    with written_in_place(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], dpi=150)


def draw_convergence(results: Mapping[str, Result], target: float, path: str | os.PathLike[str]) -> None:
    r"""Draw the certified gap of several solvers over passes and over seconds.

    Parameters
    ----------
    results : mapping from name to Result
        One curve each.
    target : float
        The gap asked for; drawn as a line.
    path : path
        A .png, .svg or .pdf file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.report import draw_convergence
    >>> problem = df.Problem(np.eye(4), [1.0, 2.0, 3.0, 4.0], loss="squared", lam=0.1)
    >>> picture = Path(tempfile.mkdtemp()) / "gap.png"
    >>> draw_convergence({"auto": df.solve(problem, random_state=0)}, 1e-6 * problem.at_zero, picture)
    >>> picture.read_bytes()[:4]
    b'\x89PNG'
    """
    figure, axes = _canvas(2)
    for axis, against, unit in zip(
        axes, ("passes", "seconds"), ("passes over the data", "seconds of solving"), strict=True
    ):
        for name, result in results.items():
            trace = result.trace
            axis.semilogy(
                getattr(trace, against), np.minimum.accumulate(trace.gap), label=name, marker=".", linewidth=1.4
            )
        if target > 0:
            axis.axhline(target, color="0.4", linestyle=":", linewidth=1)
        axis.set_xlabel(unit)
        axis.set_ylabel("certified gap")
        axis.set_xscale("symlog", linthresh=1.0 if against == "passes" else 1e-4)  # zero, where all begin, is shown
        axis.set_xlim(left=0.0)
    axes[0].legend(fontsize="small")
    _save(figure, path)


def draw_path(
    models: Sequence[Model],
    scores: Sequence[Mapping[str, float | None]] | None,
    best: int | None,
    path: str | os.PathLike[str],
) -> None:
    r"""Draw the coefficients, the certified gaps and, where there are any, the scores over λ.

    Parameters
    ----------
    models : sequence of Model
        One for each λ.
    scores : sequence of dict, optional
        Their scores on other data.
    best : int, optional
        Which model is the best one; marked by a line.
    path : path
        A .png, .svg or .pdf file.

    Examples
    --------
    >>> import tempfile
    >>> from io import BytesIO
    >>> from pathlib import Path
    >>> from dualfree.cli.fitting import fit_model
    >>> from dualfree.io import Objective, read_data
    >>> from dualfree.report import draw_path
    >>> data = read_data(BytesIO(b"1 1:2\n-1 2:3\n1 1:1 2:-1\n"), format="libsvm")
    >>> models = [fit_model(data, Objective("logistic", lam=lam), seed=0).model for lam in (1.0, 0.1)]
    >>> path = Path(tempfile.mkdtemp()) / "path.png"
    >>> draw_path(models, None, None, path)
    >>> path.read_bytes()[:4]
    b'\x89PNG'
    """
    lams = np.array([model.objective.lam for model in models])
    coefs = np.array([model.coef.ravel() for model in models])
    shown = np.argsort(-np.abs(coefs).max(axis=0), kind="stable")[:_MOST_LINES]
    figure, axes = _canvas(3 if scores else 2)
    axes[0].semilogx(lams, coefs[:, shown], linewidth=0.9)
    axes[0].set_ylabel("coefficients" if shown.size == coefs.shape[1] else f"the {shown.size} largest coefficients")
    gaps = [max(outcome.certificate.relative_gap for outcome in model.outcomes) for model in models]
    axes[1].loglog(lams, gaps, marker=".")
    axes[1].axhline(models[0].training.tol, color="0.4", linestyle=":", linewidth=1)
    axes[1].set_ylabel("certified gap / P(0)")
    if scores:
        for name in scores[0]:
            values = [np.nan if s[name] is None else s[name] for s in scores]
            axes[2].semilogx(lams, values, marker=".", label=score_names[name])
        axes[2].set_ylabel("score")
        axes[2].legend(fontsize="small")
    for axis in axes:
        axis.set_xlabel("λ")
        axis.invert_xaxis()
        if best is not None:
            axis.axvline(lams[best], color="0.4", linestyle="--", linewidth=1)
    _save(figure, path)
