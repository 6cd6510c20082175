"""A meeting point for threads inside kernels.

Waking a thread that sleeps takes a hundred microseconds or more; threads that meet every few hundred microseconds must wait
awake. Each thread has a number of its own, on a cache line of its own, which only it writes: how many times it has arrived.
To meet is to raise one's own number and to read the others' until all have come as far. Writes are released and reads
acquired, so that everything a thread wrote before the meeting is seen by all after it. A thread that waits long offers its
core to others.

All threads must come. What they do between meetings must not be able to fail: no memory is asked for, no function of a user
is called. A Ctrl-C is heard when the kernel has ended.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ._checks import Array
from ._jit import device

_SLOT = 16  # numbers between two threads' own: two cache lines
SPINS = 20_000

offer_core = types.ExternalFunction("sched_yield" if os.name == "posix" else "SwitchToThread", types.intc())


def meeting_point(size: int) -> Array:
    """Return what `size` threads need in order to meet: a row for each."""
    return np.zeros((size, _SLOT), dtype=np.int64)


@intrinsic
def release(typing_context: Any, address: Any, value: Any) -> Any:
    """Write a number so that whoever reads it also sees all that was written before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        builder.store_atomic(arguments[1], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(types.uintp, types.int64), generate


@intrinsic
def acquire(typing_context: Any, address: Any) -> Any:
    """Read a number that another thread may be writing."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.uintp), generate


@intrinsic
def swapped(typing_context: Any, address: Any, old: Any, new: Any) -> Any:
    """Replace a number by a new one if it is the old one, so that nobody can come in between; return whether it was."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        found = builder.cmpxchg(pointer, arguments[1], arguments[2], "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return types.boolean(types.uintp, types.int64, types.int64), generate


@device
def meet(arrivals: Any, own: int) -> None:
    """Wait until all threads have come here as often as this one."""
    times = arrivals[own, 0] + 1
    release(np.uintp(arrivals.ctypes.data + own * _SLOT * 8), times)
    for other in range(arrivals.shape[0]):
        address = np.uintp(arrivals.ctypes.data + other * _SLOT * 8)
        waited = 0
        while acquire(address) < times:
            waited += 1
            if waited >= SPINS:
                offer_core()
