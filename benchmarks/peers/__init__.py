"""The peers that are installed; one file each."""

from __future__ import annotations

import importlib
from functools import cache

from .base import Answer, Peer, Task

__all__ = ["FILES", "OURS", "Answer", "Peer", "Task", "installed", "peer_named"]

OURS = "dualfree"
FILES = ("dualfree_", "liblinear_", "scikit_learn", "snap_ml", "cyanure_")


@cache
def _imported() -> tuple[list[Peer], list[str]]:
    peers: list[Peer] = []
    missing: list[str] = []
    for file in FILES:
        try:
            peers += importlib.import_module(f"{__package__}.{file}").PEERS
        except ImportError as error:
            missing.append(f"{file.strip('_')}: not compared, it cannot be imported ({error}).")
    return peers, missing


def installed() -> tuple[list[Peer], list[str]]:
    """Return the peers whose package can be imported, ours first, and a sentence for each that cannot."""
    return _imported()


def peer_named(name: str, loss: str) -> Peer:
    """Return the installed peer of that name for that loss."""
    for peer in _imported()[0]:
        if peer.name == name and loss in peer.losses:
            return peer
    raise LookupError(f"No installed solver is called {name!r} and takes the {loss} loss.")
