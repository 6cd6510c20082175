"""The cluster as the client sees it: which one it is, and waiting for it without waiting for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._optional import require


def current_client(client: Any = None) -> Any:
    """Return the given client, or the current one; a sentence where there is none."""
    distributed = require("distributed", "dask")
    if client is None:
        try:
            return distributed.get_client()
        except ValueError:
            raise ValueError(
                "There is no Dask client. Make one first, with dask.distributed.Client(), or pass client=."
            ) from None
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a dask.distributed.Client, got {type(client).__name__}.")
    return client


def make_resident(client: Any, blocks: Sequence[Any]) -> list[Any]:
    """Return a future for each block, so that its worker keeps it until nobody needs it."""
    future = require("distributed", "dask").Future
    delayed = [block for block in blocks if not isinstance(block, future)]
    started = iter(client.compute(delayed))
    return [block if isinstance(block, future) else next(started) for block in blocks]


def collect(client: Any, futures: Sequence[Any], what: str, timeout: float) -> list[Any]:
    """Return the small results of one task per partition; an error names the first partition that has none.

    After `timeout` seconds in which none became ready, a TimeoutError says so.
    """
    distributed = require("distributed", "dask")
    waiting: Any = list(futures)
    while waiting:
        try:
            waiting = list(distributed.wait(waiting, timeout=timeout, return_when="FIRST_COMPLETED").not_done)
        except TimeoutError:
            workers = len(client.nthreads())
            raise TimeoutError(
                f"Nothing came of reading {what} for {timeout:g} s: {len(futures) - len(waiting)} of {len(futures)} partitions "
                f"are ready, the cluster has {workers} worker{'' if workers == 1 else 's'}. If that is as it should be, "
                "raise timeout."
            ) from None
    for k, future in enumerate(futures):
        if future.status == "error":
            error = future.exception()
            if isinstance(error, distributed.KilledWorker):
                raise MemoryError(
                    f"Partition {k} of {what} could not be made: the workers that tried died, most likely for lack of memory."
                )
            raise ValueError(f"Partition {k} of {what} could not be made: {type(error).__name__}: {error}") from None
        if future.status != "finished":
            raise ValueError(
                f"Partition {k} of {what} is gone ({future.status}): the data were lost with their worker."
            )
    return list(client.gather(list(futures)))
