"""Ctrl-C during a fit: the first keeps the best model so far, the second stops at once."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

from .progress import show_cursor

_MESSAGE = b"\ndualfree: stopping; the best model so far is kept. Press Ctrl-C again to stop at once.\n"


@contextlib.contextmanager
def first_press_keeps_the_model() -> Iterator[None]:
    """While the block runs, the first Ctrl-C raises KeyboardInterrupt in the solver, which then returns its best point.

    The second is left to the operating system, which needs no cooperation: it ends the process even inside compiled code.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_press(number: int, frame: Any) -> None:
        show_cursor()
        os.write(2, _MESSAGE)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
