"""How the kernels are compiled, and how the machine code is kept between processes.

Three decorators. :func:`kernel` marks an entry point that Python calls: its machine code is cached on disk, so that a new
process loads it instead of compiling it. :func:`device` marks a piece that only kernels call: it is compiled into them, and
has no entry of its own, which would take a fifth of the time of all compilations. :func:`scalar` marks a function of numbers,
such as a loss, that both may call.

Numba's own cache looks at the file of the cached function alone. A kernel here is made of pieces from other files (the
row view, the losses), so an edit there would leave stale machine code behind: a silent wrong answer. The cache key
therefore also holds a stamp of every source file of the package.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher

# Sums may be re-associated so that dot products use vector registers; nothing else is relaxed (no assumption about NaN,
# infinity or signed zero). Any order of summation obeys the error bounds that the certificate uses.
REASSOCIATE = frozenset({"reassoc", "contract"})


@functools.cache
def _source_stamp() -> tuple[tuple[str, int, int], ...]:
    root = Path(__file__).parent
    stamp = []
    for folder in (
        root,
        root / "losses",
        root / "sampling",
        root / "solvers",
        root / "multinomial",
        root / "io" / "kernels",
    ):
        for entry in os.scandir(folder):
            if entry.name.endswith(".py"):
                status = entry.stat()
                stamp.append((entry.name, status.st_mtime_ns, status.st_size))
    return tuple(sorted(stamp))


class _Announcement:
    """Says once per process that a compilation is under way, because the first one takes seconds."""

    made = False

    @classmethod
    def make(cls) -> None:
        if cls.made or os.environ.get("DUALFREE_QUIET"):
            return
        cls.made = True
        print(
            "dualfree: compiling kernels for this machine (some seconds, once; set DUALFREE_QUIET=1 to hide this line)",
            file=sys.stderr,
            flush=True,
        )


class _PackageCache(FunctionCache):  # type: ignore[misc]
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        loaded = None
        if not _has_user_loss(sig):
            try:
                loaded = super().load_overload(sig, target_context)
            except Exception:
                self.flush()  # a damaged index, or one that another version wrote: begin a new one
        if loaded is None:
            _Announcement.make()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        if not _has_user_loss(sig):  # it could not be loaded again: its functions live in the user's process
            super().save_overload(sig, data)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # Numba's own key also holds what a closure refers to, by value; another kernel's value is a new one in each process.
        code = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        return sig, codegen.magic_tuple(), code, _source_stamp()


def _has_user_loss(sig: Any) -> bool:
    return "UserLoss(" in str(sig)


class _Piece(CPUDispatcher):  # type: ignore[misc]
    """Says so when it is called from Python: numba would jump to an address where there is nothing."""

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self.py_func.__qualname__} is a piece of kernels; mark it as a kernel or scalar to call it.")


def kernel(function: Callable[..., Any] | None = None, *, keep: bool = True, merge: bool = False) -> Any:
    """Compile an entry point: no Python object inside, the GIL released, machine code cached on disk unless told otherwise.

    With `merge`, a kernel that calls it takes it in before anything is compiled: all that it calls in turn is optimised once
    less.
    """
    if function is None:
        return functools.partial(kernel, keep=keep, merge=merge)
    inline = "always" if merge else "never"
    dispatcher: Any = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, inline=inline)(function)
    if not keep:
        return dispatcher
    # Without a folder to write to (a read-only system, no home), kernels compile anew in each process.
    with contextlib.suppress(RuntimeError):
        dispatcher._cache = _PackageCache(function)
    return dispatcher


def device(
    function: Callable[..., Any] | None = None,
    *,
    contract: bool = False,
    reassociate: bool = False,
    inline: bool = False,
) -> Any:
    """Compile a piece of a kernel, which Python cannot call.

    With `contract` a product and a sum may become one fused operation; with `reassociate` sums may be taken in any order, too.
    With `inline` it becomes a part of whatever calls it: worth it where the call would cost as much as the work.
    """
    if function is None:
        return functools.partial(device, contract=contract, reassociate=reassociate, inline=inline)
    relaxed: Any = set(REASSOCIATE) if reassociate else {"contract"} if contract else False
    piece: Any = numba.njit(
        nogil=True,
        error_model="numpy",
        fastmath=relaxed,
        forceinline=inline,
        no_cpython_wrapper=True,
        no_cfunc_wrapper=True,
    )(function)
    piece.__class__ = _Piece
    return piece


def scalar(function: Callable[..., Any]) -> Any:
    """Compile a function of numbers that may be called from Python as well as by kernels."""
    return kernel(function, keep=False)
