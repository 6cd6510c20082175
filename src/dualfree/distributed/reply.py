"""What a task sends back, and how replies are added up on the workers in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._checks import Array


@dataclass(frozen=True, slots=True)
class Reply:
    """A sum over the rows of one partition, or of several after `fold`.

    Attributes
    ----------
    vector : array or None
        What is summed over the partitions: a vector of length d, or a Hessian.
    terms : list
        One entry a partition, in order: the numbers that the client merges itself.
    places : list of str
        The worker of each partition.
    rebuilt : bool
        Whether the α of one of them was lost and had to be rebuilt from w.
    """

    vector: Array | None
    terms: list[Any]
    places: list[str]
    rebuilt: bool = False


def fold(replies: list[Reply]) -> Reply:
    """Add replies up, from left to right: floating-point sums depend on the order, and the order is that of the partitions."""
    vector = None
    if replies[0].vector is not None:
        vector = replies[0].vector.copy()
        for reply in replies[1:]:
            vector += reply.vector
    return Reply(
        vector,
        [term for reply in replies for term in reply.terms],
        [place for reply in replies for place in reply.places],
        any(reply.rebuilt for reply in replies),
    )
