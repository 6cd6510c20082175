"""Models for LIBLINEAR's ``predict``: its text format."""

from __future__ import annotations

import os

import numpy as np

from .atomic import written_in_place
from .errors import DataError
from .model import Model

# LIBLINEAR's predict only looks whether the solver is one for numbers; these are the nearest relatives.
_SOLVER_TYPES = {
    "logistic": "L2R_LR",
    "squared_hinge": "L2R_L2LOSS_SVC",
    "smoothed_hinge": "L2R_L2LOSS_SVC",
    "hinge": "L2R_L1LOSS_SVC_DUAL",
    "squared": "L2R_L2LOSS_SVR",
    "huber": "L2R_L2LOSS_SVR",
    "squared_epsilon_insensitive": "L2R_L2LOSS_SVR",
    "epsilon_insensitive": "L2R_L1LOSS_SVR_DUAL",
}


def export_liblinear(model: Model, path: str | os.PathLike[str]) -> None:
    r"""Write a model that LIBLINEAR can read.

    Parameters
    ----------
    model : Model
        Its classes must be whole numbers, which is all that LIBLINEAR knows.
    path : path
        Where.

    Examples
    --------
    >>> import tempfile
    >>> from io import BytesIO
    >>> from pathlib import Path
    >>> from dualfree.cli.fitting import fit_model
    >>> from dualfree.io import Objective, export_liblinear, read_data
    >>> data = read_data(BytesIO(b"1 1:2\n-1 2:3\n1 1:1 2:-1\n"), format="libsvm")
    >>> model = fit_model(data, Objective("logistic", lam=0.1), seed=0).model
    >>> path = Path(tempfile.mkdtemp()) / "m.model"
    >>> export_liblinear(model, path)
    >>> path.read_text().splitlines()[:3]
    ['solver_type L2R_LR', 'nr_class 2', 'label 1 -1']
    """
    name = os.fspath(path)
    labels = _labels(model, name)
    # With two classes LIBLINEAR's score speaks for the label that is listed first, ours for the second.
    if len(labels) == 2:
        labels.reverse()
    lines = [f"solver_type {_SOLVER_TYPES[model.objective.loss]}", f"nr_class {max(2, len(labels))}"]
    if labels:
        lines.append("label " + " ".join(str(c) for c in labels))
    lines += [f"nr_feature {model.coef.shape[1]}", f"bias {1 if model.objective.fit_intercept else -1}"]
    lines.append("w")
    weights = np.vstack([model.coef.T, model.intercept]) if model.objective.fit_intercept else model.coef.T
    lines += [" ".join(f"{value:.17g}" for value in row) + " " for row in weights.tolist()]
    with written_in_place(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="ascii")


def _labels(model: Model, name: str) -> list[int]:
    if model.encoding.index_base == 0:
        raise DataError(name, "LIBLINEAR counts features from 1; the model was fitted on data that count from 0.")
    if model.classes is None:
        return []
    if model.classes.dtype.kind != "f" or not (np.abs(model.classes) < 2**31).all() or (model.classes % 1).any():
        raise DataError(
            name, f"LIBLINEAR knows whole numbers as classes only, the model has {model.classes.tolist()[0]!r}."
        )
    return [int(c) for c in model.classes.tolist()]
