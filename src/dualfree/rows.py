"""One view of the rows x_i of X, whatever holds them.

A kernel receives ``rows``, a tuple of arrays: ``(X,)`` for a dense C-order matrix, ``(data, indices, indptr)`` for CSR, and
``(indices, indptr)`` for CSR whose entries are all 1: one-hot columns and sets of words, where the values need not be read.
The functions below are resolved by numba from the tuple's type while a kernel compiles, so that one kernel source
serves dense and sparse, float32 and float64, 32- and 64-bit indices, and pays nothing for it at run time.

Costs: `row_dot` and `row_add` are O(nnz_i). Every sum is kept in float64, whatever the data are.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from ._jit import REASSOCIATE, device, kernel

Rows = tuple[Any, ...]

# Part of the kernel that calls them: a call would hand over a dozen numbers for each array, and costs as much as a short row.
_PLAIN = {"error_model": "numpy", "nogil": True, "forceinline": True}
_FAST = _PLAIN | {"fastmath": set(REASSOCIATE)}
_IN_ORDER = _PLAIN | {"fastmath": {"contract"}}
# Numbers in a dense row, above which two of them and w do not stay near enough to be gone through at the same time.
_LONG = 1 << 13
_SHORT = 40  # entries of a sparse row, below which they are best gone through one by one
_LINE = 64  # bytes of a cache line
_HEAD, _SPARSE_HEAD = 128, 16  # entries of a row that are asked for beforehand: dense, and sparse ones
# Sparse rows of more than so many bytes are asked for as a whole; of values and of indices up to so many.
_MEDIUM, _WHOLE = 256, 4096
_FETCHED = 1 << 16  # numbers: more do not fit in a second-level cache, with what else is needed
_SOME = 2048  # entries, looked at together for a value other than 1
# A sparse matrix has few zeros where this part of its entries is stored: with few columns, with more.
_FULL, _FEW_COLUMNS = (0.4, 0.6), 100
_SMALL, _LARGE = 1 << 13, 1 << 26  # entries: less is not worth it, more would take too much memory
# Numbers in a dense row, from which on four of them at a time are quicker than one: w no longer stays in the nearest cache.
_BY_FOUR = 400
TOGETHER = 64  # rows that stay in the first-level cache between two uses


class Kind(IntEnum):
    """How rows are held; the value is the number of arrays."""

    DENSE = 1
    ONES = 2
    VALUES = 3


_KINDS = tuple(Kind)  # a look-up here takes a tenth of the time of Kind(…), and small fits ask two dozen times


def kind_of(rows: Rows) -> Kind:
    """Return how rows are held."""
    return _KINDS[len(rows) - 1]


def number_type(n: int) -> type:
    """Return the type of row numbers: without a sign, so that no kernel asks whether one counts from the end."""
    return np.uint32 if n < 2**32 else np.int64


def is_dense(rows: Any) -> bool:
    """Whether numba's type of `rows` is that of a dense matrix."""
    return isinstance(rows, types.BaseTuple) and len(rows) == Kind.DENSE


def _is_ones(rows: Any) -> bool:
    return isinstance(rows, types.BaseTuple) and len(rows) == Kind.ONES


# --- pieces that kernels call -----------------------------------------------------------------------------------------


def row_count(rows: Rows) -> int:
    """Return n."""
    raise NotImplementedError("compiled code only")


def rows_between(rows: Rows, which: slice) -> Rows:
    """Return the view of consecutive rows."""
    raise NotImplementedError("compiled code only")


def row_length(rows: Rows, i: int) -> int:
    """Return the number of stored entries of x_i."""
    raise NotImplementedError("compiled code only")


def row_value(rows: Rows, position: Any) -> float:
    """Return a stored entry of sparse rows."""
    raise NotImplementedError("compiled code only")


def row_dot(rows: Rows, i: int, w: Any) -> float:
    """Return x_i · w."""
    raise NotImplementedError("compiled code only")


def row_add(rows: Rows, i: int, scale: float, w: Any) -> None:
    """w += scale · x_i."""
    raise NotImplementedError("compiled code only")


def adds_and_multiplies_at_once(rows: Rows) -> bool:
    """Whether `row_add_then_dot` is one pass over w; known when a kernel is compiled."""
    raise NotImplementedError("compiled code only")


def row_add_then_dot(rows: Rows, i: int, scale: float, j: int, w: Any) -> float:
    """w += scale · x_i; return x_j · w."""
    raise NotImplementedError("compiled code only")


