"""Quantiles of |κ_i| without the |κ_i|: partitions count them in bins, and counts add up.

A bin is a quarter of an octave, so a quantile is known to within a factor of 2^(1/4), rounded up.
"""

from __future__ import annotations

import numpy as np

from .._checks import Array
from ..problem import Problem, slopes_into
from ..trace import QUANTILES

_PER_OCTAVE = 4
_LOWEST, _HIGHEST = -80, 48  # octaves; the first bin takes everything below, the last everything above
_BINS = _PER_OCTAVE * (_HIGHEST - _LOWEST)


def histogram(problem: Problem, z: Array, b: float, alpha: Array) -> Array:
    """Return the counts of |κ_i|."""
    kappa = np.empty(problem.n)
    slopes_into(problem.loss.compiled, z, b, problem.y, problem.sample_weight, kappa)
    kappa += alpha
    np.abs(kappa, out=kappa)
    with np.errstate(divide="ignore"):
        octaves = np.log2(kappa)
    bins = np.clip(np.ceil(_PER_OCTAVE * (octaves - _LOWEST)), 0, _BINS - 1).astype(np.int64)
    return np.bincount(bins, minlength=_BINS)


def quantiles(counts: Array) -> tuple[float, ...]:
    """Return the quantiles of a trace, each rounded up to the end of its bin; 0 for the lowest one."""
    upto = np.cumsum(counts)
    found = []
    for q in QUANTILES:
        position = int(np.searchsorted(upto, np.ceil(q * upto[-1])))
        found.append(0.0 if position == 0 else 2.0 ** (_LOWEST + position / _PER_OCTAVE))
    return tuple(found)
