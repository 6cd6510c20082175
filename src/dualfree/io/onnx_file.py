"""Models for ONNX runtimes: a graph of standard operators, in float64."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from .._optional import require
from .._version import __version__
from .atomic import written_in_place
from .model import Model

_OPSET = 17
_IR_VERSION = 8


def export_onnx(model: Model, path: str | os.PathLike[str]) -> None:
    r"""Write a model as ONNX.

    The input ``X`` is a float64 matrix. The outputs are ``label`` and ``scores`` for classes, with ``probabilities`` for the
    logistic loss, or ``prediction`` for numbers. The metadata hold the names of the features and the certificates.

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
    >>> from dualfree.io import Objective, export_onnx, read_data
    >>> data = read_data(BytesIO(b"1 1:2\n-1 2:3\n1 1:1 2:-1\n"), format="libsvm")
    >>> model = fit_model(data, Objective("logistic", lam=0.1), seed=0).model
    >>> path = Path(tempfile.mkdtemp()) / "m.onnx"
    >>> export_onnx(model, path)
    >>> path.stat().st_size > 0
    True
    """
    onnx = require("onnx", "cli")
    graph = _Graph(onnx)
    graph.constant("coef", model.coef.T)
    graph.constant("intercept", model.intercept)
    graph.node("MatMul", ["X", "coef"], "product")
    if model.classes is None:
        graph.node("Add", ["product", "intercept"], "prediction")
        outputs = [graph.value("prediction", np.float64, [None, 1])]
    else:
        graph.node("Add", ["product", "intercept"], "scores")
        outputs = _classification(graph, model)
    inputs = [graph.value("X", np.float64, [None, model.coef.shape[1]])]
    body = onnx.helper.make_graph(graph.nodes, "dualfree", inputs, outputs, initializer=graph.constants)
    opsets = [onnx.helper.make_opsetid("", _OPSET)]
    content = onnx.helper.make_model(
        body, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="dualfree", producer_version=__version__
    )
    onnx.helper.set_model_props(
        content,
        {
            "feature_names": json.dumps(model.encoding.feature_names, ensure_ascii=False),
            "relative_gaps": json.dumps([outcome.certificate.relative_gap for outcome in model.outcomes]),
        },
    )
    onnx.checker.check_model(content, full_check=True)
    with written_in_place(path) as temporary:
        temporary.write_bytes(content.SerializeToString())


class _Graph:
    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, array: Any) -> None:
        array = np.asarray(array)
        content = array.astype(object) if array.dtype.kind == "U" else np.ascontiguousarray(array)
        self.constants.append(self.onnx.numpy_helper.from_array(content, name))

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> None:
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))

    def value(self, name: str, dtype: Any, shape: list[int | None]) -> Any:
        kind = (
            self.onnx.TensorProto.STRING if dtype is str else self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        )
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)


def _classification(graph: _Graph, model: Model) -> list[Any]:
    assert model.classes is not None
    k = len(model.classes)
    if k == 2:
        graph.constant("zero", np.zeros(1))
        graph.node("Greater", ["scores", "zero"], "positive")
        graph.node("Cast", ["positive"], "class_column", to=graph.onnx.TensorProto.INT64)
        graph.constant("column", np.array([1]))
        graph.node("Squeeze", ["class_column", "column"], "class_index")
    else:
        graph.node("ArgMax", ["scores"], "class_index", axis=1, keepdims=0)
    classes, kind = model.classes, str
    if classes.dtype.kind == "f":
        whole = not (classes % 1).any()
        classes, kind = (classes.astype(np.int64), np.int64) if whole else (classes, np.float64)  # type: ignore[assignment]
    graph.constant("classes", classes)
    graph.node("Gather", ["classes", "class_index"], "label")
    outputs = [graph.value("label", kind, [None]), graph.value("scores", np.float64, [None, model.coef.shape[0]])]
    if model.objective.loss == "logistic":
        graph.node("Sigmoid", ["scores"], "positives")
        if k == 2:
            graph.constant("one", np.ones(1))
            graph.node("Sub", ["one", "positives"], "negatives")
            graph.node("Concat", ["negatives", "positives"], "probabilities", axis=1)
        else:
            graph.constant("columns", np.array([1]))
            graph.node("ReduceSum", ["positives", "columns"], "totals", keepdims=1)
            graph.node("Div", ["positives", "totals"], "probabilities")
        outputs.append(graph.value("probabilities", np.float64, [None, k]))
    return outputs
