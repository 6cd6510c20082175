"""``dualfree certify``: whether a model's claim holds on the data it was fitted on.

Three things are checked, none of which trusts the solver: that the file is as it was written, that the data are the ones
the model was fitted on, and that objective and gap, computed anew from weights, dual vectors and data in float64, are what
the model says.
"""

from __future__ import annotations

import math

import click
import numpy as np

from ..certificate import Certificate
from ..certificate import certify as bound
from ..io import DataError, Dataset, Model, load_model
from ..report.words import column_names, in_words
from . import exits
from .fitting import check_target
from .options import json_option, quiet_option, read_for_model, reading_options
from .output import Output, certificate_entry
from .scoring import comparable_labels

# Sums over the rows may be ordered differently on another machine; nothing larger than that is forgiven.
_SUMMATION = 1e-10
_GAP_SUMMATION = 1e-6


@click.command(short_help="Prove a model's claim anew from the data.")
@click.argument("model_file", metavar="MODEL", type=click.Path())
@click.argument("data", type=click.Path())
@reading_options
@json_option
@quiet_option
def certify(
    model_file: str,
    data: str,
    file_format: str | None,
    no_header: bool,
    skip_bad_lines: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    r"""Recompute MODEL's certificate from its weights and the training DATA, and compare it with what the model claims.

    Exit status 0 if the claim holds, 1 if it does not: a coefficient was changed, a row of the data was changed, or these
    are not the training data. Broken lines are skipped if they were when the model was fitted.

    \b
    Example:
      dualfree certify m.safetensors train.svm
    """
    output = Output("certify", as_json)
    model = load_model(model_file, accept_edited=True)
    skip = skip_bad_lines or model.training.skip_bad_lines
    rows = read_for_model(data, model.encoding, quiet, file_format, no_header, skip)
    doubts, certificates = examine(model, rows)
    names = column_names(model)
    for name, certificate in zip(names, certificates, strict=False):
        prefix = f"{name}: " if len(names) > 1 else ""
        output.say(prefix + in_words(certificate))
    output.put(
        holds=not doubts,
        doubts=doubts,
        certificates=[{"column": n, **certificate_entry(c)} for n, c in zip(names, certificates, strict=False)],
    )
    if doubts:
        output.say("The model's claim does not hold:")
        for doubt in doubts:
            output.say(f"  {doubt}")
        return output.end(exits.CLAIM_FAILED)
    output.say("The model's claim holds.")
    return output.end(exits.CERTIFIED)


def examine(model: Model, rows: Dataset) -> tuple[list[str], list[Certificate]]:
    """Return what speaks against the model's claim, and the certificates as computed here."""
    doubts = []
    if not model.intact:
        doubts.append("The model file was changed after it was written: its checksum is wrong.")
    if rows.unknown:
        doubts.append(f"The data hold {rows.unknown} entries of features that the model does not know.")
    if rows.X.shape[0] != model.training.n_rows:
        doubts.append(f"The model was fitted on {model.training.n_rows} rows, the data have {rows.X.shape[0]}.")
    elif model.training.fingerprint is not None and rows.fingerprint() != model.training.fingerprint:
        doubts.append("The data are not those that the model was fitted on: their fingerprints differ.")
    try:
        y = comparable_labels(model, rows) if model.classes is not None else check_target(rows, model.objective)
    except DataError as error:
        return [*doubts, str(error)], []
    if model.classes is not None and not np.array_equal(np.unique(y), model.classes):
        return [*doubts, "The data have other classes than the model."], []
    if model.intercept.any() and not model.objective.fit_intercept:
        return [*doubts, "The model has an intercept although none was fitted."], []
    X = rows.X if rows.X.dtype == np.float64 else rows.X.astype(np.float64)
    certificates = []
    for column, problem in enumerate(model.objective.problems(X, y, model.classes)):
        alpha = None if model.alpha is None or rows.X.shape[0] != model.training.n_rows else model.alpha[column]
        certificates.append(bound(problem, model.coef[column], float(model.intercept[column]), alpha))
    for name, claimed, found in zip(column_names(model), model.outcomes, certificates, strict=True):
        doubts.extend(
            _differences(name if len(certificates) > 1 else "", model.objective.lam, claimed.certificate, found)
        )
        if claimed.status == "converged" and claimed.certificate.relative_gap > model.training.tol * (
            1 + _GAP_SUMMATION
        ):
            doubts.append(f"{name}: it calls itself converged, its own gap says otherwise.")
    return doubts, certificates


def _differences(name: str, lam: float, claimed: Certificate, found: Certificate) -> list[str]:
    """Return where the certificate computed here is worse than the one in the model."""
    prefix = f"{name}: the" if name else "The"
    size = max(abs(claimed.primal), abs(found.primal))
    doubts = []
    if not abs(found.primal - claimed.primal) <= _SUMMATION * size:
        doubts.append(f"{prefix} objective is {found.primal:.12g}, the model claims {claimed.primal:.12g}.")
    # What stands for rounding errors in the gap may come out differently elsewhere, and what follows from it likewise.
    slack = found.rounding if math.isfinite(found.rounding) else 0.0
    slacks = {
        "gap": slack,
        "relative_gap": slack * found.relative_gap / found.gap if found.gap > 0 else 0.0,
        "distance_bound": math.sqrt(2 * slack / lam),
        "intercept_bound": 0.0,
    }
    for what, slack in slacks.items():
        here, says = getattr(found, what), getattr(claimed, what)
        if not here <= says * (1 + _GAP_SUMMATION) + slack:
            doubts.append(f"{prefix} {what.replace('_', ' ')} is {here:.3g}, the model claims {says:.3g}.")
    return doubts
