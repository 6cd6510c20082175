"""Dense rows with few columns, a tile at a time: some rows, transposed, in the cache.

A row of nine numbers fills one vector register and a bit. The lines of a tile, one a column, are long: what is done with all
rows alike (sums, sums of outer products) runs along them on full registers. To transpose costs little more than to read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jit import device
from .vector_math import dot

# Bytes: a tile that is small in any case stays in the first-level cache. Otherwise long lines are worth more (sums along short
# ones have too many ends), up to what the second level holds.
_NEAR_BYTES, _FAR_BYTES = 3 << 13, 3 << 16
_LANES = 8  # numbers in the widest register
_LONG, _MOST = 384, 1024  # rows


@device
def empty_tile(d: int) -> Any:
    """Return room for a tile. Its lines are a bit longer than needed: a power of two apart they would share cache sets."""
    rows = min(max(_NEAR_BYTES // (8 * d), min(_LONG, _FAR_BYTES // (8 * d))), _MOST)
    return np.empty((d, max(rows // _LANES, 2) * _LANES + _LANES))


@device
def rows_of(tile: Any) -> int:
    """How many rows a tile has room for."""
    return int(tile.shape[1] - _LANES)


@device
def fill_tile(X: Any, first: int, last: int, tile: Any) -> None:
    """Put some rows of X into a tile, in double precision."""
    for i in range(first, last):
        for j in range(X.shape[1]):
            tile[j, i - first] = X[i, j]


@device
def fill_tile_with(X: Any, chosen: Any, tile: Any) -> None:
    """The same of rows that are not next to each other."""
    for k in range(chosen.size):
        for j in range(X.shape[1]):
            tile[j, k] = X[chosen[k], j]


@device
def scale_tile(tile: Any, factors: Any) -> None:
    """x_i *= factor_i."""
    for j in range(tile.shape[0]):
        line = tile[j]
        for i in range(factors.size):
            line[i] *= factors[i]


@device
def add_tile(tile: Any, factors: Any, out: Any) -> None:
    """out += Σ factor_i x_i."""
    for j in range(tile.shape[0]):
        out[j] += dot(tile[j], factors, factors.size)


@device
def add_tile_products(tile: Any, count: int, out: Any) -> None:
    """out += Σ x_i x_iᵀ over the first rows of a tile, the upper triangle.

    Two lines with four others at a time: eight products for six numbers that are loaded.
    """
    d = tile.shape[0]
    j = 0
    while j + 2 <= d:
        a, b = tile[j], tile[j + 1]
        k = j
        while k + 4 <= d:
            ap, aq, ar, as_, bp, bq, br, bs = _two_by_four(a, b, tile[k], tile[k + 1], tile[k + 2], tile[k + 3], count)
            out[j, k] += ap
            out[j, k + 1] += aq
            out[j, k + 2] += ar
            out[j, k + 3] += as_
            out[j + 1, k] += bp
            out[j + 1, k + 1] += bq
            out[j + 1, k + 2] += br
            out[j + 1, k + 3] += bs
            k += 4
        if k + 2 <= d:
            ap, aq, bp, bq = _two_by_two(a, b, tile[k], tile[k + 1], count)
            out[j, k] += ap
            out[j, k + 1] += aq
            out[j + 1, k] += bp
            out[j + 1, k + 1] += bq
            k += 2
        if k < d:
            out[j, k] += dot(a, tile[k], count)
            out[j + 1, k] += dot(b, tile[k], count)
        j += 2
    if j < d:
        out[j, j] += dot(tile[j], tile[j], count)


@device(reassociate=True)
def _two_by_two(a: Any, b: Any, p: Any, q: Any, count: int) -> tuple[float, ...]:
    ap = aq = bp = bq = 0.0
    for i in range(count):
        ap += a[i] * p[i]
        aq += a[i] * q[i]
        bp += b[i] * p[i]
        bq += b[i] * q[i]
    return ap, aq, bp, bq


@device(reassociate=True)
def _two_by_four(a: Any, b: Any, p: Any, q: Any, r: Any, s: Any, count: int) -> tuple[float, ...]:
    ap = aq = ar = as_ = bp = bq = br = bs = 0.0
    for i in range(count):
        ap += a[i] * p[i]
        aq += a[i] * q[i]
        ar += a[i] * r[i]
        as_ += a[i] * s[i]
        bp += b[i] * p[i]
        bq += b[i] * q[i]
        br += b[i] * r[i]
        bs += b[i] * s[i]
    return ap, aq, ar, as_, bp, bq, br, bs
