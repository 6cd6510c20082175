"""What the gap is about, by what rows had in it when they were visited; and what follows for epochs and the first certificate.

Python asks after each call, and kernels that make several epochs in one call after each epoch: the same functions serve both.
"""

from __future__ import annotations

import math

from .._jit import device

# The gap that an epoch leaves, in what its rows had in the gap when they were visited: the first part of that, and the second
# times the ratio of this sum to that of the epoch before. That ratio, until it is known.
_FRESH, _STALE, UNKNOWN_RATE = 0.07, 0.85, 0.25
# The first certificate waits where an epoch divides the gap by so much, or so few epochs are left; no rate is believed to be
# smaller than this.
_QUICK, _FEW, _SLOW = math.log(4.0), 4.0, 1e-3
# Residuals are uneven where the square of their mean is less than this part of the mean of their squares: adaptive visits are
# worth a look then, however quick the run is, unless so few epochs are left.
UNEVEN, FEW_IF_UNEVEN = 0.1, 1.0
# A last epoch is so many times as long as the rate of the one before says that it must be: at least the first of the two parts
# of an epoch that follow, and a whole one from the second on.
_MARGIN, _SHORTEST, _NEARLY_ALL = 1.2, 0.2, 0.8


def rate_of(misfit: float, before: float) -> float:
    """By what an epoch multiplied the gap, about: what its rows had in it, relative to those of the epoch before."""
    return min(1.0, misfit / before) if before > 0.0 else UNKNOWN_RATE


def gap_left(misfit: float, rate: float) -> float:
    """About the gap after an epoch."""
    return misfit * (_FRESH + _STALE * rate)


def evenness(residuals: float, squares: float, number: float) -> float:
    """How even so many residuals are, given their sum and that of their squares: 1 if all are the same, 1/n if one is all."""
    return residuals * residuals / (number * squares) if 0.0 < squares < math.inf else 1.0


def first_is_due(guess: float, enough: float, rate: float, even: float) -> bool:
    """Whether the first certificate is due: for tol's sake, or to know more of a run that is not quick and has a way to go.

    `guess` is what the gap is about, `enough` the guess that says that tol is met, `rate` what the last epoch took from the
    logarithm of the gap, and `even` how even the residuals were that it met.
    """
    if guess <= enough:
        return True
    left = math.log(guess / enough) / max(rate, _SLOW) if enough > 0.0 else math.inf
    if even < UNEVEN:
        return left >= FEW_IF_UNEVEN
    return not (rate > _QUICK or left < _FEW)


def part_of_epoch(guess: float, enough: float, rate: float) -> float:
    """What part of an epoch should be enough to get from one guess to the other."""
    part = _MARGIN * math.log(max(1.0, guess / enough)) / rate
    return max(_SHORTEST, part) if part < _NEARLY_ALL else 1.0


# --- for kernels; from Python, a call of a compiled function takes microseconds ----------------------------------------------

_rate_of, _gap_left = device(rate_of), device(gap_left)
_first_is_due, _part_of_epoch, evenness_of = device(first_is_due), device(part_of_epoch), device(evenness)


@device
def left_after(misfit: float, before: float) -> float:
    """About the gap after an epoch, given what rows had in it in that epoch and in the one before."""
    return _gap_left(misfit, _rate_of(misfit, before))


@device
def goes_on(guess: float, before: float, even: float, enough: float, enough_guessed: float) -> bool:
    """Whether a whole epoch more comes before the next certificate.

    `before` is the guess of an epoch ago, infinite where that is not known, `even` as in `first_is_due`. Until the first
    certificate, `enough_guessed` is the guess that says that tol is met; after it `enough` is, and the other one 0.
    """
    if enough_guessed == 0.0:
        return guess > enough
    if not before < math.inf:
        return True
    rate = math.log(before / guess) if 0.0 < guess < before else 0.0
    if _first_is_due(guess, enough_guessed, rate, even):
        return False
    return _part_of_epoch(guess, enough_guessed, rate) == 1.0
