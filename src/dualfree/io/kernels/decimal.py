"""Decimal text to the nearest double, in compiled code.

Three ways, from cheap to dear:

1. At most 2⁵³ times (or divided by) a power of ten up to 10²²: both are exact doubles, so one operation rounds once
   (Clinger).
2. Up to 19 digits times any power of ten: multiply by a 128-bit approximation of that power and look whether the bits
   that were cut off can matter (Eisel and Lemire). They almost never do.
3. What is left (numbers on a rounding boundary, subnormal numbers): `UNDECIDED`. The caller asks Python.

Every number therefore means the same here, in Python and in any other correct reader.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._jit import device

UNDECIDED = np.nan
"""Not a number that text can spell here: the grammar has no "nan"."""

LARGEST_EXPONENT = 308
"""Numbers of 1e308 and beyond are refused: the last of them overflow, and no data need them."""

_SMALLEST_EXPONENT = -342  # 19 digits times a smaller power of ten is zero
EXACT_POWERS = 10.0 ** np.arange(23)


def _five_powers() -> np.ndarray[Any, np.dtype[np.uint64]]:
    """The leading 128 bits of 5^q, rounded down for q ≥ 0 and up for q < 0, as pairs of words."""
    rows = []
    for q in range(_SMALLEST_EXPONENT, LARGEST_EXPONENT + 1):
        if q >= 0:
            power = 5**q
            shift = 128 - power.bit_length()
            bits = power << shift if shift >= 0 else power >> -shift
        else:
            power = 5**-q
            bits = (1 << (power.bit_length() + 130)) // power
            bits = (bits >> (bits.bit_length() - 128)) + 1
        rows.append((bits >> 64, bits & (2**64 - 1)))
    return np.array(rows, dtype=np.uint64)


FIVE_POWERS = _five_powers()

_U1, _U2, _U3, _U32, _U52, _U63 = (np.uint64(k) for k in (1, 2, 3, 32, 52, 63))
_LOW_WORD = np.uint64(0xFFFFFFFF)
_ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_GUARD = np.uint64(0x1FF)  # the 9 bits of the upper word below the 55 that a double needs
_HIDDEN_BIT = np.uint64(1 << 52)


@device
def _full_product(a: Any, b: Any) -> Any:
    """The 128-bit product of two words, as (high, low)."""
    a_high, a_low = a >> _U32, a & _LOW_WORD
    b_high, b_low = b >> _U32, b & _LOW_WORD
    low = a_low * b_low
    middle = a_high * b_low + (low >> _U32)
    other = a_low * b_high + (middle & _LOW_WORD)
    return a_high * b_high + (middle >> _U32) + (other >> _U32), a * b


@device
def _leading_zeros(word: Any) -> Any:
    zeros = np.uint64(0)
    step = np.uint64(32)
    while step > np.uint64(0):
        if word >> (np.uint64(64) - step) == np.uint64(0):
            word = word << step
            zeros += step
        step = step >> _U1
    return zeros


@device
def _by_long_product(digits: Any, exponent: Any) -> Any:
    """digits · 10^exponent by Eisel and Lemire's method; `UNDECIDED` where it cannot tell."""
    zeros = _leading_zeros(digits)
    word = digits << zeros
    row = exponent - _SMALLEST_EXPONENT
    high, low = _full_product(word, FIVE_POWERS[row, 0])
    if high & _GUARD == _GUARD:
        more, _ = _full_product(word, FIVE_POWERS[row, 1])
        low += more
        if low < more:
            high += _U1
    if low == _ALL_ONES and (exponent < -27 or exponent > 55):
        return UNDECIDED
    top = high >> _U63
    shift = top + np.uint64(9)
    mantissa = high >> shift
    # floor(log2(10^q)), from 217706/2^16 ≈ log2(10)
    binary = ((217706 * exponent) >> 16) + 63 + np.int64(top) - np.int64(zeros) + 1023
    if binary <= 0:
        return UNDECIDED
    if low <= _U1 and -4 <= exponent <= 23 and mantissa & _U3 == _U1 and (mantissa << shift) == high:
        mantissa &= ~_U1  # exactly half way: to even
    mantissa = (mantissa + (mantissa & _U1)) >> _U1
    if mantissa >= _HIDDEN_BIT << _U1:
        mantissa = _HIDDEN_BIT
        binary += 1
    return np.uint64((mantissa & ~_HIDDEN_BIT) | (np.uint64(binary) << _U52)).view(np.float64)


@device
def to_double(digits: Any, exponent: Any, truncated: Any) -> Any:
    """Return digits · 10^exponent, correctly rounded, or `UNDECIDED`.

    `truncated` says that further non-zero digits followed the 19 in `digits`. The value must be below 1e308.
    """
    if digits == np.uint64(0):
        return 0.0
    if exponent < _SMALLEST_EXPONENT:
        return UNDECIDED
    if not truncated:
        if digits <= _HIDDEN_BIT << _U1 and -22 <= exponent <= 22:
            if exponent < 0:
                return np.float64(digits) / EXACT_POWERS[-exponent]
            return np.float64(digits) * EXACT_POWERS[exponent]
        return _by_long_product(digits, exponent)
    below = _by_long_product(digits, exponent)
    above = _by_long_product(digits + _U1, exponent)
    return below if below == above else UNDECIDED
