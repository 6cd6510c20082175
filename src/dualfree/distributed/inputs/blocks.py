"""What a worker makes of one partition: a checked `Block`, or the sentence that says why it cannot be used.

The sentence travels as a value. A task that raises would fill the workers' logs with tracebacks, and the client would see
the first partition that failed rather than the first in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse

from ..._checks import finite_matrix, non_negative_vector, plain_array
from .._dask import Delayed, dask
from ..partitions import Block, RejectedBlock

BLOCK_NAME = "dualfree-block"
"""What the dashboard calls the tasks that make blocks."""


def is_lazy(values: Any) -> bool:
    """Return whether this is a dask array, series or frame.

    A Delayed has every attribute that one asks for, so it must be told apart by its type.
    """
    return bool(dask.is_dask_collection(values)) and not isinstance(values, Delayed)


def delayed_blocks(make: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return a Delayed for each tuple of arguments."""
    token = uuid4().hex
    lazy = dask.delayed(make, pure=False)
    return [lazy(*each, dask_key_name=f"{BLOCK_NAME}-{token}-{k}") for k, each in enumerate(arguments)]


def make_block(where: str, X: Any, y: Any, sample_weight: Any = None) -> Block | RejectedBlock:
    """Check one partition: `X` is a matrix, a frame, or a list of those that lie side by side."""
    try:
        names = getattr(X, "columns", None)
        matrix = finite_matrix(as_matrix(X), names=None if names is None else list(names), may_be_empty=True)
        rows = matrix.shape[0]
        labels = plain_array("y", y)
        if labels.ndim != 1:
            raise ValueError(f"y must have one dimension, got shape {labels.shape}.")
        if labels.size != rows:
            raise ValueError(f"y must have one entry per row of X ({rows}), got {labels.size}.")
        weights = None if sample_weight is None else non_negative_vector("sample_weight", sample_weight, rows)
        return Block(matrix, labels, weights)
    except (ValueError, TypeError) as error:
        return RejectedBlock(f"{where}: {error}")


def block_of_part(where: str, part: Any) -> Block | RejectedBlock:
    """Check one partition that is given as (X, y), (X, y, sample_weight) or a Block."""
    if isinstance(part, Block):
        return make_block(where, part.X, part.y, part.sample_weight)
    if isinstance(part, (tuple, list)) and len(part) in (2, 3):
        return make_block(where, *part)
    return RejectedBlock(f"{where}: it must be a tuple (X, y) or (X, y, sample_weight), got {type(part).__name__}.")


def as_matrix(X: Any) -> Any:
    """Return frames as numbers, matrices that lie side by side as one, and anything else as it is."""
    if isinstance(X, list):
        parts = [as_matrix(part) for part in X]
        if len(parts) == 1:
            return parts[0]
        return scipy.sparse.hstack(parts, format="csr") if scipy.sparse.issparse(parts[0]) else np.hstack(parts)
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        check_columns(X)
        narrow = all(dtype in (np.float32, np.float16) for dtype in X.dtypes)
        return X.to_numpy(dtype=np.float32 if narrow else np.float64, na_value=np.nan)
    return X


def check_columns(frame: Any) -> None:
    """Refuse columns that do not hold numbers; `frame` may be one of dask's, which knows its types without reading."""
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    names = list(frame.columns)
    if not names:
        raise ValueError("X has no columns.")
    for name, dtype in zip(names, frame.dtypes, strict=True):
        if names.count(name) > 1:
            raise ValueError(f"X has the column {name!r} twice; give each a name of its own.")
        if not (is_numeric_dtype(dtype) or is_bool_dtype(dtype)) or is_complex_dtype(dtype):
            raise ValueError(
                f"Column {name!r} does not hold numbers (its type is {dtype}). Encode it as numbers, with "
                "dask.dataframe.get_dummies for instance, or leave it out."
            )
