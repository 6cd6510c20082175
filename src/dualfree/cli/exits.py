"""Exit statuses, the same for every command."""

from __future__ import annotations

from collections.abc import Iterable

from ..status import Status

CERTIFIED = 0
CLAIM_FAILED = 1
BAD_INPUT = 2
STOPPED = 3
BUG = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

MEANING = {
    CERTIFIED: "certified: the gap is proven to be at most tol (or the command did what it was asked)",
    CLAIM_FAILED: "certify: the model's claim does not hold",
    BAD_INPUT: "bad input: a file, an option or a value cannot be used",
    STOPPED: "stopped before tol: the answer is usable, its certificate says how far it may be from the optimum",
    BUG: "a bug in dualfree",
    INTERRUPTED: "interrupted with Ctrl-C; the best model until then was kept",
}


def of(statuses: Iterable[Status]) -> int:
    """Return the exit status that stands for the ends of some solves."""
    ends = set(statuses)
    if Status.INTERRUPTED in ends:
        return INTERRUPTED
    return CERTIFIED if ends <= {Status.CONVERGED} else STOPPED