def rows_add(rows: Rows, factors: Any, first: int, last: int, w: Any) -> None:
    """w += Σ factor_i x_i over first ≤ i < last."""
    raise NotImplementedError("compiled code only")


def rows_dot(rows: Rows, first: int, last: int, w: Any, z: Any) -> None:
    """z_i = x_i · w over first ≤ i < last."""
    raise NotImplementedError("compiled code only")


def rows_add_products(rows: Rows, factors: Any, w: Any, constant: float, out: Any) -> float:
    """out += Σ t_i x_i with t_i = factor_i (x_i · w + constant); factors are not negative. Return Σ t_i."""
    raise NotImplementedError("compiled code only")


def row_add_squares(rows: Rows, i: int, scale: float, out: Any) -> None:
    """out += scale · x_i², entry by entry."""
    raise NotImplementedError("compiled code only")


def row_add_with_squares(rows: Rows, i: int, scale: float, scale_of_squares: float, out: Any) -> None:
    """out += scale · x_i and scale_of_squares · x_i², in turn: of each column the one and then the other."""
    raise NotImplementedError("compiled code only")


def row_outer_add(rows: Rows, i: int, scale: float, matrix: Any) -> None:
    """matrix += scale · x_i x_iᵀ, upper triangle only; the indices of a sparse row must be sorted."""
    raise NotImplementedError("compiled code only")


def row_prefetch(rows: Rows, i: int) -> None:
    """Ask the memory for x_i, which is needed soon: for the beginning of a dense row, which the processor follows by itself."""
    raise NotImplementedError("compiled code only")


@overload(row_count, strict=False, jit_options=_PLAIN)
def _row_count(rows: Any) -> Any:
    if is_dense(rows):
        return lambda rows: rows[0].shape[0]
    return lambda rows: rows[-1].size - 1


@overload(rows_between, strict=False, jit_options=_PLAIN)
def _rows_between(rows: Any, which: Any) -> Any:
    if is_dense(rows):
        return lambda rows, which: (rows[0][which],)
    if _is_ones(rows):
        return lambda rows, which: (rows[0], rows[1][which.start : which.stop + 1])
    return lambda rows, which: (rows[0], rows[1], rows[2][which.start : which.stop + 1])


@overload(row_length, strict=False, jit_options=_PLAIN)
def _row_length(rows: Any, i: Any) -> Any:
    if is_dense(rows):
        return lambda rows, i: rows[0].shape[1]
    return lambda rows, i: np.int64(rows[-1][i + 1] - rows[-1][i])


@overload(row_value, strict=False, jit_options=_PLAIN)
def _row_value(rows: Any, position: Any) -> Any:
    if _is_ones(rows):
        return lambda rows, position: 1.0
    return lambda rows, position: rows[0][position]


