"""What must be known about all partitions before a fit begins: sizes, classes, weights, and whether the data can be used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._checks import Array, finite_vector
from ..partitions import Block, RejectedBlock
from .waiting import collect

MOST_CLASSES = 1000


@dataclass(frozen=True, slots=True)
class Survey:
    """Sums over all partitions.

    Attributes
    ----------
    n_rows, n_features, nnz : int
        Rows, columns and stored entries.
    weight : float
        Σ s_i.
    classes : array or None
        The classes in sorted order; None for regression.
    class_weights : array or None
        Σ s_i over the rows of each class.
    """

    n_rows: int
    n_features: int
    nnz: int
    weight: float
    classes: Array | None
    class_weights: Array | None


def survey(client: Any, blocks: Sequence[Any], task: str, timeout: float) -> Survey:
    """Ask every block; ValueError where one of them cannot be used, naming the first.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    blocks : sequence of Future
        They give a Block or a RejectedBlock.
    task : {"classification", "regression"}
        What y must hold.
    timeout : float
        Seconds without any progress after which to give up.
    """
    asked = client.map(_describe, list(blocks), list(range(len(blocks))), task=task, pure=False, key="dualfree-survey")
    answers = collect(client, asked, "the data", timeout)
    for answer in answers:
        if isinstance(answer, str):
            raise ValueError(answer)
    filled = [answer for answer in answers if answer.n_rows > 0]
    if not filled:
        raise ValueError("X must have at least one row, all partitions are empty.")
    d = filled[0].n_features
    for answer in filled:
        if answer.n_features != d:
            raise ValueError(
                f"Partition {answer.partition} has {answer.n_features} columns, partition {filled[0].partition} has {d}."
            )
    weight = sum(answer.weight for answer in filled)
    if not weight > 0:
        raise ValueError("sample_weight must have at least one positive entry, all are zero.")
    classes = class_weights = None
    if task == "classification":
        classes, class_weights = _merged_classes(filled)
    return Survey(
        sum(answer.n_rows for answer in filled),
        d,
        sum(answer.nnz for answer in filled),
        float(weight),
        classes,
        class_weights,
    )


def _merged_classes(answers: list[_Described]) -> tuple[Array, Array]:
    kinds = {"text" if answer.classes.dtype.kind in "OUS" else "numbers": answer.partition for answer in answers}
    if len(kinds) > 1:
        raise ValueError(
            f"y must hold labels of one type: partition {kinds['text']} holds text, partition {kinds['numbers']} numbers."
        )
    classes, place = np.unique(np.concatenate([answer.classes for answer in answers]), return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            f"y must hold at least two classes, all partitions hold one class only: {classes.tolist()[0]!r}."
        )
    if classes.size > MOST_CLASSES:
        raise ValueError(_too_many(classes.size))
    return classes, np.bincount(place, weights=np.concatenate([answer.class_weights for answer in answers]))


def _too_many(count: int) -> str:
    return f"y holds {count} classes, more than {MOST_CLASSES}; for numbers, use a regression."


# --- on the workers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Described:
    partition: int
    n_rows: int
    n_features: int
    nnz: int
    weight: float
    classes: Any
    class_weights: Any


def _describe(block: Any, k: int, task: str) -> _Described | str:
    if isinstance(block, RejectedBlock):
        return block.sentence
    if not isinstance(block, Block):
        return f"Partition {k}: it must be a Block, got {type(block).__name__}."
    try:
        weights = np.ones(block.y.size) if block.sample_weight is None else block.sample_weight
        classes = totals = None
        if task == "regression":
            finite_vector("y", block.y)
        else:
            classes, totals = _classes(block.y, weights)
        n, d = block.X.shape
        nnz = int(getattr(block.X, "nnz", n * d))
        return _Described(k, n, d, nnz, float(weights.sum()), classes, totals)
    except (ValueError, TypeError) as error:
        return f"Partition {k}: {error}"


def _classes(y: Array, weights: Array) -> tuple[Array, Array]:
    if y.dtype.kind == "f":
        finite_vector("y", y)
        broken = y != np.rint(y)
        if broken.any():
            row = int(np.argmax(broken))
            raise ValueError(f"y must hold classes, got the number {y[row]:g} in row {row}.")
    elif y.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in y.tolist()], dtype=bool)
        if missing.any():
            raise ValueError(f"y has no label in row {int(np.argmax(missing))}. Remove such rows first.")
        if all(isinstance(label, str) for label in y.tolist()):
            y = y.astype(str)
    try:
        classes, place = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise TypeError(f"y must hold labels of one type that can be sorted: {error}.") from None
    if classes.size > MOST_CLASSES:
        raise ValueError(_too_many(classes.size))
    return classes, np.bincount(place, weights=weights, minlength=classes.size)
