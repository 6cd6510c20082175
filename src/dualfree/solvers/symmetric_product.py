"""BLAS's product of a matrix with its own transpose, called from kernels.

numpy has no such product that adds to a matrix. A kernel gets the address of the routine that scipy uses: it is another one
in each process, so it must not be part of machine code that is kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from .._jit import device


@cache
def dsyrk_address() -> int:
    """Where BLAS's routine is."""
    return int(get_cython_function_address("scipy.linalg.cython_blas", "dsyrk"))


@device
def add_square(dsyrk: int, block: Any, total: Any) -> None:
    """total += blockᵀ block, the upper triangle; `total` may have more rows and columns than the product, which are left alone.

    What is the upper triangle row by row is the lower one of the transpose column by column, which is how BLAS sees it.
    """
    k, d = block.shape
    if block.strides != (8 * d, 8) or total.strides != (8 * total.shape[1], 8) or min(total.shape) < d:
        raise ValueError(
            "block and total must be in C order and hold double precision numbers, and total be large enough."
        )
    _dsyrk(dsyrk, d, k, block.ctypes.data, total.ctypes.data, total.shape[1])


@intrinsic
def _dsyrk(typing_context: Any, address: Any, d: Any, k: Any, block: Any, total: Any, width: Any) -> Any:
    """Call the routine. All that it takes is a pointer; what a kernel would point to is freed before, so it is kept here."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        address, d, k, block, total, width = given
        byte, number, pointer = ir.IntType(8), ir.IntType(32), ir.IntType(8).as_pointer()

        def kept(value: Any) -> Any:
            return builder.bitcast(cgutils.alloca_once_value(builder, value), pointer)

        lower, as_it_is, one = kept(byte(ord("L"))), kept(byte(ord("N"))), kept(ir.DoubleType()(1.0))
        columns, rows, apart = (kept(builder.trunc(size, number)) for size in (d, k, width))
        block, total = (builder.inttoptr(where, pointer) for where in (block, total))
        arguments = [lower, as_it_is, columns, rows, one, block, columns, one, total, apart]
        kind = ir.FunctionType(ir.VoidType(), [pointer] * len(arguments))
        builder.call(builder.inttoptr(address, kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64, types.int64, types.int64), generate
