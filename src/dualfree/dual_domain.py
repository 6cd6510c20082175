"""The dual domain: which α have a finite D(α), and the way back into it.

Two conditions. Each a_i = α_i/s_i lies in the loss's interval (0 ≤ a y ≤ 1 for logistic, say; α_i = 0 where s_i = 0).
With an intercept, Σ α_i = 0 as well, and that one has to hold *exactly*: D = −∞ otherwise. Floating point cannot promise
that, so what is left over after balancing is handed to the certificate, which pays for removing it (see `Balance`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._checks import Array
from ._jit import device, kernel, scalar
from .losses.calls import loss_dual_bounds
from .team import Team, own_rows
from .vector_math import AT_A_TIME, two_sum

_EPS = 2.0**-52
MUCH = 2.0**-10  # of a row's room: using more of it up than this would cost too much
_SHRINKAGE = 2.0**-40


class Balance(NamedTuple):
    """What separates a floating-point α from one whose sum is exactly zero.

    Moving `row` by at most `excess` makes Σ α = 0; the certificate bounds the cost by convexity, from the value at
    distance `reach` on either side, both inside the domain. `excess` is infinite where no row can move.
    """

    excess: float
    row: int
    reach: float


class Projection(NamedTuple):
    """What became of an α that was projected: how its sum stands, whether it was finite, and whether it is as it was."""

    balance: Balance
    is_finite: bool
    is_unchanged: bool


def project(team: Team, alpha: Array, out: Array) -> Projection:
    """Write a dual-feasible neighbour of `alpha` to `out`; a feasible `alpha` comes through unchanged."""
    problem = team.problem
    loss, y, s = problem.loss.compiled, problem.y, problem.sample_weight
    changed, not_finite = team.say(_clip_part, loss, y, s, alpha, out)[:2]
    if not problem.fit_intercept or not_finite:
        return Projection(Balance(0.0, 0, 1.0), not not_finite, not changed)
    balance = Balance(*_balance(loss, y, s, out))
    return Projection(balance, True, not changed and np.array_equal(alpha, out))


@device
def bounds(loss: Any, y: float, s: float) -> tuple[float, float]:
    """The interval of α_i."""
    if s == 0.0:
        return 0.0, 0.0
    low, high = loss_dual_bounds(loss, y)
    # The product may round outwards; 0, ±1 and ±∞ times s are exact.
    inside = 1.0 - 2.0 * _EPS
    low = s * low if s == 1.0 or abs(low) == 1.0 else s * low * inside
    high = s * high if s == 1.0 or abs(high) == 1.0 else s * high * inside
    return low, high


@device
def unlimited(loss: Any) -> bool:
    """Whether every a is in the domain, whatever the label."""
    for y in (-1.0, 1.0):
        low, high = loss_dual_bounds(loss, y)
        if low > -np.inf or high < np.inf:
            return False
    return True


@kernel
def clip(loss: Any, y: Any, s: Any, alpha: Any, out: Any) -> None:
    if unlimited(loss):
        for i in range(alpha.size):
            out[i] = alpha[i] if s[i] > 0.0 else 0.0
        return
    for i in range(alpha.size):
        low, high = bounds(loss, y[i], s[i])
        out[i] = min(high, max(low, alpha[i]))


@kernel
def _clip_part(own: int, cuts: Any, said: Any, loss: Any, y: Any, s: Any, alpha: Any, out: Any) -> None:
    """`clip` a thread's rows; say how many of them changed, and how many were not finite."""
    mine = own_rows(own, cuts)
    y, s, alpha, out = y[mine], s[mine], alpha[mine], out[mine]
    clip(loss, y, s, alpha, out)
    changed, not_finite = 0, 0
    for i in range(alpha.size):
        changed += alpha[i] != out[i]
        not_finite += not abs(alpha[i]) < np.inf
    said[own, 0], said[own, 1] = changed, not_finite


@device
def _product_error(x: float, y: float, product: float) -> float:
    """x y − product, without error (Dekker's splitting), where `product` is x y rounded."""
    split = 134217729.0  # 2^27 + 1
    t = split * x
    x_high = t - (t - x)
    t = split * y
    y_high = t - (t - y)
    x_low, y_low = x - x_high, y - y_high
    return ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low


@kernel
def exact_sum(alpha: Any, s: Any) -> tuple[float, float]:
    """Σ α_i in compensated arithmetic, and a bound on its error.

    The certificate evaluates the loss at a_i = α_i/s_i, rounded. The dual point that it speaks of is s_i a_i, so that is
    what has to sum to zero. Each place of a block has sums of its own: one chain of additions would wait for each of them.
    """
    block = min(AT_A_TIME, alpha.size)
    totals, lost, lost_size = np.zeros(block), np.zeros(block), np.zeros(block)
    term = np.empty(block)
    weighted = _has_weights(s)
    for start in range(0, alpha.size, AT_A_TIME):
        stop = min(start + AT_A_TIME, alpha.size)
        a = alpha[start:stop]
        if weighted:
            _products(a, s[start:stop], term, lost, lost_size)
            a = term[: stop - start]
        for j in range(stop - start):
            totals[j], error = two_sum(totals[j], a[j])
            lost[j] += error
            lost_size[j] += abs(error)
    total, left, left_size = 0.0, 0.0, 0.0
    for j in range(block):
        total, error = two_sum(total, totals[j])
        left += lost[j] + error
        left_size += lost_size[j] + abs(error)
    total += left
    return total, _EPS * abs(total) + 2.0 * (alpha.size + block) * _EPS * left_size


@device
def _has_weights(s: Any) -> bool:
    others = 0
    for i in range(s.size):
        others += s[i] != 1.0
    return others > 0


