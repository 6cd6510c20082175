"""``dualfree info``: what a model file holds."""

from __future__ import annotations

from dataclasses import asdict

import click
import numpy as np

from ..io import Model, load_model
from ..report.words import column_names, label
from . import exits
from .options import json_option
from .output import Output, say_certificates

_SHOWN = 10


@click.command(short_help="Show what a model file holds.")
@click.argument("model_file", metavar="MODEL", type=click.Path())
@json_option
def info(model_file: str, as_json: bool) -> int:
    r"""Show MODEL: what was minimised, on which data, what is certified, and the largest coefficients.

    \b
    Example:
      dualfree info m.safetensors
    """
    output = Output("info", as_json)
    model = load_model(model_file, accept_edited=True)
    training, objective = model.training, model.objective
    parameter = "" if objective.loss_parameter is None else f":{objective.loss_parameter:g}"
    weight = "" if objective.class_weight is None else f", class weight {objective.class_weight}"
    output.put(
        version=model.version,
        intact=model.intact,
        objective=asdict(objective),
        training=asdict(training),
        n_features=model.encoding.n_features,
        classes=None if model.classes is None else model.classes.tolist(),
        has_dual=model.alpha is not None,
    )
    output.say(f"{model_file}: a linear model, written by dualfree {model.version}.")
    if not model.intact:
        output.say("  warning     the file was changed after it was written: its checksum is wrong")
    output.say(f"  loss        {objective.loss}{parameter}, λ = {objective.lam:g}{weight}")
    output.say(f"  intercept   {'fitted' if objective.fit_intercept else 'none'}")
    output.say(f"  data        {training.data}: {training.n_rows} rows, {model.encoding.n_features} features")
    if model.classes is not None:
        output.say(f"  classes     {_listed([label(c) for c in model.classes.tolist()])}")
    output.say(f"  solver      {training.solver}, tol {training.tol:g}")
    output.say(f"  dual        {'kept' if model.alpha is not None else 'left out'}")
    say_certificates(output, model)
    for name, row, b in zip(column_names(model), model.coef, model.intercept, strict=True):
        largest = largest_coefficients(model, row, _SHOWN)
        output.say(f"Largest coefficients, {name}:")
        for feature, value in largest:
            output.say(f"  {value:+12.6g}  {feature}")
        if objective.fit_intercept:
            output.say(f"  {b:+12.6g}  (intercept)")
    output.put(
        largest_coefficients=[dict(largest_coefficients(model, row, _SHOWN)) for row in model.coef],
        intercepts=model.intercept,
    )
    return output.end(exits.CERTIFIED)


def largest_coefficients(model: Model, row: np.ndarray, count: int) -> list[tuple[str, float]]:
    """Return the features with the largest weights in absolute value, and their weights."""
    names = model.encoding.feature_names
    order = np.argsort(-np.abs(row), kind="stable")[:count]
    return [(names[j], float(row[j])) for j in order.tolist() if row[j] != 0]


def _listed(items: list[str]) -> str:
    return ", ".join(items[:_SHOWN]) + (f", … ({len(items)} in all)" if len(items) > _SHOWN else "")
