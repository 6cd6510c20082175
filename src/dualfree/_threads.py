"""One thread means one thread, in BLAS as well.

numpy hands dot products and small matrices to a threaded BLAS, which takes every core for work that one would finish
sooner; on a busy machine a dot product of 50,000 numbers can then take milliseconds.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries: once is enough


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS runs on one thread."""
    limits: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limits
