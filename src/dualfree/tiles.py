"""Dense rows with few columns, a tile at a time: some rows, transposed, in the cache.

A row of nine numbers fills one vector register and a bit. The lines of a tile, one a column, are long: what is done with all
rows alike (sums, sums of outer products) runs along them on full registers. To transpose costs little more than to read.

No function here takes a line out of a tile: each line taken would be counted, which costs as much as a hundred products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._jit import device
from .transposition import AT_ONCE, may_be_read_beyond, transpose_eight
from .vector_math import wide_vectors

# Up to so many columns are few: more pay for a symmetric product by BLAS.
FEW_COLUMNS = 160
# Bytes: a tile that is small in any case stays in the first-level cache. Otherwise long lines are worth more (sums along short
# ones have too many ends), up to what the second level holds.
_NEAR_BYTES, _FAR_BYTES = 3 << 13, 3 << 17
_LONG, _MOST = 384, 1024  # rows


@device
def empty_tile(d: int) -> Any:
    """Return room for a tile. Its lines are a bit longer than needed: a power of two apart they would share cache sets.

    Each begins where a cache line does: a vector across the end of one would be two loads.
    """
    rows = min(max(_NEAR_BYTES // (8 * d), min(_LONG, _FAR_BYTES // (8 * d))), _MOST)
    length = max(rows // AT_ONCE, 2) * AT_ONCE + AT_ONCE
    room = np.empty(d * length + AT_ONCE)
    first = -(room.ctypes.data // 8) % AT_ONCE
    return room[first : first + d * length].reshape(d, length)


@device
def rows_of(tile: Any) -> int:
    """How many rows a tile has room for."""
    return int(tile.shape[1] - AT_ONCE)


@device
def fill_tile(X: Any, first: int, last: int, tile: Any) -> None:
    """Put some rows of X into a tile, in double precision."""
    i = first
    while i + AT_ONCE <= last and may_be_read_beyond(X, i + AT_ONCE - 1):
        transpose_eight(X, (i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7), tile, i - first)
        i += AT_ONCE
    while i < last:
        for j in range(X.shape[1]):
            tile[j, i - first] = X[i, j]
        i += 1


@device
def fill_tile_with(X: Any, chosen: Any, tile: Any) -> None:
    """The same of rows that are not next to each other, in their order."""
    k = 0
    while k + AT_ONCE <= chosen.size and may_be_read_beyond(X, np.int64(chosen[k + AT_ONCE - 1])):
        a, b, c, d = chosen[k], chosen[k + 1], chosen[k + 2], chosen[k + 3]
        e, f, g, h = chosen[k + 4], chosen[k + 5], chosen[k + 6], chosen[k + 7]
        transpose_eight(X, (a, b, c, d, e, f, g, h), tile, k)
        k += AT_ONCE
    while k < chosen.size:
        for j in range(X.shape[1]):
            tile[j, k] = X[chosen[k], j]
        k += 1


@device(contract=True)
def multiply_tile(tile: Any, w: Any, out: Any) -> None:
    """out_i = x_i · w."""
    wide_vectors()
    out[:] = 0.0
    d = tile.shape[0]
    whole = d // 4 * 4
    for j in range(0, whole, 4):
        a, b, c, e = w[j], w[j + 1], w[j + 2], w[j + 3]
        for i in range(out.size):
            out[i] += (a * tile[j, i] + b * tile[j + 1, i]) + (c * tile[j + 2, i] + e * tile[j + 3, i])
    for j in range(whole, d):
        for i in range(out.size):
            out[i] += w[j] * tile[j, i]


@device
def scale_tile(tile: Any, factors: Any) -> None:
    """x_i *= factor_i."""
    wide_vectors()
    for j in range(tile.shape[0]):
        for i in range(factors.size):
            tile[j, i] *= factors[i]


@device(reassociate=True)
def add_tile(tile: Any, factors: Any, out: Any) -> None:
    """out += Σ factor_i x_i."""
    wide_vectors()
    for j in range(tile.shape[0]):
        total = 0.0
        for i in range(factors.size):
            total += tile[j, i] * factors[i]
        out[j] += total


@device
def add_tile_products(tile: Any, count: int, out: Any) -> None:
    """out += Σ x_i x_iᵀ over the first rows of a tile, the upper triangle.

    Four lines with four others at a time: sixteen products for eight numbers that are loaded.
    """
    d = tile.shape[0]
    j = 0
    while j + 4 <= d:
        k = j
        while k + 4 <= d:
            _four_by_four(tile, j, k, count, out)
            k += 4
        if k + 2 <= d:
            _four_by_two(tile, j, k, count, out)
            k += 2
        if k < d:
            _four_by_one(tile, j, k, count, out)
        j += 4
    if j + 3 == d:
        _last_three(tile, j, count, out)
    elif j + 2 == d:
        _last_two(tile, j, count, out)
    elif j < d:
        _last_one(tile, j, count, out)


@device(reassociate=True)
def _four_by_four(tile: Any, j: int, k: int, count: int, out: Any) -> None:
    """Add the products of four lines from j on with four from k on."""
    wide_vectors()
    ap = aq = ar = as_ = bp = bq = br = bs = cp = cq = cr = cs = dp = dq = dr = ds = 0.0
    for i in range(count):
        a, b, c, d = tile[j, i], tile[j + 1, i], tile[j + 2, i], tile[j + 3, i]
        p, q, r, s = tile[k, i], tile[k + 1, i], tile[k + 2, i], tile[k + 3, i]
        ap, aq, ar, as_ = ap + a * p, aq + a * q, ar + a * r, as_ + a * s
        bp, bq, br, bs = bp + b * p, bq + b * q, br + b * r, bs + b * s
        cp, cq, cr, cs = cp + c * p, cq + c * q, cr + c * r, cs + c * s
        dp, dq, dr, ds = dp + d * p, dq + d * q, dr + d * r, ds + d * s
    _add_four(out, j, k, ap, aq, ar, as_)
    _add_four(out, j + 1, k, bp, bq, br, bs)
    _add_four(out, j + 2, k, cp, cq, cr, cs)
    _add_four(out, j + 3, k, dp, dq, dr, ds)


@device(inline=True)
def _add_four(out: Any, j: int, k: int, p: float, q: float, r: float, s: float) -> None:
    out[j, k] += p
    out[j, k + 1] += q
    out[j, k + 2] += r
    out[j, k + 3] += s


@device(reassociate=True)
def _four_by_two(tile: Any, j: int, k: int, count: int, out: Any) -> None:
    wide_vectors()
    ap = aq = bp = bq = cp = cq = dp = dq = 0.0
    for i in range(count):
        a, b, c, d = tile[j, i], tile[j + 1, i], tile[j + 2, i], tile[j + 3, i]
        p, q = tile[k, i], tile[k + 1, i]
        ap, aq, bp, bq = ap + a * p, aq + a * q, bp + b * p, bq + b * q
        cp, cq, dp, dq = cp + c * p, cq + c * q, dp + d * p, dq + d * q
    _add_down(out, j, k, ap, bp, cp, dp)
    _add_down(out, j, k + 1, aq, bq, cq, dq)


@device(reassociate=True)
def _four_by_one(tile: Any, j: int, k: int, count: int, out: Any) -> None:
    wide_vectors()
    a = b = c = d = 0.0
    for i in range(count):
        p = tile[k, i]
        a, b = a + tile[j, i] * p, b + tile[j + 1, i] * p
        c, d = c + tile[j + 2, i] * p, d + tile[j + 3, i] * p
    _add_down(out, j, k, a, b, c, d)


@device(inline=True)
def _add_down(out: Any, j: int, k: int, a: float, b: float, c: float, d: float) -> None:
    out[j, k] += a
    out[j + 1, k] += b
    out[j + 2, k] += c
    out[j + 3, k] += d


@device(reassociate=True)
def _last_three(tile: Any, j: int, count: int, out: Any) -> None:
    """Add the products of the last three lines with one another."""
    wide_vectors()
    pp = pq = pr = qq = qr = rr = 0.0
    for i in range(count):
        p, q, r = tile[j, i], tile[j + 1, i], tile[j + 2, i]
        pp, pq, pr = pp + p * p, pq + p * q, pr + p * r
        qq, qr, rr = qq + q * q, qr + q * r, rr + r * r
    out[j, j] += pp
    out[j, j + 1] += pq
    out[j, j + 2] += pr
    out[j + 1, j + 1] += qq
    out[j + 1, j + 2] += qr
    out[j + 2, j + 2] += rr


@device(reassociate=True)
def _last_two(tile: Any, j: int, count: int, out: Any) -> None:
    wide_vectors()
    pp = pq = qq = 0.0
    for i in range(count):
        p, q = tile[j, i], tile[j + 1, i]
        pp, pq, qq = pp + p * p, pq + p * q, qq + q * q
    out[j, j] += pp
    out[j, j + 1] += pq
    out[j + 1, j + 1] += qq


@device(reassociate=True)
def _last_one(tile: Any, j: int, count: int, out: Any) -> None:
    wide_vectors()
    pp = 0.0
    for i in range(count):
        pp += tile[j, i] * tile[j, i]
    out[j, j] += pp
