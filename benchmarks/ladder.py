"""The loosest tolerance of a solver that reaches each level.

Tolerances are tried from loose to tight, two steps at a time; where a level is reached, the one in between is tried, too.
So each level gets the loosest of all tolerances, provided that a tighter one is never worse, and half of the fits are
saved. A level is given up when a fit that has not reached it takes longer than it is worth: tighter ones take longer still.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_STRIDE = 2


@dataclass(frozen=True)
class Attempt:
    """A fit at one tolerance: how long it took and how near the optimum it came.

    `failed` says why there is none; `broken` that this was an error, not a lack of time.
    """

    seconds: float
    reached: float
    converged: bool | None = None
    failed: str = ""
    broken: bool = False


@dataclass
class Choice:
    """For each level the tolerance and its attempt; for the levels that were not reached, why; an error, if any."""

    chosen: dict[float, tuple[float, Attempt]] = field(default_factory=dict)
    missed: dict[float, str] = field(default_factory=dict)
    error: str = ""


def choose(
    attempt: Callable[[float, float], Attempt],
    tolerances: Sequence[float],
    levels: Sequence[float],
    worth: Callable[[float], float],
) -> Choice:
    """Find the loosest tolerance for each level.

    `attempt(tol, limit)` fits; `worth(level)` is how many seconds a fit may take that is meant to reach the level.
    """
    result = Choice()
    tried: dict[int, Attempt] = {}
    left = sorted(levels, reverse=True)
    reached_at: dict[float, int] = {}
    last = len(tolerances) - 1
    for place in [*range(0, last, _STRIDE), last]:
        if not left:
            break
        now = tried[place] = attempt(tolerances[place], max(map(worth, left)))
        if now.broken:
            result.error = now.failed
        for level in tuple(left):
            if now.failed:
                result.missed[level] = now.failed
            elif now.reached <= level:
                reached_at[level] = place
            elif now.seconds > worth(level):
                result.missed[level] = f"{now.reached:.1e} after {now.seconds:.3g} s, given up"
            elif place == last:
                result.missed[level] = f"{now.reached:.1e} at its tightest tolerance"
            else:
                continue
            left.remove(level)
    for level, place in reached_at.items():
        looser = place - 1
        if looser >= 0 and looser not in tried:
            tried[looser] = attempt(tolerances[looser], max(map(worth, reached_at)))
        if looser >= 0 and not tried[looser].failed and tried[looser].reached <= level:
            place = looser
        result.chosen[level] = tolerances[place], tried[place]
    return result
