"""Eight rows of numbers become lines of eight, on vector registers.

Number by number, a transposition costs a load and a store for each; a block of eight times eight takes eight loads, twenty-four
shuffles and eight stores.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ._jit import device

AT_ONCE = 8  # rows; numbers in the widest register, and in a cache line
_HALF = AT_ONCE // 2
# Which numbers of two vectors make up a new one: every other one of both, every other pair, and halves.
_EVEN, _ODD = (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)
_EVEN_PAIRS, _ODD_PAIRS = (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)
_FRONTS, _BACKS = (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)


@device
def may_be_read_beyond(X: Any, i: int) -> bool:
    """Whether to read row i, and on until the numbers are a multiple of eight, stays within X."""
    n, d = X.shape
    return i * d + -(-d // AT_ONCE) * AT_ONCE <= n * d


@device
def transpose_eight(X: Any, rows: Any, out: Any, k: int) -> None:
    """out[:, k : k + 8] = X[rows].T in double precision, of eight rows, all of which `may_be_read_beyond`."""
    d = X.shape[1]
    width, line = d * X.itemsize, out.shape[1] * out.itemsize
    j = 0
    while j < d:
        begin, to = X.ctypes.data + j * X.itemsize, out.ctypes.data + j * line + k * out.itemsize
        if d - j > _HALF:
            _eight_columns(X, begin, rows, width, to, line, d - j)
            j += AT_ONCE
        else:
            _four_columns(X, begin, rows, width, to, line, d - j)
            j += _HALF


def _columns(at_once: int) -> Any:
    """Return the function that turns so many columns of eight rows into lines, of which it writes the first `lines`."""

    @intrinsic
    def columns(typing_context: Any, X: Any, begin: Any, rows: Any, width: Any, to: Any, line: Any, lines: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            _, begin, rows, width, to, line, lines = given
            number = context.get_value_type(X.dtype)
            read = []
            for k in range(AT_ONCE):
                where = builder.add(begin, builder.mul(builder.extract_value(rows, k), width))
                pointer = builder.inttoptr(where, ir.VectorType(number, at_once).as_pointer())
                vector = builder.load(pointer, align=context.get_abi_sizeof(number))
                if X.dtype != types.float64:
                    vector = builder.fpext(vector, ir.VectorType(ir.DoubleType(), at_once))
                read.append(vector)
            for k, vector in enumerate(_transposed(builder, read)):
                with builder.if_then(builder.icmp_signed(">", lines, lines.type(k)), likely=True):
                    pointer = builder.inttoptr(
                        builder.add(to, builder.mul(line, line.type(k))), vector.type.as_pointer()
                    )
                    builder.store(vector, pointer, align=8)
            return context.get_dummy_value()

        whole = types.intp
        return types.void(X, whole, types.UniTuple(whole, AT_ONCE), whole, whole, whole, whole), generate

    return columns


_eight_columns, _four_columns = _columns(AT_ONCE), _columns(_HALF)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Transpose eight vectors of eight numbers, or of four."""

    def mixed(one: Any, other: Any, order: tuple[int, ...]) -> Any:
        return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), len(order)), order))

    def all_mixed(vectors: list[Any], order: tuple[int, ...]) -> list[Any]:
        return [mixed(vectors[k], vectors[k + 1], order) for k in range(0, len(vectors), 2)]

    is_short = rows[0].type.count == _HALF
    if is_short:  # row k and row k + 4 share a vector
        rows = [mixed(rows[k], rows[k + _HALF], tuple(range(AT_ONCE))) for k in range(_HALF)]
    # Each vector of a quarter holds columns j and j + 4 of four rows; of short rows, column j of all eight.
    quarters = [
        all_mixed(all_mixed(rows, which), pairs) for pairs in (_EVEN_PAIRS, _ODD_PAIRS) for which in (_EVEN, _ODD)
    ]
    if is_short:
        return [quarter[0] for quarter in quarters]
    return [all_mixed(quarter, half)[0] for half in (_FRONTS, _BACKS) for quarter in quarters]
