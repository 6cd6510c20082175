"""Predictions block by block: lazily where the samples are a dask collection."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names

from .._checks import Array
from ..distributed._dask import dask
from ..distributed.inputs import is_dask_array, is_dask_frame


def predict_blocks(local: Any, method: str, X: Any, dtype: Any, width: int | None = None) -> Any:
    """Apply a method of a fitted local estimator to every block of X.

    `width` is the number of columns of the answer, None where it has one dimension.
    """
    if not (is_dask_array(X) or is_dask_frame(X)):
        return getattr(local, method)(X)
    columns = X.shape[1] if is_dask_array(X) else len(X.columns)
    if not np.isnan(columns) and columns != local.n_features_in_:
        raise ValueError(
            f"X has {columns} features, but {type(local).__name__} is expecting {local.n_features_in_} features as input."
        )
    model = dask.delayed(local)
    meta = np.empty((0,) if width is None else (0, width), dtype=dtype)
    if is_dask_frame(X):
        _check_feature_names(local, X._meta, reset=False)
        return X.map_partitions(_predict, model, method, meta, meta=meta)
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    shape = {"drop_axis": 1} if width is None else {"chunks": (X.chunks[0], (width,))}
    return X.map_blocks(_predict, model, method, meta, dtype=dtype, meta=meta, **shape)


def _predict(rows: Any, local: Any, method: str, empty: Array) -> Array:
    return np.asarray(getattr(local, method)(rows)) if rows.shape[0] else empty