def _prefetch_to(level: int) -> Any:
    """Return what fetches the cache line at an address, to be read, into the cache of this level."""

    @intrinsic
    def prefetch(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            declared = builder.module.declare_intrinsic(
                "llvm.prefetch", (pointer,), ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
            )
            to_read, keep, data = number(0), number(4 - level), number(1)
            builder.call(declared, [builder.inttoptr(arguments[0], pointer), to_read, keep, data])
            return context.get_dummy_value()

        return types.void(types.uintp), generate

    return prefetch


_prefetch, _prefetch_to_second = _prefetch_to(1), _prefetch_to(2)


@device(inline=True)
def prefetch_item(array: Any, i: int) -> None:
    """Ask the memory for array[i], which is needed soon."""
    _prefetch(np.uintp(array.ctypes.data + np.int64(i) * array.itemsize))


@device
def fetch(vector: Any) -> None:
    """Fetch a vector that another thread may have written, in order, before its numbers are asked for in any.

    Where two processors have no cache in common, each of its cache lines takes a quarter of a microsecond to come over, but
    many are under way at a time.
    """
    if vector.size <= _FETCHED:
        fetch_part(vector, 0, vector.size)


@device
def fetch_part(vector: Any, begin: int, end: int) -> None:
    """Fetch some of its numbers; of places beyond its end there are none."""
    address = vector.ctypes.data + begin * vector.itemsize
    last = vector.ctypes.data + min(end, vector.size) * vector.itemsize
    while address < last:
        _prefetch_to_second(np.uintp(address))
        address += _LINE


@device(inline=True)
def _prefetch_entries(array: Any, first: Any, number: Any, whole: bool) -> None:
    """Fetch the values or the indices of a sparse row that is needed soon.

    Of a short row the first cache line or two. A longer one comes as a whole, into the second-level cache: there it does not
    drive out what the visits before it use, and nobody waits until the processor finds out by itself that it goes on.
    """
    begin = array.ctypes.data + np.int64(first) * array.itemsize
    if whole:
        for address in range(begin, begin + min(number * array.itemsize, _WHOLE), _LINE):
            _prefetch_to_second(np.uintp(address))
    else:
        for address in range(begin, begin + min(number, _SPARSE_HEAD) * array.itemsize, _LINE):
            _prefetch(np.uintp(address))


@overload(row_prefetch, strict=False, jit_options=_PLAIN)
def _row_prefetch(rows: Any, i: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any) -> Any:
            d = rows[0].shape[1]
            begin = rows[0].ctypes.data + np.int64(i) * d * rows[0].itemsize
            for address in range(begin, begin + min(d, _HEAD) * rows[0].itemsize, _LINE):
                _prefetch(np.uintp(address))

        return dense

    if _is_ones(rows):

        def ones(rows: Any, i: Any) -> Any:
            indices, indptr = rows
            number = row_length(rows, i)
            _prefetch_entries(indices, indptr[i], number, number * indices.itemsize > _MEDIUM)

        return ones

    def sparse(rows: Any, i: Any) -> Any:
        data, indices, indptr = rows
        number = row_length(rows, i)
        whole = number * (data.itemsize + indices.itemsize) > _MEDIUM
        _prefetch_entries(data, indptr[i], number, whole)
        _prefetch_entries(indices, indptr[i], number, whole)

    return sparse


def _one_by_one(rows: Rows, i: int, w: Any) -> float:
    """x_i · w of a short sparse row, without a gather: that would wait until what was just added to w has reached the cache."""
    raise NotImplementedError("compiled code only")


def _gathered(rows: Rows, i: int, w: Any) -> float:
    """x_i · w of any other row, on vector registers."""
    raise NotImplementedError("compiled code only")


@overload(_one_by_one, strict=False, jit_options=_IN_ORDER)
def _row_dot_one_by_one(rows: Any, i: Any, w: Any) -> Any:
    def sparse(rows: Any, i: Any, w: Any) -> Any:
        indices = rows[-2]
        k, end = np.int64(rows[-1][i]), np.int64(rows[-1][i + 1])
        a, b, c, d = 0.0, 0.0, 0.0, 0.0  # four sums: each addition has to wait for the one before
        while k + 4 <= end:
            a += row_value(rows, k) * w[indices[k]]
            b += row_value(rows, k + 1) * w[indices[k + 1]]
            c += row_value(rows, k + 2) * w[indices[k + 2]]
            d += row_value(rows, k + 3) * w[indices[k + 3]]
            k += 4
        while k < end:
            a += row_value(rows, k) * w[indices[k]]
            k += 1
        return (a + b) + (c + d)

    return sparse


@overload(_gathered, strict=False, jit_options=_FAST)
def _row_dot_gathered(rows: Any, i: Any, w: Any) -> Any:
    def sparse(rows: Any, i: Any, w: Any) -> Any:
        indices = rows[-2]
        total = 0.0
        for k in range(rows[-1][i], rows[-1][i + 1]):
            total += row_value(rows, k) * w[indices[k]]
        return total

    return sparse


@overload(row_dot, strict=False, jit_options=_FAST)
def _row_dot(rows: Any, i: Any, w: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any, w: Any) -> Any:
            X = rows[0]
            total = 0.0
            for j in range(X.shape[1]):
                total += X[i, j] * w[j]
            return total

        return dense

    def sparse(rows: Any, i: Any, w: Any) -> Any:
        if row_length(rows, i) < _SHORT:
            return _one_by_one(rows, i, w)
        return _gathered(rows, i, w)

    return sparse


@overload(row_add, strict=False, jit_options=_FAST)
def _row_add(rows: Any, i: Any, scale: Any, w: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any, scale: Any, w: Any) -> Any:
            X = rows[0]
            for j in range(X.shape[1]):
                w[j] += scale * X[i, j]

        return dense

    if _is_ones(rows):

        def ones(rows: Any, i: Any, scale: Any, w: Any) -> Any:
            indices, indptr = rows
            for k in range(indptr[i], indptr[i + 1]):
                w[indices[k]] += scale

        return ones

    def sparse(rows: Any, i: Any, scale: Any, w: Any) -> Any:
        data, indices, indptr = rows
        for k in range(indptr[i], indptr[i + 1]):
            w[indices[k]] += scale * data[k]

    return sparse


@overload(adds_and_multiplies_at_once, strict=False, jit_options=_PLAIN)
def _adds_and_multiplies_at_once(rows: Any) -> Any:
    if is_dense(rows):
        return lambda rows: True
    return lambda rows: False


@overload(row_add_then_dot, strict=False, jit_options=_FAST)
def _row_add_then_dot(rows: Any, i: Any, scale: Any, j: Any, w: Any) -> Any:
    def one_after_the_other(rows: Any, i: Any, scale: Any, j: Any, w: Any) -> Any:
        row_add(rows, i, scale, w)
        return row_dot(rows, j, w)

    if not is_dense(rows):
        return one_after_the_other

    def at_once(rows: Any, i: Any, scale: Any, j: Any, w: Any) -> Any:
        if w.size > _LONG or scale == 0.0:
            if scale != 0.0:
                row_add(rows, i, scale, w)
            return row_dot(rows, j, w)
        X = rows[0]
        total = 0.0
        for k in range(w.size):
            moved = w[k] + scale * X[i, k]
            w[k] = moved
            total += moved * X[j, k]
        return total

    return at_once


@overload(rows_add, strict=False, jit_options=_FAST)
def _rows_add(rows: Any, factors: Any, first: Any, last: Any, w: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, factors: Any, first: Any, last: Any, w: Any) -> Any:
            X = rows[0]
            i = first
            while i + 4 <= last:  # w is loaded and stored once for four rows
                a, b, c, d = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
                for j in range(w.size):
                    w[j] += (a * X[i, j] + b * X[i + 1, j]) + (c * X[i + 2, j] + d * X[i + 3, j])
                i += 4
            while i < last:
                for j in range(w.size):
                    w[j] += factors[i] * X[i, j]
                i += 1

        return dense

    def sparse(rows: Any, factors: Any, first: Any, last: Any, w: Any) -> Any:
        for i in range(first, last):
            if factors[i] != 0.0:
                row_add(rows, i, factors[i], w)

    return sparse


@overload(rows_dot, strict=False, jit_options=_FAST)
def _rows_dot(rows: Any, first: Any, last: Any, w: Any, z: Any) -> Any:
    def one_by_one(rows: Any, first: Any, last: Any, w: Any, z: Any) -> Any:
        for i in range(first, last):
            z[i] = row_dot(rows, i, w)

    if not is_dense(rows):
        return one_by_one

    def dense(rows: Any, first: Any, last: Any, w: Any, z: Any) -> Any:
        i = first
        if rows[0].shape[1] >= _BY_FOUR:
            while i + 4 <= last:
                z[i], z[i + 1], z[i + 2], z[i + 3] = _four_dots(rows[0], i, i + 1, i + 2, i + 3, w)
                i += 4
        while i < last:
            z[i] = row_dot(rows, i, w)
            i += 1

    return dense


@device(reassociate=True)
def _four_dots(X: Any, i: int, j: int, k: int, m: int, w: Any) -> tuple[float, float, float, float]:
    """Four dense rows times w, which is loaded once for all of them."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for column in range(X.shape[1]):
        here = w[column]
        a += X[i, column] * here
        b += X[j, column] * here
        c += X[k, column] * here
        d += X[m, column] * here
    return a, b, c, d


@device(reassociate=True)
def _add_four(X: Any, i: int, j: int, k: int, m: int, a: float, b: float, c: float, d: float, out: Any) -> None:
    """out += a, b, c and d times four dense rows."""
    for column in range(X.shape[1]):
        out[column] += (a * X[i, column] + b * X[j, column]) + (c * X[k, column] + d * X[m, column])


@device
def _add_each_product(rows: Any, factors: Any, w: Any, constant: float, out: Any) -> float:
    total = 0.0
    for i in range(factors.size):
        if factors[i] > 0.0:
            t = factors[i] * (row_dot(rows, i, w) + constant)
            row_add(rows, i, t, out)
            total += t
    return total


@overload(rows_add_products, strict=False, jit_options=_FAST)
def _rows_add_products(rows: Any, factors: Any, w: Any, constant: Any, out: Any) -> Any:
    if not is_dense(rows):
        return lambda rows, factors, w, constant, out: _add_each_product(rows, factors, w, constant, out)

    def dense(rows: Any, factors: Any, w: Any, constant: Any, out: Any) -> Any:
        X = rows[0]
        if X.shape[1] < _BY_FOUR:
            return _add_each_product(rows, factors, w, constant, out)
        chosen, total = np.empty(4, dtype=np.uint64), 0.0
        used = 0
        for row in range(factors.size):
            chosen[used] = row
            used += factors[row] > 0.0
            if used == 4:
                used = 0
                i, j, k, m = chosen[0], chosen[1], chosen[2], chosen[3]
                a, b, c, d = _four_dots(X, i, j, k, m, w)
                a, b = factors[i] * (a + constant), factors[j] * (b + constant)
                c, d = factors[k] * (c + constant), factors[m] * (d + constant)
                _add_four(X, i, j, k, m, a, b, c, d, out)
                total += (a + b) + (c + d)
        for place in range(used):
            i = chosen[place]
            t = factors[i] * (row_dot(rows, i, w) + constant)
            row_add(rows, i, t, out)
            total += t
        return total

    return dense


@overload(row_add_squares, strict=False, jit_options=_FAST)
def _row_add_squares(rows: Any, i: Any, scale: Any, out: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any, scale: Any, out: Any) -> Any:
            X = rows[0]
            for j in range(X.shape[1]):
                out[j] += scale * X[i, j] * X[i, j]

        return dense

    if _is_ones(rows):
        return lambda rows, i, scale, out: row_add(rows, i, scale, out)

    def sparse(rows: Any, i: Any, scale: Any, out: Any) -> Any:
        data, indices, indptr = rows
        for k in range(indptr[i], indptr[i + 1]):
            out[indices[k]] += scale * data[k] * data[k]

    return sparse


@overload(row_add_with_squares, strict=False, jit_options=_FAST)
def _row_add_with_squares(rows: Any, i: Any, scale: Any, scale_of_squares: Any, out: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any, scale: Any, scale_of_squares: Any, out: Any) -> Any:
            X = rows[0]
            for j in range(X.shape[1]):
                value = X[i, j]
                out[2 * j] += scale * value
                out[2 * j + 1] += scale_of_squares * value * value

        return dense

    def sparse(rows: Any, i: Any, scale: Any, scale_of_squares: Any, out: Any) -> Any:
        indices, indptr = rows[-2], rows[-1]
        for k in range(indptr[i], indptr[i + 1]):
            value, j = row_value(rows, k), 2 * indices[k]
            out[j] += scale * value
            out[j + 1] += scale_of_squares * value * value

    return sparse


@overload(row_outer_add, strict=False, jit_options=_FAST)
def _row_outer_add(rows: Any, i: Any, scale: Any, matrix: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any, scale: Any, matrix: Any) -> Any:
            X = rows[0]
            for j in range(X.shape[1]):
                factor = scale * X[i, j]
                for k in range(j, X.shape[1]):
                    matrix[j, k] += factor * X[i, k]

        return dense

    if _is_ones(rows):

        def ones(rows: Any, i: Any, scale: Any, matrix: Any) -> Any:
            indices, indptr = rows
            for first in range(indptr[i], indptr[i + 1]):
                column = indices[first]
                for k in range(first, indptr[i + 1]):
                    matrix[column, indices[k]] += scale

        return ones

    def sparse(rows: Any, i: Any, scale: Any, matrix: Any) -> Any:
        data, indices, indptr = rows
        for first in range(indptr[i], indptr[i + 1]):
            factor, column = scale * data[first], indices[first]
            for k in range(first, indptr[i + 1]):
                matrix[column, indices[k]] += factor * data[k]

    return sparse


# --- kernels over all rows --------------------------------------------------------------------------------------------


@kernel
def squared_norms(rows: Rows) -> Any:
    """Return v with v_i = ‖x_i‖²."""
    n = row_count(rows)
    v = np.zeros(n)
    for i in range(n):
        v[i] = _squared_norm(rows, i)
    return v


def _squared_norm(rows: Rows, i: int) -> float:
    raise NotImplementedError("compiled code only")


@overload(_squared_norm, strict=False, jit_options=_FAST)
def _squared_norm_overload(rows: Any, i: Any) -> Any:
    if is_dense(rows):

        def dense(rows: Any, i: Any) -> Any:
            X = rows[0]
            total = 0.0
            for j in range(X.shape[1]):
                total += np.float64(X[i, j]) * np.float64(X[i, j])
            return total

        return dense

    if _is_ones(rows):
        return lambda rows, i: np.float64(row_length(rows, i))

    def sparse(rows: Any, i: Any) -> Any:
        data, _, indptr = rows
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[k]) * np.float64(data[k])
        return total

    return sparse


@kernel
def sum_of_squared_lengths(rows: Rows) -> int:
    """Return Σ nnz_i²."""
    total = 0
    for i in range(row_count(rows)):
        total += row_length(rows, i) ** 2
    return total


@kernel
def margins_into(rows: Rows, w: Any, z: Any) -> None:
    """z_i = x_i · w."""
    rows_dot(rows, 0, z.size, w, z)


@kernel
def weighted_sum_into(rows: Rows, alpha: Any, block: int, out: Any, part: Any) -> None:
    """out = Σ α_i x_i, summed `block` rows at a time; `part` is scratch.

    In two levels the rounding error is at most (block + n/block + 2) ε Σ |α_i| |x_i| instead of n ε Σ |α_i| |x_i|.
    """
    out[:] = 0.0
    part[:] = 0.0
    for first in range(0, alpha.size, block):
        rows_add(rows, alpha, first, min(first + block, alpha.size), part)
        for j in range(out.size):
            out[j] += part[j]
            part[j] = 0.0


@kernel
def margins_and_sum_into(rows: Rows, w: Any, alpha: Any, block: int, z: Any, out: Any, part: Any) -> None:
    """`margins_into` and `weighted_sum_into` in one pass: each block of rows is read once."""
    out[:] = 0.0
    part[:] = 0.0
    for first in range(0, alpha.size, block):
        last = min(first + block, alpha.size)
        for begin in range(first, last, TOGETHER):
            end = min(begin + TOGETHER, last)
            rows_dot(rows, begin, end, w, z)
            rows_add(rows, alpha, begin, end, part)
        for j in range(out.size):
            out[j] += part[j]
            part[j] = 0.0


# --- the Python side --------------------------------------------------------------------------------------------------


class _Borrowed:
    """Shows another array's memory as writable.

    Numba compiles a second version of every kernel for read-only arrays (memory maps of joblib, for instance). No kernel
    writes to the data, so a view without the flag saves that compilation.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._owner = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def borrowed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `array` itself or, where it is read-only, a view of the same memory without that flag."""
    return array if array.flags.writeable else np.asarray(_Borrowed(array))


def as_rows(X: Any) -> Rows:
    """Return the row view of a validated matrix (C-order array or CSR). Nothing is copied.

    Indices are shown as unsigned: numba then leaves out the test for negative ones, a fifth of the time of a long loop.
    """
    if isinstance(X, np.ndarray):
        return (borrowed(X),)
    return (borrowed(X.data), _unsigned(borrowed(X.indices)), _unsigned(borrowed(X.indptr)))


def filled(X: Any) -> Any:
    """Return a CSR matrix that has few zeros as a dense one, unless that is tiny or large; other matrices as they are.

    Rows that are read from one end to the other need no indices, and run on vector registers.
    """
    if isinstance(X, np.ndarray):
        return X
    n, d = X.shape
    has_few_zeros = X.nnz >= _FULL[d > _FEW_COLUMNS] * n * d
    return X.toarray() if has_few_zeros and _SMALL <= n * d <= _LARGE else X


def stored_lengths(X: Any) -> Any:
    """Return the number of stored entries of each row of a CSR matrix; one number for a dense one."""
    return X.shape[1] if isinstance(X, np.ndarray) else np.diff(X.indptr)


def without_ones(rows: Rows) -> Rows:
    """Return CSR rows without their values where those are all 1."""
    return rows[1:] if len(rows) == Kind.VALUES and _all_ones(rows[0]) else rows


@kernel
def _all_ones(values: Any) -> bool:
    for first in range(0, values.size, _SOME):  # noqa: SIM110 — in short pieces: most data say no in the first
        if _distance_from_ones(values[first : first + _SOME]) != 0.0:
            return False
    return True


@device(reassociate=True)
def _distance_from_ones(values: Any) -> float:
    total = 0.0
    for k in range(values.size):
        total += abs(values[k] - 1.0)
    return total


def _unsigned(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.view(np.uint32 if array.dtype.itemsize == 4 else np.uint64)
