"""Model files: safetensors with a description in JSON. Nothing in them is ever executed.

    tensors    coef (k, d), intercept (k), and where it was kept alpha (k, n); all float64
    metadata   format = "dualfree-model", format_version, the description under "model", and a checksum of it all

Every older format is read as well: format 1 had neither the checksum nor the fingerprint of the training data.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._checks import Array
from .._optional import require
from ..certificate import Certificate
from ..losses import LOSSES
from ..status import Status
from .atomic import written_in_place
from .encoding import Column, Encoding
from .errors import DataError, shown
from .model import Model, Objective, Outcome, Training

FORMAT = "dualfree-model"
FORMAT_VERSION = 2


def save_model(model: Model, path: str | os.PathLike[str]) -> None:
    r"""Write a model; the file appears only when it is complete.

    Parameters
    ----------
    model : Model
        What to write.
    path : path
        Where.

    Examples
    --------
    >>> import tempfile
    >>> from io import BytesIO
    >>> from pathlib import Path
    >>> from dualfree.cli.fitting import fit_model
    >>> from dualfree.io import Objective, read_data, save_model
    >>> data = read_data(BytesIO(b"1 1:2\n-1 2:3\n1 1:1 2:-1\n"), format="libsvm")
    >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save_model(fit_model(data, Objective("logistic", lam=0.1), seed=0).model, path)
    >>> path.exists()
    True
    """
    numpy_format = require("safetensors.numpy", "cli")
    tensors = {"coef": np.ascontiguousarray(model.coef), "intercept": np.ascontiguousarray(model.intercept)}
    if model.alpha is not None:
        tensors["alpha"] = np.ascontiguousarray(model.alpha)
    description = json.dumps(_description(model), allow_nan=False, ensure_ascii=False)
    metadata = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "model": description,
        "checksum": _checksum(description, tensors),
    }
    with written_in_place(path) as temporary:
        numpy_format.save_file(tensors, temporary, metadata=metadata)


def load_model(path: str | os.PathLike[str], *, accept_edited: bool = False) -> Model:
    r"""Read a model.

    Parameters
    ----------
    path : path
        A file that `save_model` wrote, in this format or an older one.
    accept_edited : bool, default=False
        Whether to load a file whose content was changed after it was written; `Model.intact` then says so.

    Returns
    -------
    Model

    Examples
    --------
    >>> import tempfile
    >>> from io import BytesIO
    >>> from pathlib import Path
    >>> from dualfree.cli.fitting import fit_model
    >>> from dualfree.io import Objective, load_model, read_data, save_model
    >>> data = read_data(BytesIO(b"1 1:2\n-1 2:3\n1 1:1 2:-1\n"), format="libsvm")
    >>> model = fit_model(data, Objective("logistic", lam=0.1), seed=0).model
    >>> path = Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> save_model(model, path)
    >>> bool((load_model(path).coef == model.coef).all())
    True
    """
    name = os.fspath(path)
    if not Path(path).is_file():
        raise DataError(name, "there is no such model file.")
    metadata, tensors = _open(name)
    version = _format_version(name, metadata)
    written = metadata.get("model", "")
    intact = version == 1 or metadata.get("checksum") == _checksum(written, tensors)
    if not (intact or accept_edited):
        raise DataError(name, "its content does not match its checksum: it was damaged or edited.")
    try:
        description = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise DataError(name, f"the description of the model is damaged ({error}).") from None
    return _model(name, description, tensors, intact)


def _checksum(description: str, tensors: dict[str, Array]) -> str:
    digest = hashlib.sha256(description.encode())
    for key in sorted(tensors):
        digest.update(f"{key} {tensors[key].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[key]).data)
    return digest.hexdigest()


def _open(name: str) -> tuple[dict[str, str], dict[str, Array]]:
    safetensors = require("safetensors", "cli")
    try:
        with safetensors.safe_open(name, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise DataError(name, "this safetensors file was not written by dualfree.")
            tensors = {}
            held = file.keys()
            for key in ("coef", "intercept", "alpha"):
                if key in held:
                    if file.get_slice(key).get_dtype() != "F64":
                        raise DataError(name, f"the tensor {key!r} must hold float64 numbers.")
                    tensors[key] = file.get_tensor(key)
    except safetensors.SafetensorError as error:
        raise DataError(name, f"this is not a dualfree model, or it is damaged ({error}).") from None
    return metadata, tensors


def _format_version(name: str, metadata: dict[str, str]) -> int:
    written = metadata.get("format_version", "")
    if not (written.isascii() and written.isdigit() and len(written) < 6):
        raise DataError(name, f"the format version {shown(written)} is not a number.")
    version = int(written)
    if version > FORMAT_VERSION:
        raise DataError(
            name,
            f"it has format version {version}, this dualfree reads up to {FORMAT_VERSION}: install a newer dualfree.",
        )
    if version < 1:
        raise DataError(name, f"there is no format version {version}.")
    return version


# --- description out --------------------------------------------------------------------------------------------------


def _description(model: Model) -> dict[str, Any]:
    return {
        "dualfree": __version__,
        "classes": None if model.classes is None else model.classes.tolist(),
        "objective": asdict(model.objective),
        "encoding": asdict(model.encoding),
        "training": asdict(model.training),
        "outcomes": [
            {**asdict(outcome), "certificate": {k: _number_out(v) for k, v in asdict(outcome.certificate).items()}}
            for outcome in model.outcomes
        ],
    }


def _number_out(value: Any) -> Any:
    """JSON has no infinity; it is written as text."""
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


# --- description in ---------------------------------------------------------------------------------------------------


class _Part:
    """A JSON object whose entries are taken out one by one and checked."""

    def __init__(self, name: str, where: str, content: Any) -> None:
        self.name, self.where = name, where
        if not isinstance(content, dict):
            raise self.wrong("an object", content)
        self.content = content

    def wrong(self, expected: str, found: Any, key: str = "") -> DataError:
        place = f"{self.where}.{key}" if key else self.where
        return DataError(self.name, f"{place} must be {expected}, got {shown(repr(found))}.")

    def part(self, key: str) -> _Part:
        return _Part(self.name, f"{self.where}.{key}", self.content.get(key))

    def text(self, key: str, among: Any = None) -> str:
        value = self.content.get(key)
        if not isinstance(value, str) or (among is not None and value not in among):
            expected = "text" if among is None else "one of " + ", ".join(among)
            raise self.wrong(expected, value, key)
        return value

    def optional_text(self, key: str, among: Any = None) -> str | None:
        return None if self.content.get(key) is None else self.text(key, among)

    def flag(self, key: str) -> bool:
        value = self.content.get(key)
        if not isinstance(value, bool):
            raise self.wrong("true or false", value, key)
        return value

    def whole(self, key: str, low: int = 0) -> int:
        value = self.content.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**53:
            raise self.wrong(f"a whole number from {low}", value, key)
        return value

    def number(self, key: str, low: float = -math.inf) -> float:
        value = self.content.get(key)
        if value in ("inf", "-inf", "nan"):
            return float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= 1e308:
            raise self.wrong("a number" if low == -math.inf else f"a number from {low:g}", value, key)
        return float(value)

    def items(self, key: str) -> list[Any]:
        value = self.content.get(key)
        if not isinstance(value, list):
            raise self.wrong("a list", value, key)
        return value


def _model(name: str, description: Any, tensors: dict[str, Array], intact: bool) -> Model:
    root = _Part(name, "model", description)
    objective = _objective(root.part("objective"))
    encoding = _encoding(root.part("encoding"))
    training = _training(root.part("training"))
    classes = _classes(root, objective)
    outcomes = tuple(_outcome(_Part(name, "model.outcomes", item)) for item in root.items("outcomes"))
    k = 1 if classes is None or len(classes) == 2 else len(classes)
    if len(outcomes) != k:
        raise DataError(name, f"it must hold {k} certificates, it holds {len(outcomes)}.")
    shapes = {"coef": (k, encoding.n_features), "intercept": (k,), "alpha": (k, training.n_rows)}
    for key, shape in shapes.items():
        if key not in tensors:
            if key == "alpha":
                continue
            raise DataError(name, f"the tensor {key!r} is missing.")
        if tensors[key].shape != shape:
            raise DataError(name, f"the tensor {key!r} must have shape {shape}, it has {tensors[key].shape}.")
        if not np.isfinite(tensors[key]).all():
            raise DataError(name, f"the tensor {key!r} contains NaN or infinity.")
    return Model(
        tensors["coef"],
        tensors["intercept"],
        tensors.get("alpha"),
        classes,
        objective,
        encoding,
        training,
        outcomes,
        root.text("dualfree"),
        intact,
    )


def _objective(part: _Part) -> Objective:
    loss = part.text("loss", among=LOSSES)
    parameter = None if part.content.get("loss_parameter") is None else part.number("loss_parameter", low=0.0)
    objective = Objective(
        loss,
        parameter,
        part.number("lam", low=1e-300),
        part.flag("fit_intercept"),
        part.optional_text("class_weight", among=("balanced",)),
    )
    try:
        objective.make_loss()
    except (TypeError, ValueError) as error:
        raise DataError(part.name, f"model.objective.loss_parameter does not fit the loss {loss}: {error}") from None
    return objective


def _encoding(part: _Part) -> Encoding:
    columns = None
    if part.content.get("columns") is not None:
        columns = tuple(_column(_Part(part.name, "model.encoding.columns", item)) for item in part.items("columns"))
    index_base = None if part.content.get("index_base") is None else part.whole("index_base")
    if index_base not in (None, 0, 1):
        raise part.wrong("0 or 1", index_base, "index_base")
    encoding = Encoding(
        part.whole("n_features", low=1),
        part.text("dtype", among=("float32", "float64")),
        index_base,
        columns,
        part.optional_text("target"),
    )
    if columns is not None and sum(len(column.feature_names) for column in columns) != encoding.n_features:
        raise part.wrong(f"columns that make {encoding.n_features} features", len(columns), "columns")
    return encoding


def _column(part: _Part) -> Column:
    name = part.text("name")
    if part.content.get("levels") is None:
        return Column(name)
    levels = part.items("levels")
    for level in levels:
        if not (level is None or isinstance(level, str)):
            raise part.wrong("a list of texts", level, "levels")
    if len(set(levels)) != len(levels):
        raise part.wrong("a list without repetitions", levels, "levels")
    return Column(name, tuple(levels))


def _training(part: _Part) -> Training:
    return Training(
        part.text("data"),
        part.whole("n_rows", low=1),
        part.flag("skip_bad_lines"),
        part.text("solver"),
        part.number("tol", low=0.0),
        None if part.content.get("seed") is None else part.whole("seed"),
        part.optional_text("fingerprint"),
    )


def _classes(root: _Part, objective: Objective) -> Array | None:
    if not objective.is_classification:
        return None
    listed = root.items("classes")
    numbers = all(isinstance(c, (int, float)) and not isinstance(c, bool) and math.isfinite(c) for c in listed)
    texts = all(isinstance(c, str) for c in listed)
    if len(listed) < 2 or not (numbers or texts):
        raise root.wrong("a list of at least two numbers or texts", listed, "classes")
    classes = np.array(listed, dtype=np.float64 if numbers else None)
    if not (classes[1:] > classes[:-1]).all():
        raise root.wrong("sorted and without repetitions", listed, "classes")
    return classes


def _outcome(part: _Part) -> Outcome:
    written = part.part("certificate")
    values: dict[str, Any] = {}
    for entry in fields(Certificate):
        values[entry.name] = written.text("source") if entry.name == "source" else written.number(entry.name)
    return Outcome(
        Certificate(**values),
        part.text("status", among=[status.value for status in Status]),
        part.whole("n_epochs"),
        part.number("seconds", low=0.0),
    )
