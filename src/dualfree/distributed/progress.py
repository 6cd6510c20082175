"""One line on standard error that says how far a fit has come."""

from __future__ import annotations

import sys

from ..certificate import Certificate


class ProgressLine:
    """Rewrites its line at each evaluation; writes nothing when it is off."""

    def __init__(self, shown: bool, tol: float) -> None:
        self.shown, self.tol = shown, tol
        self.written = False

    def update(self, number: int, seconds: float, certificate: Certificate, workers: int) -> None:
        """Show the latest evaluation."""
        if not self.shown:
            return
        self.written = True
        sys.stderr.write(
            f"\rround {number}  relative gap {certificate.relative_gap:.1e} (tol {self.tol:.0e})  "
            f"{seconds:.1f} s  {workers} worker{'s' if workers != 1 else ''}\033[K"
        )
        sys.stderr.flush()

    def close(self) -> None:
        """End the line."""
        if self.written:
            sys.stderr.write("\n")
            sys.stderr.flush()
