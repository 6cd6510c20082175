"""The comparison of this project, importable: benchopt knows only its own folder."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = str(Path(__file__).parents[3])
if _ROOT not in sys.path:
    sys.path.append(_ROOT)

from benchmarks import datasets, peers  # noqa: E402

__all__ = ["datasets", "peers"]
