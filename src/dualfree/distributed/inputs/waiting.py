"""Having blocks made on the workers, and waiting for what they say, but not for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._dask import distributed
from ..cluster import ClusterError


def make_resident(client: Any, blocks: Sequence[Any]) -> list[Any]:
    """Return a future for each block, so that its worker keeps it until nobody needs it."""
    delayed = [block for block in blocks if not isinstance(block, distributed.Future)]
    started = iter(client.compute(delayed))
    return [block if isinstance(block, distributed.Future) else next(started) for block in blocks]


def release(futures: Iterable[Any]) -> None:
    """Tell the cluster that nobody needs these blocks any more."""
    for future in futures:
        future.release()


def collect(client: Any, futures: Sequence[Any], what: str, timeout: float) -> list[Any]:
    """Return the small results of one task per partition; an error names the first partition that has none.

    After `timeout` seconds in which none became ready, a ClusterError says so.
    """
    waiting: Any = list(futures)
    while waiting:
        try:
            with client.as_current():  # Dask waits with the current client, whatever client the futures are of
                done = distributed.wait(waiting, timeout=timeout, return_when="FIRST_COMPLETED")
            waiting = list(done.not_done)
        except TimeoutError:
            workers = len(client.nthreads())
            raise ClusterError(
                f"Nothing came of reading {what} for {timeout:g} s: {len(futures) - len(waiting)} of {len(futures)} "
                f"partitions are ready, the cluster has {workers} worker{'' if workers == 1 else 's'}. "
                "Raise timeout if this much work takes longer, or look at the workers."
            ) from None
        except distributed.CancelledError:
            raise ClusterError(
                f"A part of {what} is not on this cluster: it was persisted on another one, or was lost with a worker."
            ) from None
    for k, future in enumerate(futures):
        if future.status == "error":
            error = future.exception()
            if isinstance(error, distributed.KilledWorker):
                raise ClusterError(
                    f"Partition {k} of {what} could not be made: the workers that tried died, perhaps for lack of memory."
                ) from None
            raise ValueError(f"Partition {k} of {what} could not be made: {type(error).__name__}: {error}") from None
        if future.status != "finished":
            raise ClusterError(f"Partition {k} of {what} is gone ({future.status}): it was lost with its worker.")
    return list(client.gather(list(futures)))
