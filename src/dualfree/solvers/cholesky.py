"""Cholesky's factorisation of a Hessian, and the triangular systems with it, on one thread or several.

A matrix here is its upper triangle; what is below the diagonal is not to be read. It is scaled to a unit diagonal first.

Several threads take it in blocks. Of a few rows at a time the caller factorises the block on the diagonal, all threads divide
what is to the right of it by that, each for its own columns, and then take the products of those rows away from what is below,
each from its own rows. A triangular system goes the same way: the caller solves a block on the diagonal, and what that means
for the other unknowns is shared out by columns. Every number of the factor is always used by the same thread, whose cache
holds it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg

from .._checks import Array
from .._jit import device, kernel
from ..team import Team
from ..vector_math import wide_vectors
from ..workers import share_out
from . import blas

# Columns from which on threads gain by sharing; and rows at a time, of a factorisation and of a triangular system.
_WORTH_SHARING, _ROWS, _UNKNOWNS = 200, 64, 128
_LEAST_BUMP = 1e-14


class Factor:
    """A Cholesky factor of matrix/over; a little is added to the matrix where rounding made it indefinite.

    It takes the place of `out`, where that is given.
    """

    def __init__(self, matrix: Array, over: float = 1.0, team: Team | None = None, out: Array | None = None) -> None:
        size = matrix.shape[0]
        self.team = team if team is not None and team.size > 1 and size >= _WORTH_SHARING else None
        scale = 1.0 / np.sqrt(np.diagonal(matrix))
        self.scale = math.sqrt(over) * scale
        self.upper, bump, trouble = np.empty_like(matrix) if out is None else out, 0.0, 1
        while trouble and bump < math.inf:  # numbers that are not finite never go well
            if self.team is None:
                _scale(matrix, scale, bump, 0, size, self.upper)
                # the upper triangle, row by row, is the lower one of the transpose, column by column: nothing is copied
                _, trouble = scipy.linalg.lapack.dpotrf(self.upper.T, lower=1, clean=0, overwrite_a=1)
            else:
                trouble = self.team.lead(_factorise, blas.addresses(), matrix, scale, bump, self.upper)
            bump = max(_LEAST_BUMP, 100.0 * bump)
        if self.team is not None:
            self._sums = np.empty((self.team.size, _UNKNOWNS))

    def divided(self, right: Array) -> Array:
        """Solve (matrix/over) x = right."""
        solution = self.scale * right
        if self.team is None:
            substitute(self.upper, solution)
        else:
            self.team.lead(_substitute_in_blocks, self.upper, self._sums, solution)
        solution *= self.scale
        return solution


def solve_positive(hessian: Array, right: Array) -> Array:
    """Solve H x = right."""
    return Factor(hessian).divided(right)


# --- on one thread ------------------------------------------------------------------------------------------------------


@kernel
def _scale(matrix: Any, scale: Any, bump: float, first: int, last: int, out: Any) -> None:
    """Set rows of the upper triangle of a matrix that is scaled to a diagonal of 1 + bump; the rest is not set."""
    for j in range(first, last):
        for k in range(j + 1, scale.size):
            out[j, k] = scale[j] * matrix[j, k] * scale[k]
        out[j, j] = 1.0 + bump


@kernel
def substitute(upper: Any, out: Any) -> None:
    """Solve Uᵀ U x = out, in place."""
    wide_vectors()
    _forwards(upper, 0, out.size, out)
    _backwards(upper, 0, out.size, out)


@device
def _forwards(upper: Any, first: int, last: int, out: Any) -> None:
    """Solve Uᵀ x = out for a block on the diagonal: four rows of U at a time, which share what is read and written of x."""
    whole = last - (last - first) % 4
    for j in range(first, whole, 4):
        for i in range(4):
            for k in range(i):
                out[j + i] -= upper[j + k, j + i] * out[j + k]
            out[j + i] /= upper[j + i, j + i]
        _subtract_four(upper[j : j + 4], j + 4, last, out[j], out[j + 1], out[j + 2], out[j + 3], out)
    for j in range(whole, last):
        for k in range(whole, j):
            out[j] -= upper[k, j] * out[k]
        out[j] /= upper[j, j]


@device
def _backwards(upper: Any, first: int, last: int, out: Any) -> None:
    """The same for U x = out."""
    whole = last - (last - first) % 4
    for j in range(last - 1, whole - 1, -1):
        for k in range(j + 1, last):
            out[j] -= upper[j, k] * out[k]
        out[j] /= upper[j, j]
    for j in range(whole - 4, first - 1, -4):
        sums = _four_dots(upper[j : j + 4], j + 4, last, out)
        for i in range(3, -1, -1):
            out[j + i] -= sums[i]
            for k in range(i + 1, 4):
                out[j + i] -= upper[j + i, j + k] * out[j + k]
            out[j + i] /= upper[j + i, j + i]


@device(contract=True)
def _subtract_four(lines: Any, first: int, last: int, a: float, b: float, c: float, d: float, out: Any) -> None:
    """out −= a, b, c and d times four lines, from `first` to `last`."""
    one, two, three, four, out = (
        lines[0, first:last],
        lines[1, first:last],
        lines[2, first:last],
        lines[3, first:last],
        out[first:last],
    )
    for k in range(out.size):
        out[k] -= (a * one[k] + b * two[k]) + (c * three[k] + d * four[k])


@device(reassociate=True)
def _four_dots(lines: Any, first: int, last: int, right: Any) -> tuple[float, float, float, float]:
    """Four lines times a vector, from `first` to `last`."""
    one, two, three, four, right = (
        lines[0, first:last],
        lines[1, first:last],
        lines[2, first:last],
        lines[3, first:last],
        right[first:last],
    )
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(right.size):
        a += one[k] * right[k]
        b += two[k] * right[k]
        c += three[k] * right[k]
        d += four[k] * right[k]
    return a, b, c, d


# --- on several ---------------------------------------------------------------------------------------------------------


@device
def rows_of_triangle(own: int, threads: int, size: int) -> tuple[int, int]:
    """Rows of an upper triangle, as many numbers of it for each thread."""
    first = int(size * (1.0 - math.sqrt(1.0 - own / threads))) // 8 * 8
    last = int(size * (1.0 - math.sqrt(1.0 - (own + 1) / threads))) // 8 * 8
    return first, size if own + 1 == threads else last


@device
def _columns_from(own: int, threads: int, first: int, size: int) -> tuple[int, int]:
    """A thread's part of the columns from `first` on."""
    count = size - first
    last = size if own + 1 == threads else first + count * (own + 1) // threads // 8 * 8
    return first + count * own // threads // 8 * 8, last


