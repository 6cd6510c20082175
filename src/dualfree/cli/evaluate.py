"""``dualfree evaluate``: how well a model predicts."""

from __future__ import annotations

import click

from ..io import load_model
from ..report.words import score_names
from . import exits, scoring
from .options import json_option, quiet_option, read_for_model, reading_options
from .output import Output, say_data_notes


@click.command(short_help="Score a model on data with known targets.")
@click.argument("model_file", metavar="MODEL", type=click.Path())
@click.argument("data", type=click.Path())
@reading_options
@json_option
@quiet_option
def evaluate(
    model_file: str,
    data: str,
    file_format: str | None,
    no_header: bool,
    skip_bad_lines: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    r"""Compare MODEL's predictions on DATA with the targets there.

    For classes: accuracy, log loss (logistic loss only) and ROC AUC, for several classes its mean over them. For numbers:
    R² and the mean absolute error.

    \b
    Example:
      dualfree evaluate m.safetensors test.svm
    """
    output = Output("evaluate", as_json)
    model = load_model(model_file)
    rows = read_for_model(data, model.encoding, quiet, file_format, no_header, skip_bad_lines)
    say_data_notes(output, rows)
    scores = scoring.score(model, rows)
    output.put(data=rows.name, n_rows=rows.X.shape[0], **scores)
    output.say(f"{rows.name}: {rows.X.shape[0]} rows.")
    for key, value in scores.items():
        output.say(f"  {score_names[key]:20} {'not defined here' if value is None else f'{value:.6g}'}")
    return output.end(exits.CERTIFIED)
