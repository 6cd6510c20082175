"""``dualfree predict``: a model and new data in, predictions out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._checks import Array
from .._optional import require
from ..io import Model, load_model, written_in_place
from ..report.words import label
from . import exits
from .options import json_option, quiet_option, read_for_model, reading_options
from .output import Output, say_data_notes


@click.command(short_help="Predict with a model.")
@click.argument("model_file", metavar="MODEL", type=click.Path())
@click.argument("data", type=click.Path())
@click.option("--proba", is_flag=True, help="Add the probability of each class (logistic loss).")
@click.option(
    "--certified",
    is_flag=True,
    help="Add what is certain: for classes, whether no better optimisation could change the prediction; for numbers, how "
    "far the exact optimum's prediction can be, at most.",
)
@click.option(
    "-o", "--out", metavar="FILE", type=click.Path(), help="Write here (.csv, .parquet, else text with tabs)."
)
@reading_options
@json_option
@quiet_option
def predict(
    model_file: str,
    data: str,
    proba: bool,
    certified: bool,
    out: str | None,
    file_format: str | None,
    no_header: bool,
    skip_bad_lines: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    r"""Predict the target of each row of DATA with MODEL.

    Without options, one prediction per line, in the order of the rows. With --proba or --certified, a table with a header.
    Features and categories that the model does not know are ignored, and counted on standard error.

    \b
    Examples:
      dualfree predict m.safetensors new.svm -o predictions.txt
      dualfree predict m.safetensors new.csv --proba --certified -o predictions.csv
    """
    output = Output("predict", as_json)
    model = load_model(model_file)
    rows = read_for_model(data, model.encoding, quiet, file_format, no_header, skip_bad_lines, need_target=False)
    say_data_notes(output, rows)
    table = prediction_table(model, rows.X, proba, certified)
    if out is not None:
        _write(table, out)
        output.put(files={"predictions": out})
        output.say(f"Wrote {rows.X.shape[0]} predictions to {out}.")
    elif as_json:
        output.put(**table)
    else:
        sys.stdout.write(_as_text(table, "\t"))
    output.put(n_rows=rows.X.shape[0])
    return output.end(exits.CERTIFIED)


def prediction_table(model: Model, X: Any, proba: bool = False, certified: bool = False) -> dict[str, Array]:
    """Return the columns of the output by name."""
    scores = model.scores(X)
    table = {"prediction": model.predict(scores)}
    if proba:
        for name, column in zip(_class_names(model), model.probabilities(scores).T, strict=True):
            table[f"p({name})"] = column
    if certified:
        bounds = model.score_bounds(X)
        if model.classes is None:
            table["bound"] = bounds[:, 0]
        else:
            table["certified"] = model.certain(scores, bounds)
    return table


def _class_names(model: Model) -> list[str]:
    return [] if model.classes is None else [label(c) for c in model.classes.tolist()]


def _write(table: dict[str, Array], out: str) -> None:
    suffix = Path(out).suffix
    with written_in_place(out) as temporary:
        if suffix == ".parquet":
            arrow = require("pyarrow", "cli")
            require("pyarrow.parquet", "cli").write_table(arrow.table(table), temporary)
        else:
            temporary.write_text(
                _as_text(table, "," if suffix == ".csv" else "\t", always_header=suffix == ".csv"), "utf-8"
            )


def _as_text(table: dict[str, Array], separator: str, always_header: bool = False) -> str:
    columns = [[_cell(value, separator) for value in column.tolist()] for column in table.values()]
    lines = [separator.join(cells) for cells in zip(*columns, strict=True)]
    if len(columns) > 1 or always_header:
        lines.insert(0, separator.join(_cell(name, separator) for name in table))
    return "\n".join(lines) + "\n"


def _cell(value: Any, separator: str) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    text = label(value) if isinstance(value, (float, str)) else str(value)
    if separator == "," and any(c in text for c in ',"\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
