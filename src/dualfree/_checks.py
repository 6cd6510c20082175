"""Checks of what a user passes in. Each error is one sentence that names the argument, the value and what to do."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

Array = np.ndarray[Any, np.dtype[Any]]

_CHUNK = 1 << 20


def real_number(name: str, value: Any, *, low: float = -math.inf, strict: bool = False, finite: bool = True) -> float:
    """Return `value` as a float; it must be a real number, at least (or, if `strict`, above) `low`."""
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        raise TypeError(f"{_wanted(name, low, strict, finite)}, got {value!r} of type {type(value).__name__}.")
    number = float(value)
    if math.isnan(number) or (finite and math.isinf(number)) or number < low or (strict and number == low):
        raise ValueError(f"{_wanted(name, low, strict, finite)}, got {value!r}.")
    return number


def _wanted(name: str, low: float, strict: bool, finite: bool) -> str:
    above = "" if low == -math.inf else f" {'>' if strict else '≥'} {low:g}"
    return f"{name} must be a{' finite' if finite else ''} number{above}"


def whole_number(name: str, value: Any, *, low: int) -> int:
    """Return `value` as an int that is at least `low`."""
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
        raise TypeError(f"{name} must be a whole number ≥ {low}, got {value!r} of type {type(value).__name__}.")
    if value < low:
        raise ValueError(f"{name} must be a whole number ≥ {low}, got {value!r}.")
    return int(value)


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """Return `value`, which must be one of the strings `known`; otherwise suggest the nearest."""
    known = list(known)
    if isinstance(value, str) and value in known:
        return value
    listed = ", ".join(repr(k) for k in known)
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {listed}, got {value!r}.")
    raise ValueError(f"{name} {value!r} is unknown.{near_match(value, known)} Known: {listed}.")


def near_match(value: str, known: Iterable[str]) -> str:
    """Return ' Did you mean …?' for the nearest known name, or nothing."""
    near = difflib.get_close_matches(value, list(known), n=1, cutoff=0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def finite_matrix(X: Any, *, names: Sequence[Any] | None = None, may_be_empty: bool = False) -> Any:
    """Return X as `row_matrix` does; it must not hold NaN or infinity. Messages call the columns by their `names`, if any."""
    matrix = row_matrix(X, may_be_empty=may_be_empty)
    refuse_not_finite(matrix, names)
    return matrix


def refuse_not_finite(matrix: Any, names: Sequence[Any] | None = None) -> None:
    """Raise, with the place of the first NaN or infinity, if there is one."""
    if isinstance(matrix, np.ndarray):
        bad = _first_not_finite(matrix.reshape(-1))
        if bad is not None:
            row, column = divmod(bad, matrix.shape[1])
            _not_finite("X", matrix[row, column], f"row {row}, column {_called(names, column)}")
        return
    bad = _first_not_finite(matrix.data)
    if bad is not None:
        row = int(np.searchsorted(matrix.indptr, bad, side="right")) - 1
        _not_finite("X", matrix.data[bad], f"row {row}, column {_called(names, int(matrix.indices[bad]))}")


def row_matrix(X: Any, *, may_be_empty: bool = False) -> Any:
    """Return X as a C-order float array or canonical CSR matrix; copied only where its form has to change.

    X needs at least one row unless it `may_be_empty`.
    """
    if scipy.sparse.issparse(X):
        matrix = X if X.format == "csr" else X.tocsr()
        if matrix.ndim != 2:
            raise ValueError(f"X must have two dimensions, got {matrix.ndim}.")
        if matrix.dtype not in (np.float32, np.float64):
            if matrix.dtype.kind not in "biuf":
                raise TypeError(f"X must hold real numbers, got dtype {matrix.dtype}.")
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            # Duplicate entries of a row would make its norm wrong; ‖x_i‖² decides the step sizes.
            matrix = matrix.copy()
            matrix.sum_duplicates()
    else:
        matrix = _real_array("X", X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if matrix.ndim != 2:
            raise ValueError(
                f"X must have two dimensions (rows are samples), got shape {matrix.shape}. "
                "Reshape one sample with X.reshape(1, -1), one feature with X.reshape(-1, 1)."
            )
        matrix = np.ascontiguousarray(matrix)
    n, d = matrix.shape
    if d == 0 or (n == 0 and not may_be_empty):
        raise ValueError(f"X must have at least one row and one column, got shape {matrix.shape}.")
    return matrix


def finite_vector(name: str, values: Any, length: int | None = None) -> Array:
    """Return `values` as a contiguous float64 vector of that length without NaN or infinity."""
    vector = _real_array(name, values)
    if vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {vector.shape}.")
    if length is not None and vector.size != length:
        raise ValueError(f"{name} must have one entry per row of X ({length}), got {vector.size}.")
    vector = np.ascontiguousarray(vector, dtype=np.float64)
    bad = _first_not_finite(vector)
    if bad is not None:
        _not_finite(name, vector[bad], f"row {bad}")
    return vector


def sample_weights(given: Any, length: int) -> Array:
    """Return the weights s_i ≥ 0 of `length` rows, at least one of them positive; ones where none are given."""
    if given is None:
        return np.ones(length)
    weights = non_negative_vector("sample_weight", given, length)
    if not weights.any():
        raise ValueError("sample_weight must have at least one positive entry, all are zero.")
    return weights


def non_negative_vector(name: str, values: Any, length: int) -> Array:
    """Return `values` as a contiguous float64 vector of that length, finite and without negative entries."""
    vector = finite_vector(name, values, length)
    if vector.min(initial=0.0) < 0:
        row = int(np.argmin(vector))
        raise ValueError(f"{name} must not be negative, got {vector[row]:g} in row {row}.")
    return vector


def plain_array(name: str, values: Any) -> Array:
    """Return `values` as an array; entries that a mask hides would come back, so there must be none."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries. Remove or impute them first.")
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def _real_array(name: str, values: Any) -> Array:
    """Return `values` as an array of numbers; text and objects are converted where each entry is a number."""
    array = plain_array(name, values)
    if array.dtype.kind in "OUS":
        try:
            return array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}: {error}.") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    return array


def _called(names: Sequence[Any] | None, column: int) -> str:
    return str(column) if names is None else repr(names[column])


def _first_not_finite(values: Array) -> int | None:
    """Return the position of the first NaN or infinity; a block at a time, so that no array of flags is made."""
    for start in range(0, values.size, _CHUNK):
        block = np.isfinite(values[start : start + _CHUNK])
        if not block.all():
            return start + int(np.argmin(block))
    return None


def _not_finite(name: str, value: Any, where: str) -> None:
    kind = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(f"{name} contains {kind} ({where}). Remove or impute such entries first.")
