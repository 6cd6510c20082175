"""BLAS's product of a matrix with its own transpose, called from kernels.

numpy has no such product that adds to a matrix. A kernel gets the address of the routine that scipy uses: it is another one
in each process, so it must not be part of machine code that is kept.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic

from .._jit import device

_ARGUMENTS = 10


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
    lower, as_it_is = np.array([ord("L")], dtype=np.uint8), np.array([ord("N")], dtype=np.uint8)
    sizes = np.array([d, k, total.shape[1]], dtype=np.int32)
    one = np.ones(1)
    columns, rows, width = sizes.ctypes.data, sizes.ctypes.data + 4, sizes.ctypes.data + 8
    _call_blas(
        dsyrk,
        (
            lower.ctypes.data,
            as_it_is.ctypes.data,
            columns,
            rows,
            one.ctypes.data,
            block.ctypes.data,
            columns,
            one.ctypes.data,
            total.ctypes.data,
            width,
        ),
    )


@intrinsic
def _call_blas(typing_context: Any, address: Any, pointers: Any) -> Any:
    """Call a routine that takes ten pointers and returns nothing."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer] * _ARGUMENTS)
        numbers = [builder.extract_value(given[1], k) for k in range(_ARGUMENTS)]
        builder.call(builder.inttoptr(given[0], kind.as_pointer()), [builder.inttoptr(one, pointer) for one in numbers])
        return context.get_dummy_value()

    return types.void(types.int64, types.UniTuple(types.intp, _ARGUMENTS)), generate
