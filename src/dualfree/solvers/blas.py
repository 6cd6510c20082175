"""Routines of BLAS and LAPACK, called from kernels.

numpy has no product of a matrix with its own transpose that adds to another one, and several threads that factorise one matrix
need routines that work on parts of it, without copies. A kernel gets the addresses of those that scipy uses: they are others in
each process, so they must not be part of machine code that is kept.

A matrix here is in C order, and a symmetric one is its upper triangle. To the routines, which count by columns, that is the
lower triangle of the transpose.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from .._jit import device

_LOWER, _RIGHT, _AS_IT_IS, _TRANSPOSED = (np.uint8(ord(letter)) for letter in "LRNT")


@cache
def dsyrk_address() -> int:
    """Where BLAS's product of a matrix with its own transpose is."""
    return int(get_cython_function_address("scipy.linalg.cython_blas", "dsyrk"))


@cache
def addresses() -> tuple[int, int, int, int]:
    """Where the routines of a factorisation in blocks are: dpotrf, dtrsm, dsyrk and dgemm."""
    dtrsm, dgemm = (int(get_cython_function_address("scipy.linalg.cython_blas", name)) for name in ("dtrsm", "dgemm"))
    return int(get_cython_function_address("scipy.linalg.cython_lapack", "dpotrf")), dtrsm, dsyrk_address(), dgemm


@device
def add_square(dsyrk: int, block: Any, total: Any) -> None:
    """total += blockᵀ block, the upper triangle; `total` may have more rows and columns, which are left alone."""
    k, d = block.shape
    if block.strides != (8 * d, 8) or total.strides != (8 * total.shape[1], 8) or min(total.shape) < d:
        raise ValueError(
            "block and total must be in C order and hold double precision numbers, and total be large enough."
        )
    where, there = np.uintp(block.ctypes.data), np.uintp(total.ctypes.data)
    _call(dsyrk, (_LOWER, _AS_IT_IS, d, k, 1.0, where, d, 1.0, there, total.shape[1]))


# The others work on parts of one matrix, which begin at `first`, `middle` or `end`, on its diagonal.


@device
def factorise_block(dpotrf: int, matrix: Any, first: int, middle: int) -> bool:
    """Replace a block on the diagonal by its factor U, UᵀU being the block; return whether that went well."""
    trouble = np.zeros(1, dtype=np.int32)
    _call(
        dpotrf,
        (_LOWER, middle - first, _at(matrix, first, first), matrix.shape[1], np.uintp(trouble.ctypes.data)),
    )
    return trouble[0] == 0


@device
def divide_block(dtrsm: int, matrix: Any, first: int, middle: int, begin: int, end: int) -> None:
    """Replace columns `begin` to `end` of some rows by U⁻ᵀ times them, U being those rows' block on the diagonal."""
    width = matrix.shape[1]
    where, there = _at(matrix, first, first), _at(matrix, first, begin)
    how = (_RIGHT, _LOWER, _TRANSPOSED, _AS_IT_IS)
    _call(dtrsm, (*how, end - begin, middle - first, 1.0, where, width, there, width))


@device
def subtract_products(dsyrk: int, dgemm: int, matrix: Any, first: int, middle: int, begin: int, end: int) -> None:
    """Take Vᵀ V away from rows `begin` to `end`, V being rows `first` to `middle`: from the diagonal on."""
    width, rows, size = matrix.shape[1], middle - first, end - begin
    where = _at(matrix, first, begin)
    _call(dsyrk, (_LOWER, _AS_IT_IS, size, rows, -1.0, where, width, 1.0, _at(matrix, begin, begin), width))
    if end < width:
        more, there = _at(matrix, first, end), _at(matrix, begin, end)
        _call(
            dgemm,
            (_AS_IT_IS, _TRANSPOSED, width - end, size, rows, -1.0, more, width, where, width, 1.0, there, width),
        )


@device
def _at(matrix: Any, row: int, column: int) -> Any:
    return np.uintp(matrix.ctypes.data + 8 * (row * matrix.shape[1] + column))


@intrinsic
def _call(typing_context: Any, address: Any, arguments: Any) -> Any:
    """Call a routine. All that it takes is a pointer: addresses (unsigned) as they are, to a copy of anything else.

    What a kernel would point to is freed before, so the copies are kept here. Whole numbers have 32 bits.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()

        def pointed_to(kind: Any, value: Any) -> Any:
            if kind == types.uintp:
                return builder.inttoptr(value, pointer)
            kept = builder.trunc(value, ir.IntType(32)) if kind == types.int64 else value
            return builder.bitcast(cgutils.alloca_once_value(builder, kept), pointer)

        values = cgutils.unpack_tuple(builder, given[1])
        pointers = [pointed_to(kind, value) for kind, value in zip(arguments.types, values, strict=True)]
        kind = ir.FunctionType(ir.VoidType(), [pointer] * len(pointers))
        builder.call(builder.inttoptr(given[0], kind.as_pointer()), pointers)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), generate
