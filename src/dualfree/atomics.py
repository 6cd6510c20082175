"""Numbers that several threads read and write inside kernels.

Writes are released and reads acquired: who reads a number also sees all that was written before it.
"""

from __future__ import annotations

import os
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

SPINS = 20_000  # looks, after which a waiting thread offers its core to others

offer_core = types.ExternalFunction("sched_yield" if os.name == "posix" else "SwitchToThread", types.intc())


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
