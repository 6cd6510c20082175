"""Optional dependencies, imported in one place."""

from __future__ import annotations

import importlib
from typing import Any


def require(module: str, extra: str) -> Any:
    """Import an optional module, or say which extra installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"{package} is needed here and is not installed. Install it with: pip install 'dualfree[{extra}]'"
        ) from error