@device
def _products(alpha: Any, s: Any, term: Any, lost: Any, lost_size: Any) -> None:
    """The dual point's s_i a_i, rounded; what rounding took goes to `lost`."""
    for j in range(alpha.size):
        term[j] = alpha[j]
        if s[j] != 1.0 and alpha[j] != 0.0:
            a = alpha[j] / s[j]
            term[j] = s[j] * a
            error = _product_error(s[j], a, term[j])
            lost[j] += error
            lost_size[j] += abs(error)


@kernel
def _balance(loss: Any, y: Any, s: Any, alpha: Any) -> tuple[float, int, float]:
    """Shift α to Σ α = 0 inside the domain: evenly where there is unlimited room, in proportion to the room elsewhere."""
    total, _ = exact_sum(alpha, s)
    if total != 0.0:
        unlimited, room = room_to_shift(loss, y, s, alpha, total)
        if unlimited == 0.0 and room < abs(total):
            return np.inf, 0, 1.0  # the interval constraints exclude Σ α = 0
        shift(loss, y, s, alpha, total, unlimited, room)

    left, row, reach = _settle(loss, y, s, alpha)
    if left > MUCH * reach:
        # Next to no row can move: most of them sit at the ends of their intervals (the hinge's α_i = 0 and s_i y_i, say).
        # A little less of α, which is in the domain as well, makes room.
        for i in range(alpha.size):
            alpha[i] *= 1.0 - shrinkage(alpha.size)
        left, row, reach = _settle(loss, y, s, alpha)
    if left == 0.0:
        return 0.0, row, 1.0
    return (left, row, reach) if left <= reach else (np.inf, 0, 1.0)


@kernel
def room_to_shift(loss: Any, y: Any, s: Any, alpha: Any, total: float) -> tuple[float, float]:
    """Return the weight of the rows with unlimited room to move against `total`, and the room of the others."""
    return _room(loss, y, s, alpha, total > 0.0)


@device(reassociate=True)
def _room(loss: Any, y: Any, s: Any, alpha: Any, down: bool) -> tuple[float, float]:
    unlimited, room = 0.0, 0.0
    for i in range(alpha.size):
        low, high = bounds(loss, y[i], s[i])
        space = alpha[i] - low if down else high - alpha[i]
        unlimited += s[i] if space == np.inf else 0.0
        room += space if space < np.inf else 0.0
    return unlimited, room


@kernel
def shift(loss: Any, y: Any, s: Any, alpha: Any, total: float, unlimited: float, room: float) -> None:
    """Take this part of the rows' share of `total` away from α; `unlimited` and `room` are those of all rows."""
    for i in range(alpha.size):
        low, high = bounds(loss, y[i], s[i])
        space = alpha[i] - low if total > 0.0 else high - alpha[i]
        if unlimited > 0.0:
            if np.isinf(space):
                alpha[i] -= total * (s[i] / unlimited)
        elif total > 0.0:
            alpha[i] = max(low, alpha[i] - total * (space / room))
        else:
            alpha[i] = min(high, alpha[i] - total * (space / room))


@scalar
def shrinkage(n: int) -> float:
    """The part of α that is given up where next to no row can move; more than rounding can leave of Σ α."""
    return max(_SHRINKAGE, 8.0 * n * _EPS)


@kernel
def farthest_row(loss: Any, y: Any, s: Any, alpha: Any) -> tuple[int, float]:
    """Return the row that can move farthest both ways, and how far."""
    block = min(AT_A_TIME, alpha.size)
    largest, farthest = np.zeros(block), np.full(block, -1.0)
    for start in range(0, alpha.size, AT_A_TIME):
        rows = slice(start, min(start + AT_A_TIME, alpha.size))
        _keep_larger(largest, alpha[rows], s[rows])
    far = largest.max()
    for start in range(0, alpha.size, AT_A_TIME):
        rows = slice(start, min(start + AT_A_TIME, alpha.size))
        _keep_farther(farthest, loss, y[rows], s[rows], alpha[rows], far)
    reach = farthest.max()
    for i in range(alpha.size):
        if _space(loss, y[i], s[i], alpha[i], far) == reach:
            return i, reach
    return 0, -1.0


@device
def _keep_larger(largest: Any, alpha: Any, s: Any) -> None:
    """Each place of a block has a maximum of its own, so that vector registers take several at a time."""
    for j in range(alpha.size):
        size = abs(alpha[j]) / (s[j] if s[j] > 0.0 else 1.0)
        largest[j] = size if size > largest[j] else largest[j]


@device
def _keep_farther(farthest: Any, loss: Any, y: Any, s: Any, alpha: Any, far: float) -> None:
    for j in range(alpha.size):
        space = _space(loss, y[j], s[j], alpha[j], far)
        farthest[j] = space if space > farthest[j] else farthest[j]


@device
def _space(loss: Any, y: float, s: float, alpha: float, far: float) -> float:
    """How far α_i can move both ways; `far` a_i where there is no end."""
    low, high = bounds(loss, y, s)
    down, up = alpha - low, high - alpha
    space = down if down < up else up
    return s * far if space == np.inf else space


@device
def _settle(loss: Any, y: Any, s: Any, alpha: Any) -> tuple[float, int, float]:
    """Give what rounding left of Σ α to the row that can move farthest both ways; return what is left even then."""
    best, reach = farthest_row(loss, y, s, alpha)
    excess, error = exact_sum(alpha, s)
    for _ in range(3):  # the first move is rounded as well
        if excess == 0.0 or abs(excess) > 0.5 * reach:
            break
        alpha[best] -= excess
        excess, error = exact_sum(alpha, s)
    return abs(excess) + error, best, 0.25 * reach
