"""``dualfree export``: a model in other programs' formats."""

from __future__ import annotations

import click

from ..io import export_liblinear, export_onnx, load_model
from . import exits
from .options import json_option
from .output import Output


@click.command(short_help="Write a model for ONNX or LIBLINEAR.")
@click.argument("model_file", metavar="MODEL", type=click.Path())
@click.option("--onnx", metavar="FILE", type=click.Path(), help="Write an ONNX file, for onnxruntime and others.")
@click.option("--liblinear", metavar="FILE", type=click.Path(), help="Write a model for LIBLINEAR's predict.")
@json_option
def export(model_file: str, onnx: str | None, liblinear: str | None, as_json: bool) -> int:
    r"""Write MODEL in another format.

    ONNX takes the matrix X in float64, categories already as columns of zeros and ones (the names are in the file's
    metadata), and gives labels, scores and, for the logistic loss, probabilities. LIBLINEAR reads whole numbers as classes
    only.

    \b
    Examples:
      dualfree export m.safetensors --onnx m.onnx
      dualfree export m.safetensors --liblinear m.model && predict test.svm m.model predictions.txt
    """
    if onnx is None and liblinear is None:
        raise click.UsageError("say what to write: --onnx FILE, --liblinear FILE, or both.")
    output = Output("export", as_json)
    model = load_model(model_file)
    written = {}
    for kind, path, write in (("onnx", onnx, export_onnx), ("liblinear", liblinear, export_liblinear)):
        if path is not None:
            write(model, path)
            written[kind] = path
            output.say(f"Wrote {path}.")
    output.put(files=written)
    return output.end(exits.CERTIFIED)
