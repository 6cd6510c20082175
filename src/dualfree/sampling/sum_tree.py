"""Sampling from a distribution that changes: a tree of sums with sixteen children to a node.

The leaves are the weights; each inner node is the sum of its children, formed afresh whenever one of them changes, so
no rounding error builds up however often that happens. One change and one draw cost O(log n): five levels of sixteen
neighbouring numbers for a million rows, where a binary tree would touch twenty separate cache lines. The inner nodes
take n/15 numbers.

A leaf of weight zero is never drawn: the search goes only into children that are positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import Array
from .._jit import device, kernel

_FAN = 16


class SumTree:
    """Weights ≥ 0 with changes, their sum, and draws in proportion to them.

    Parameters
    ----------
    weights : array of shape (n,)
        The weights to begin with.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.sampling import SumTree
    >>> tree = SumTree([0.0, 1.0, 3.0])
    >>> tree.total
    4.0
    >>> [tree.draw(u) for u in (0.0, 0.2, 0.3, 0.99)]
    [1, 1, 2, 2]
    >>> tree.set(1, 0.0)
    >>> tree.draw(0.0)
    2
    """

    def __init__(self, weights: Any) -> None:
        values = np.ascontiguousarray(weights, dtype=np.float64)
        self.nodes, self.levels = new_tree(values.size)
        self.n = values.size
        self.nodes[: self.n] = values
        build(self.nodes, self.levels)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.nodes[-1])

    @property
    def weights(self) -> Array:
        """The weights, a view; call `rebuild` after writing to it."""
        return self.nodes[: self.n]

    def rebuild(self) -> None:
        """Form all sums afresh."""
        build(self.nodes, self.levels)

    def set(self, i: int, weight: float) -> None:
        """Change one weight."""
        _set_one(self.nodes, self.levels, i, weight)

    def draw(self, u: float) -> int:
        """Return the row on which the uniform number u ∈ [0, 1) falls; −1 where all weights are zero."""
        return int(_draw_one(self.nodes, self.levels, u))


def new_tree(n: int) -> tuple[Array, Array]:
    """Return (nodes, levels) for n leaves: `levels[k]` is where level k begins, the root is the last node."""
    starts = [0]
    size = n
    while size > 1:
        padded = -(-size // _FAN) * _FAN
        starts.append(starts[-1] + padded)
        size = padded // _FAN
    return np.zeros(starts[-1] + 1), np.array(starts, dtype=np.int64)


@kernel
def build(nodes: Any, levels: Any) -> None:
    """Form every inner node from the leaves."""
    for level in range(1, levels.size):
        children = nodes[levels[level - 1] : levels[level]].reshape(-1, _FAN)
        parents = nodes[levels[level] :]
        for k in range(children.shape[0]):
            parents[k] = _sum_of(children[k])


@device
def refresh(nodes: Any, levels: Any, i: int) -> None:
    """Form the sums above leaf i afresh, after a change of that leaf."""
    k = i
    for level in range(1, levels.size):
        k //= _FAN
        first = levels[level - 1] + k * _FAN
        nodes[levels[level] + k] = _sum_of(nodes[first : first + _FAN])


@device
def _sum_of(x: Any) -> float:
    """Sixteen numbers in pairs of pairs: half the time of one after the other, as no sum waits for the one before."""
    low = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]))
    high = ((x[8] + x[9]) + (x[10] + x[11])) + ((x[12] + x[13]) + (x[14] + x[15]))
    return low + high


@device
def draw(nodes: Any, levels: Any, u: float) -> int:
    """Walk down from the root; u times the total says how much weight lies to the left of the leaf."""
    left = u * nodes[-1]
    if not nodes[-1] > 0.0:
        return -1
    k = 0
    for level in range(levels.size - 2, -1, -1):
        first = levels[level] + k * _FAN
        chosen = -1
        for child in range(first, first + _FAN):
            if nodes[child] > 0.0:
                chosen = child  # rounding may carry `left` past the end: the last positive child stands then
                if left < nodes[child]:
                    break
                left -= nodes[child]
        k = chosen - levels[level]
    return k


@kernel
def _set_one(nodes: Any, levels: Any, i: int, weight: float) -> None:
    nodes[i] = weight
    refresh(nodes, levels, i)


@kernel
def _draw_one(nodes: Any, levels: Any, u: float) -> int:
    return draw(nodes, levels, u)
