"""NumPy archives: ``data, indices, indptr, shape, y`` (a CSR matrix and its target) or ``X, y`` (a dense one)."""

from __future__ import annotations

import io
import lzma
import math
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
import scipy.sparse

from .._checks import Array
from .errors import DataError
from .streams import Source

_SPARSE = ("data", "indices", "indptr", "shape")
# What zipfile raises on damaged archives, its own exception being the rarest.
_BROKEN_ARCHIVE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    ValueError,
    OverflowError,
    RuntimeError,
    EOFError,
    OSError,
)
_DEFLATE_LIMIT = 1100  # deflate cannot shrink by more; a member that claims it is a trap


def read_npz(source: Source) -> tuple[Any, Array | None]:
    """Return X and y, or None where the archive holds no ``y``."""
    with source.readable():
        content = io.BytesIO(source.stream.read())
    try:
        with zipfile.ZipFile(content) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            arrays = {key: _array(archive, members[key], source.name) for key in (*_SPARSE, "X", "y") if key in members}
    except DataError:
        raise
    except _BROKEN_ARCHIVE as error:
        raise DataError(source.name, f"this is not a readable .npz archive ({error}).") from None
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2:
            raise DataError(source.name, f"X must have two dimensions, got shape {X.shape}.")
        X = _real(X, "X", source.name)
    elif all(key in arrays for key in _SPARSE):
        X = _csr(arrays, source.name)
    else:
        held = ", ".join(sorted(members)) or "nothing"
        raise DataError(source.name, f"expected the arrays {', '.join(_SPARSE)} and y, or X and y; it holds {held}.")
    y = arrays.get("y")
    if y is not None:
        if y.shape != (X.shape[0],):
            raise DataError(source.name, f"y must have one entry per row ({X.shape[0]}), got shape {y.shape}.")
        y = y if y.dtype.kind == "U" else _real(y, "y", source.name).astype(np.float64)
    return X, y


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Array:
    """Read one member, after its header has been compared with the bytes that are really there."""
    if info.file_size > _DEFLATE_LIMIT * max(1, info.compress_size):
        raise DataError(name, f"the array {info.filename!r} claims more bytes than its compressed form can hold.")
    content = io.BytesIO(archive.read(info))
    try:
        version = np.lib.format.read_magic(content)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read_header(content)
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which are never loaded")
        left = len(content.getbuffer()) - content.tell()
        if math.prod(shape) * dtype.itemsize != left or min(shape, default=0) < 0:
            raise ValueError(f"its header asks for shape {shape}, its content has {left} bytes")
        content.seek(0)
        return np.asarray(np.lib.format.read_array(content, allow_pickle=False))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise DataError(name, f"the array {info.filename!r} cannot be read: {error}.") from None


def _real(array: Array, key: str, name: str) -> Array:
    if array.dtype.kind not in "biuf":
        raise DataError(name, f"{key} must hold real numbers, got dtype {array.dtype}.")
    wanted = array.dtype if array.dtype in (np.float32, np.float64) else np.float64
    return np.ascontiguousarray(array, dtype=wanted)


def _csr(arrays: dict[str, Array], name: str) -> Any:
    shape, indptr, indices = arrays["shape"], arrays["indptr"], arrays["indices"]
    data = _real(arrays["data"], "data", name)
    for key in ("shape", "indptr", "indices"):
        if arrays[key].dtype.kind not in "iu" or arrays[key].ndim != 1:
            found = f"{arrays[key].dtype} {arrays[key].shape}"
            raise DataError(name, f"{key} must be a vector of whole numbers, got {found}.")
    if shape.shape != (2,) or shape.min() < 0 or shape.max() > 2**62:
        raise DataError(name, f"shape must be two numbers, got {shape.tolist()[:5]}.")
    n, d = int(shape[0]), int(shape[1])
    if indptr.size != n + 1 or data.ndim != 1 or data.size != indices.size:
        raise DataError(
            name,
            f"the parts do not fit together: shape {n}×{d}, {indptr.size} row pointers, {indices.size} indices, "
            f"{data.size} values.",
        )
    if indptr[0] != 0 or indptr[-1] != data.size or (indptr[1:] < indptr[:-1]).any():
        raise DataError(name, "indptr must rise from 0 to the number of values.")
    if indices.size and (indices.min() < 0 or indices.max() >= d):
        raise DataError(name, f"indices must lie between 0 and {d - 1}.")
    wide = np.int32 if max(data.size, d) < 2**31 else np.int64
    indices, indptr = indices.astype(wide, copy=False), indptr.astype(wide, copy=False)
    return scipy.sparse.csr_array((data, indices, indptr), shape=(n, d))
