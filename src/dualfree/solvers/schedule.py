"""When to evaluate next, and when floating point has given all it can: decided from the gaps, never from the clock."""

from __future__ import annotations

import math

from ..certificate import Certificate
from ..trace import Trace

# A gap that no evaluation improves any more is at the precision of the iteration itself.
_STALL_EVALUATIONS = 8
_STALL_RELATIVE_GAP = 1e-10
# So small a gap is of no consequence for anything in double precision: ‖w − w*‖ is below its last digit.
_NOTHING_LEFT = 1e-22
# A gap that has shrunk to less than this part since the last evaluation is on its way, however much of it is rounding.
_STILL_IMPROVING = 0.1


def next_evaluation(trace: Trace, epoch: int, target: float, farthest: float = 0.5) -> int:
    """The epoch of the next evaluation: where the last two gaps say that the target is met, but not too far ahead.

    `farthest` is the most epochs ahead, as a part of those behind.
    """
    if len(trace) < 2 or epoch < 2:
        return epoch + 1
    before, now = trace[-2], trace[-1]
    most = max(1, int(epoch * farthest))
    if not 0 < now.gap < before.gap or target <= 0:
        return epoch + max(1, most // 2)
    rate = math.log(before.gap / now.gap) / max(1, now.epoch - before.epoch)
    return epoch + min(most, max(1, math.ceil(math.log(now.gap / target) / rate)))


def stalled(certificate: Certificate, trace: Trace, epoch: int) -> bool:
    """Whether the evaluation that ended the trace shows that what is left of the gap is rounding error."""
    gap = certificate.gap
    if certificate.relative_gap < _NOTHING_LEFT and epoch > 0:
        return True
    small = certificate.relative_gap < _STALL_RELATIVE_GAP
    rounded = math.isfinite(gap) and certificate.rounding >= 0.5 * gap and epoch > 0
    gaps = [entry.gap for entry in trace]
    # The smaller bound may be all rounding while the other one, and the point, still get better by the epoch.
    if small and rounded and len(gaps) > 1 and gap > _STILL_IMPROVING * gaps[-2]:
        return True
    # One of the two alone may pass: a point may be hard to certify (α at the ends of the domain) and the next one not.
    if (small or rounded) and len(gaps) > _STALL_EVALUATIONS:
        before, recent = gaps[:-_STALL_EVALUATIONS], gaps[-_STALL_EVALUATIONS:]
        return min(recent) > 0.99 * min(before)
    return False
