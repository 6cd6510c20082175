"""BLAS's product of a matrix with its own transpose, called so that other threads can run meanwhile.

numpy has no such product that adds to a matrix, and scipy's keeps the interpreter's lock while it works. The same routine,
called through ctypes, does not.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from numba.extending import get_cython_function_address

from .._checks import Array


@cache
def _dsyrk() -> Any:
    number, text, pointer = ctypes.POINTER(ctypes.c_int), ctypes.c_char_p, ctypes.c_void_p
    factor = ctypes.POINTER(ctypes.c_double)
    kind = ctypes.CFUNCTYPE(None, text, text, number, number, factor, pointer, number, factor, pointer, number)
    return kind(get_cython_function_address("scipy.linalg.cython_blas", "dsyrk"))


def add_square(block: Array, total: Array) -> None:
    """total += blockᵀ block, the lower triangle of a matrix in Fortran order; `block` is in C order.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.solvers.symmetric_product import add_square
    >>> total = np.zeros((2, 2), order="F")
    >>> add_square(np.array([[1.0, 2.0], [3.0, 4.0]]), total)
    >>> total
    array([[10.,  0.],
           [14., 20.]])
    """
    k, d = block.shape
    if not (block.flags.c_contiguous and total.flags.f_contiguous and total.shape == (d, d)):
        raise ValueError("block must be in C order and total a matrix of its columns in Fortran order.")
    if block.dtype != float or total.dtype != float:
        raise ValueError("block and total must hold double precision numbers.")
    size, one = ctypes.c_int(d), ctypes.c_double(1.0)
    _dsyrk()(b"L", b"N", size, ctypes.c_int(k), one, block.ctypes.data, size, one, total.ctypes.data, size)
