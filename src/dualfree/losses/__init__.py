"""Losses: the contract (`base`), one file for each loss's functions, and the registry of names."""

from __future__ import annotations

from typing import Any

from .._checks import one_of
from .base import Loss
from .builtin import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)

__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "SmoothedHinge",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "get_loss",
]

LOSSES: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (
        Squared,
        Logistic,
        SquaredHinge,
        SmoothedHinge,
        Hinge,
        Huber,
        SquaredEpsilonInsensitive,
        EpsilonInsensitive,
    )
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name with its default parameters, or the instance itself.

    Examples
    --------
    >>> from dualfree.losses import get_loss
    >>> get_loss("huber")
    Huber(1)
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise TypeError(f"loss must be a name or an instance; got the class {loss.__name__}: write {loss.__name__}().")
    if not isinstance(loss, str):
        raise TypeError(f"loss must be a name or a dualfree.Loss, got {loss!r}.")
    instance: Loss = LOSSES[one_of("loss", loss, LOSSES)]()
    return instance
