"""Threads that wait awake for their share of a kernel.

A fit asks for hundreds of passes over the rows, each of them a millisecond or less; to wake a sleeping thread for one takes
a tenth of that or several. So the threads of a team stay inside a kernel, `serve`, for as long as there is work, and look at
a number that the caller raises. `Workers.run` has every thread run ``piece(own, *arguments)``, `own` being its number and the
caller's own 0, and returns when all are done: a microsecond is lost. A piece is a kernel that returns nothing, and must write
where no other one reads or writes.

A thread may be late: where other programs, or another library's threads, want the same core, it waits milliseconds for its
turn. A caller that is done with its own part takes over the parts that nobody has begun. Who does a part changes nothing in
the result.

`orders` has a row of numbers for each thread, on cache lines of their own. The caller's: how many pieces there have been, and
where the present one and its arguments are in memory. Each other thread's: how many of its parts it has done, whether the last
failed, and how many have been begun, by itself or by the caller.
"""

from __future__ import annotations

import _thread
import os
import threading
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ._jit import device, kernel
from .atomics import SPINS, acquire, offer_core, release, swapped

_PIECE_TYPES = (types.voidptr, types.intp)
_ROW = 32  # numbers of a thread's row: four cache lines
_BYTES = 8 * _ROW
_GIVEN, _PIECE, _ARGUMENTS = 0, 1, 2  # of the caller's row
_DONE, _FAILED, _BEGUN = 0, 1, 16  # of any other; the last on a cache line of its own
_END = 0  # instead of a piece
# A thread without work sleeps after so many looks, those after the first `SPINS` about half a microsecond each; and looks again
# after so many seconds, should the bell have been rung too early.
_PATIENCE, _NAP = SPINS + 20_000, 0.005


class Workers:
    """`size` − 1 threads beside the caller's.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree._jit import kernel
    >>> from dualfree.workers import Workers
    >>> @kernel
    ... def double(own, numbers):
    ...     numbers[own] *= 2
    >>> workers, numbers = Workers(2), np.arange(1.0, 3.0)
    >>> workers.run(double, (numbers,))
    >>> workers.end()
    >>> numbers
    array([2., 4.])
    """

    def __init__(self, size: int) -> None:
        self.size, self._process = size, os.getpid()
        self._orders = np.zeros((size, _ROW), dtype=np.int64)
        self._asleep, self._at_work = False, False
        if size == 1:
            return
        _load()
        self._bell = threading.Event()
        try:
            # Not `threading.Thread`, which waits until the thread runs: a tenth of a millisecond, and as long at the end.
            for own in range(1, size):
                _thread.start_new_thread(self._work, (own,))
        except BaseException:  # a Ctrl-C: those that have begun must not wait for ever
            _send_home(self._orders)
            raise
        self._at_work = True

    def run(self, piece: Any, arguments: tuple[Any, ...]) -> None:
        """Run ``piece(own, *arguments)`` on all threads, the caller's among them, and wait for them."""
        if self.size == 1:
            piece(0, *arguments)
            return
        if self.lead(_shared(piece), (arguments,)):
            # No error leaves a thread. What failed, a user's loss perhaps, tells it again.
            for own in range(self.size):
                piece(own, *arguments)
            raise MemoryError("A thread had not enough memory.")

    def lead(self, leader: Any, arguments: tuple[Any, ...]) -> Any:
        """Call a kernel that takes `orders` first and shares out pieces itself, with `share_out`; return what it returns."""
        if self.size > 1:
            self._call_up()
        return leader(self._orders, *arguments)

    def _call_up(self) -> None:
        """See to it that the threads are awake."""
        if not self._at_work or self._process != os.getpid():
            raise RuntimeError(
                "The threads have been sent home, or belong to the process that this one was forked from."
            )
        self._wake()

    def _wake(self) -> None:
        if self._asleep:
            self._asleep = False
            self._bell.set()

    def end(self) -> None:
        """Send the threads home. They go by themselves; nobody waits for them."""
        if self._at_work:
            self._at_work = False
            _send_home(self._orders)
            self._wake()

    def _work(self, own: int) -> None:
        looks = _PATIENCE
        while serve(self._orders, own, looks):
            self._bell.clear()
            self._asleep = True
            looks = _PATIENCE if self._bell.wait(_NAP) else 1


# --- in compiled code -------------------------------------------------------------------------------------------------------


@cache
def _shared(piece: Any) -> Any:
    """Return the kernel that has a piece run on all threads."""

    def shared(orders: Any, arguments: Any) -> int:
        return share_out(orders, piece, arguments)

    shared.__qualname__ = f"{piece.__module__}.{piece.__name__}"  # the name under which its machine code is kept
    # of other pieces nobody would know when they change
    return kernel(shared, keep=piece.__module__.startswith("dualfree."))


@cache
def _load() -> None:
    """Compile what threads need, or load it, before there are any: an error there would leave the caller waiting for ever."""
    nobody = np.zeros((2, _ROW), dtype=np.int64)
    _send_home(nobody)
    serve(nobody, 1, 1)


