"""Why a solve ended."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Why a solve ended; each member carries a sentence.

    Examples
    --------
    >>> from dualfree import Status
    >>> Status.CONVERGED.sentence
    'The certified gap is at most tol · P(0).'
    >>> str(Status.MAX_TIME)
    'max_time'
    """

    CONVERGED = "converged"
    MAX_EPOCHS = "max_epochs"
    MAX_TIME = "max_time"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    DIVERGED = "diverged"

    @property
    def sentence(self) -> str:
        """What the status means."""
        return _SENTENCES[self]

    def __str__(self) -> str:
        return str(self.value)


_SENTENCES = {
    Status.CONVERGED: "The certified gap is at most tol · P(0).",
    Status.MAX_EPOCHS: "max_epochs was reached before tol; the certificate says how far this point is from the optimum.",
    Status.MAX_TIME: "max_time was reached before tol; the certificate says how far this point is from the optimum.",
    Status.INTERRUPTED: "The run was interrupted; this is the best point until then.",
    Status.STALLED: "Floating point cannot do better: what is left of the gap is rounding error.",
    Status.DIVERGED: "The iterates diverged; this is the best point until then.",
}
