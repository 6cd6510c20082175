"""What the seconds were measured on."""

from __future__ import annotations

import os
import platform


def machine() -> str:
    """Return what the seconds were measured on."""
    return f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