@intrinsic
def share_out(typing_context: Any, orders: Any, piece: Any, arguments: Any) -> Any:
    """Make of the piece a function of (where its arguments are, own), which any thread can call, and have all call it.

    Return 1 if it failed in one.
    """
    compiled = piece.get_call_type(typing_context, (types.intp, *arguments.types), {})
    handing_over = typing_context.resolve_value_type(_hand_over)
    handed_over = handing_over.get_call_type(typing_context, (orders, types.int64, types.int64), {})

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        convention, module = context.call_conv, builder.module
        packed = cgutils.alloca_once_value(builder, given[2])
        shape = convention.get_function_type(types.none, _PIECE_TYPES)
        function = ir.Function(module, shape, name=module.get_unique_name("piece"))
        function.linkage = "internal"
        convention.decorate_function(function, ["where", "own"], _PIECE_TYPES)
        inside = ir.IRBuilder(function.append_basic_block("entry"))
        where, own = convention.get_arguments(function)
        unpacked = cgutils.unpack_tuple(inside, inside.load(inside.bitcast(where, packed.type)))
        borrowed = (
            _borrowed(context, inside, kind, value) for kind, value in zip(arguments.types, unpacked, strict=True)
        )
        _called(context, inside, piece, compiled, (own, *borrowed))
        convention.return_value(inside, context.get_dummy_value())
        number = ir.IntType(64)
        addresses = (builder.ptrtoint(function, number), builder.ptrtoint(packed, number))
        return _called(context, builder, handing_over, handed_over, (given[0], *addresses))

    return types.int64(orders, piece, arguments), generate


def _borrowed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return an argument as one that nobody owns, arrays inside tuples, too: the caller keeps them until the threads are done.

    Otherwise each view that a piece takes of an array would be counted, twice, in one number for all threads: they would wait
    for one another at every few hundred rows.
    """
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for k, each in enumerate(kind.types):
            part = _borrowed(context, builder, each, builder.extract_value(value, k))
            value = builder.insert_value(value, part, k)
    return value


def _called(context: Any, builder: Any, function: Any, signature: Any, arguments: tuple[Any, ...]) -> Any:
    """Have a compiled function called."""
    call = context.get_function(function, signature)
    context.add_linking_libs(getattr(call, "libs", ()))
    return call(builder, arguments)


@device
def _hand_over(orders: Any, address: int, where: int) -> int:
    """Have all threads call a piece; return 1 if it failed in one."""
    begin = orders.ctypes.data
    orders[0, _PIECE], orders[0, _ARGUMENTS] = address, where
    given = orders[0, _GIVEN] + 1
    release(np.uintp(begin + 8 * _GIVEN), given)
    # The address is read back, so that the compiler does not know it and compiles the piece once.
    failed = _call(acquire(np.uintp(begin + 8 * _PIECE)), where, 0)
    for other in range(1, orders.shape[0]):
        if _may_begin(orders, other, given):
            failed |= _call(acquire(np.uintp(begin + 8 * _PIECE)), where, other)
            continue
        waited = 0
        while acquire(np.uintp(begin + other * _BYTES + 8 * _DONE)) < given:
            waited += 1
            if waited >= SPINS:
                offer_core()
        failed |= orders[other, _FAILED]
    return failed


@device
def _may_begin(orders: Any, own: int, given: int) -> bool:
    """Whether nobody has begun a part; if so, it is the caller's now."""
    return swapped(np.uintp(orders.ctypes.data + own * _BYTES + 8 * _BEGUN), given - 1, given)


@kernel
def serve(orders: Any, own: int, patience: int) -> bool:
    """Run pieces as they come; return True after so many looks in vain, False at the end."""
    begin = orders.ctypes.data
    seen = acquire(np.uintp(begin + own * _BYTES + 8 * _BEGUN))
    while True:
        waited, given = 0, acquire(np.uintp(begin + 8 * _GIVEN))
        while given <= seen:
            waited += 1
            if waited >= SPINS:
                offer_core()
            if waited >= patience:
                return True
            given = acquire(np.uintp(begin + 8 * _GIVEN))
        if orders[0, _PIECE] == _END:
            return False
        seen = given
        if _may_begin(orders, own, given):  # from here on the caller waits: the piece stays the same
            orders[own, _FAILED] = _call(orders[0, _PIECE], orders[0, _ARGUMENTS], own)
            release(np.uintp(begin + own * _BYTES + 8 * _DONE), given)


@kernel
def _send_home(orders: Any) -> None:
    orders[0, _PIECE] = _END
    release(np.uintp(orders.ctypes.data + 8 * _GIVEN), orders[0, _GIVEN] + 1)


@intrinsic
def _call(typing_context: Any, address: Any, where: Any, own: Any) -> Any:
    """Call a piece; return 1 if it failed."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = context.call_conv.get_function_type(types.none, _PIECE_TYPES)
        function = builder.inttoptr(given[0], kind.as_pointer())
        arguments = [builder.inttoptr(given[1], ir.IntType(8).as_pointer()), given[2]]
        status, _ = context.call_conv.call_function(builder, function, types.none, _PIECE_TYPES, arguments)
        return builder.zext(status.is_error, ir.IntType(64))

    return types.int64(types.int64, types.int64, types.intp), generate
