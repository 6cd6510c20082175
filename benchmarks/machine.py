"""What was measured, and on what: stored with every row."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_ALSO = ("numpy", "scipy", "numba")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def machine() -> str:
    """Return processor, cores, system and Python in one line."""
    return (
        f"{_processor()}, {cores()} of {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )


@cache
def versions(packages: tuple[str, ...]) -> str:
    """Return the versions of packages, with those that do the arithmetic."""
    found = []
    for package in dict.fromkeys((*packages, *_ALSO)):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue  # run from the sources, without installing: the commit says which
    return ", ".join(found)


@cache
def commit() -> str:
    """Return the commit of this checkout, with + where files differ from it; empty outside git."""
    here = Path(__file__).parent
    git = ["git", "-C", str(here)]
    try:
        name = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return name.stdout.strip() + ("+" if changed.stdout.strip() else "")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