@kernel
def _factorise(orders: Any, cuts: Any, routines: Any, matrix: Any, scale: Any, bump: float, out: Any) -> int:
    """What the caller does: scale the matrix, and factorise it in blocks. Return 1 if it is not positive definite."""
    size = scale.size
    if share_out(orders, _scale_part, (cuts, matrix, scale, bump, out)):
        return 1
    for first in range(0, size, _ROWS):
        middle = min(first + _ROWS, size)
        if not blas.factorise_block(routines[0], out, first, middle):
            return 1
        if middle < size:
            share_out(orders, _divide_part, (cuts, routines, first, middle, out))
            share_out(orders, _subtract_part, (cuts, routines, first, middle, out))
    return 0


@kernel
def _scale_part(own: int, cuts: Any, matrix: Any, scale: Any, bump: float, out: Any) -> None:
    first, last = rows_of_triangle(own, cuts.size - 1, scale.size)
    _scale(matrix, scale, bump, first, last, out)


@kernel
def _divide_part(own: int, cuts: Any, routines: Any, first: int, middle: int, out: Any) -> None:
    begin, end = _columns_from(own, cuts.size - 1, middle, out.shape[0])
    if begin < end:
        blas.divide_block(routines[1], out, first, middle, begin, end)


@kernel
def _subtract_part(own: int, cuts: Any, routines: Any, first: int, middle: int, out: Any) -> None:
    begin, end = rows_of_triangle(own, cuts.size - 1, out.shape[0] - middle)
    if begin < end:
        blas.subtract_products(routines[2], routines[3], out, first, middle, middle + begin, middle + end)


@kernel
def _substitute_in_blocks(orders: Any, cuts: Any, upper: Any, sums: Any, out: Any) -> None:
    """What the caller does to solve Uᵀ U x = out, in place."""
    wide_vectors()
    size = out.size
    for first in range(0, size, _UNKNOWNS):
        middle = min(first + _UNKNOWNS, size)
        _forwards(upper, first, middle, out)
        if middle < size:
            share_out(orders, _take_away, (cuts, upper, first, middle, out))
    for first in range((size - 1) // _UNKNOWNS * _UNKNOWNS, -1, -_UNKNOWNS):
        middle = min(first + _UNKNOWNS, size)
        if middle < size:
            share_out(orders, _add_up, (cuts, upper, first, middle, out, sums))
            for k in range(cuts.size - 1):
                for i in range(first, middle):
                    out[i] -= sums[k, i - first]
        _backwards(upper, first, middle, out)


@kernel
def _take_away(own: int, cuts: Any, upper: Any, first: int, middle: int, out: Any) -> None:
    """Take what is known of x out of the equations for a thread's part of the unknowns after it."""
    wide_vectors()
    begin, end = _columns_from(own, cuts.size - 1, middle, out.size)
    for j in range(first, middle, 4):
        _subtract_four(upper[j : j + 4], begin, end, out[j], out[j + 1], out[j + 2], out[j + 3], out)


@kernel
def _add_up(own: int, cuts: Any, upper: Any, first: int, middle: int, out: Any, sums: Any) -> None:
    """What a thread's part of the unknowns after them means for some equations."""
    wide_vectors()
    begin, end = _columns_from(own, cuts.size - 1, middle, out.size)
    for j in range(first, middle, 4):
        k = j - first
        sums[own, k], sums[own, k + 1], sums[own, k + 2], sums[own, k + 3] = _four_dots(
            upper[j : j + 4], begin, end, out
        )
