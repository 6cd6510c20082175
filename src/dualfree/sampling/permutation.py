"""A random permutation, in compiled code: numpy's own shuffle spends some 30 ns on each row, as much as a short row takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import Array
from .._jit import device, kernel


def shuffle(order: Array, rng: np.random.Generator) -> None:
    """Shuffle `order` in place; all randomness comes from one 64-bit number of `rng`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.sampling.permutation import shuffle
    >>> order = np.arange(5)
    >>> shuffle(order, np.random.default_rng(0))
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4]
    """
    shuffle_from(order, np.uint64(rng.integers(2**64, dtype=np.uint64)))


def shuffle_runs(source: Array, order: Array, length: int, rng: np.random.Generator) -> None:
    """Fill `order` with the items of `source`, so many neighbours at a time; where the first run ends is random, too.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.sampling.permutation import shuffle_runs
    >>> order = np.empty(6, dtype=np.int64)
    >>> shuffle_runs(np.arange(6), order, 2, np.random.default_rng(0))
    >>> sorted(order.tolist()), int((np.diff(order) == 1).sum()) >= 2
    ([0, 1, 2, 3, 4, 5], True)
    """
    if source.size != order.size:
        raise ValueError(f"{source.size} items do not fill {order.size} places.")
    shuffle_runs_from(source, order, length, np.uint64(rng.integers(2**64, dtype=np.uint64)))


@device
def mixed(state: Any) -> Any:
    """SplitMix64's output function (Steele, Lea and Flood 2014)."""
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def shuffle_from(order: Any, seed: Any) -> None:
    """Fisher–Yates with SplitMix64; an index below k is the upper half of a product of 32-bit numbers (bias below k/2³²)."""
    state = seed
    for last in range(order.size - 1, 0, -1):
        state += np.uint64(0x9E3779B97F4A7C15)
        bits = mixed(state)
        if last < 0x7FFFFFFF:
            other = np.int64(((bits >> np.uint64(32)) * np.uint64(last + 1)) >> np.uint64(32))
        else:
            other = np.int64(bits % np.uint64(last + 1))
        order[last], order[other] = order[other], order[last]


@kernel
def shuffle_runs_from(source: Any, order: Any, length: int, seed: Any) -> None:
    runs = np.arange(source.size // length + 2)
    shuffle_from(runs, seed)
    before = np.int64(mixed(~seed) % np.uint64(length))
    filled = 0
    for k in runs:
        first = k * length - before
        for i in range(max(first, 0), min(first + length, source.size)):
            order[filled] = source[i]
            filled += 1
