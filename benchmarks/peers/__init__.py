"""The peers that are installed; one file each."""

from __future__ import annotations

import importlib

from .base import Peer

__all__ = ["Peer", "installed"]


def installed() -> list[Peer]:
    """Return the peers whose package can be imported, ours first; say which cannot."""
    peers: list[Peer] = []
    for module in ("dualfree_", "liblinear_", "scikit_learn", "snap_ml", "cyanure_"):
        try:
            peers += importlib.import_module(f"{__package__}.{module}").PEERS
        except ImportError as error:
            print(f"not compared: {module.strip('_')} ({error})")
    return peers
