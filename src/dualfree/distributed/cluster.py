"""The client's side of the cluster: one stage is one task per partition, added up on the workers, fetched as one reply.

Each task is pinned to the worker that holds its partition, or Dask might move the rows to an idle one. When that worker
has gone, or any task of a stage failed because of one, the whole stage is given up and raises `StageLost`; Dask makes the
partition again elsewhere while the caller asks once more. Every wait ends: with a reply, an error of the task itself,
`StageLost`, or a `ClusterError` whose sentence says what was waited for.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .._checks import Array
from ._dask import distributed
from .partitions import Partitions
from .reply import Reply, fold
from .tasks import EvaluationLost, Stale, handed_over, prepare

_POLL_SECONDS = 1.0
_ANSWER_SECONDS = 15.0  # a scheduler that is alive answers in that time
_SPREAD_SECONDS = 5.0
_LOADING_AGAIN = 3
_FAN_IN = 8
# Up to so many bytes for all partitions together, vectors travel with tasks and replies. More go to one worker, from there to
# the others, and replies are added up on the workers.
_INLINE_BYTES = 1 << 23


class ClusterError(RuntimeError):
    """The cluster did not do its part; the message says what was waited for and what to do.

    Examples
    --------
    >>> from dualfree.distributed import ClusterError
    >>> issubclass(ClusterError, RuntimeError)
    True
    """


class StageLost(Exception):
    """A stage came to nothing because a worker was lost; ask again."""


def current_client(client: Any) -> Any:
    """Return the client given, or the current one."""
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError:
            raise ValueError(
                "client is missing: connect to a cluster with distributed.Client(…) first, or pass client=…."
            ) from None
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a distributed.Client, got {type(client).__name__}.")
    if client.asynchronous:
        raise TypeError("client is asynchronous; pass one made with asynchronous=False.")
    return client


class Cluster:
    """The partitions of one fit and the tasks that run on them.

    Keys begin with ``dualfree-`` and hold a number that is unique to the fit, so that two fits never share a task.
    """

    def __init__(self, partitions: Partitions, client: Any, timeout: float) -> None:
        self.client, self.timeout = client, timeout
        self.fit = uuid.uuid4().int >> 64
        self.stages = 0
        self.bytes_moved = 0
        self.computed: dict[int, Any] = {}  # futures of blocks that were computed for this fit
        self.parts: list[Any] = []
        self.places: list[str | None] = []
        self._weights: tuple[Array, Any] | None = None
        self.partitions = partitions
        self.sources = list(partitions.blocks)
        self.loaded = False
        self.killed = 0  # how often Dask has given a partition up
        self.spread_again = time.monotonic() + _SPREAD_SECONDS
        self.scheduler: str | None = None  # asked for while the first tasks are on their way

    # --- begin and end ----------------------------------------------------------------------------------------------

    def load(self, loss: Any) -> None:
        """Have every block made and checked on some worker."""
        self.loss = loss
        with self._connected():
            self.parts = [self._made(k) for k in range(len(self.sources))]
        self.places = [None] * len(self.parts)

    def _made(self, k: int) -> Any:
        """Return a future of part k."""
        self.stages += 1
        key = self._key("part", self.stages, k)
        about = k, self.loss, self.partitions.n_features, self.fit
        return self.client.submit(prepare, self._block(k), *about, key=key, pure=False)

    def _block(self, k: int) -> Any:
        """Return a future of block k."""
        block = self.sources[k]
        if isinstance(block, distributed.Future):
            return block
        if k not in self.computed:
            self.computed[k] = self.client.compute(block)
        return self.computed[k]

    def keep(self, chosen: list[int]) -> None:
        """Go on with some of the parts; blocks are not needed any more, Dask knows how to make them again."""
        _release([part for k, part in enumerate(self.parts) if k not in chosen])
        _release(self.computed.values())
        self.sources = [self.sources[k] for k in chosen]
        self.parts = [self.parts[k] for k in chosen]
        self.places = [self.places[k] for k in chosen]
        self.computed = {}
        self.loaded = True

    def close(self) -> None:
        """Let go of everything, tasks that still run included."""
        futures = [*self.parts, *self.computed.values()]
        self.parts, self.computed = [], {}
        running = [future for future in futures if not future.done()]
        if running and self.client.status == "running":
            _quietly(lambda: self.client.cancel(running, reason="the fit has ended"))
        _release(futures)
        self._forget_weights()

    def spread(self) -> None:
        """Give partitions to workers that have joined; their dual vectors move along, so that no bit of the answer changes."""
        if time.monotonic() < self.spread_again:
            return
        held: dict[str, list[int]] = {worker: [] for worker in self._workers()}
        for k, place in enumerate(self.places):
            if place in held:
                held[place].append(k)
        while held:
            busiest, idlest = max(held, key=lambda w: len(held[w])), min(held, key=lambda w: len(held[w]))
            if len(held[busiest]) - len(held[idlest]) < 2:
                break
            k = held[busiest].pop()
            held[idlest].append(k)
            self.stages += 1
            left_behind = self.parts[k]
            with self._connected():
                self.parts[k] = self.client.submit(
                    handed_over,
                    left_behind,
                    key=self._key("move", self.stages, k),
                    pure=False,
                    workers=[idlest],
                    allow_other_workers=True,
                )
            _release([left_behind])
            self.places[k] = None  # the next reply says where it is
        self.spread_again = time.monotonic() + _SPREAD_SECONDS

    # --- one stage --------------------------------------------------------------------------------------------------

    def open(self, name: str, function: Callable[..., Reply], *arguments: Any) -> Reply | None:
        """Run `function(block, *arguments)` on the only block, before anything is loaded; None when a worker was lost."""
        try:
            with self._connected():
                return self._run(name, function, [self._block(0)], arguments)
        except StageLost:
            return None

    def stage(
        self,
        name: str,
        function: Callable[..., Reply],
        *arguments: Any,
        w: Array | None = None,
        reply_bytes: float | None = None,
    ) -> Reply:
        """Run `function(part, *arguments)` for every partition and add the replies up.

        `w`, if given, comes last among the arguments. A reply is as large as w is, unless `reply_bytes` says otherwise.
        """
        if reply_bytes is None:
            reply_bytes = 0 if w is None else w.nbytes
        on_workers = len(self.parts) * reply_bytes > _INLINE_BYTES
        with self._connected():
            vectors = [] if w is None else [self._sent(w)]
            return self._run(name, function, self.parts, (*arguments, *vectors), add_on_workers=on_workers)

    def _run(
        self,
        name: str,
        function: Callable[..., Reply],
        inputs: list[Any],
        arguments: tuple[Any, ...],
        add_on_workers: bool = False,
    ) -> Reply:
        self.stages += 1
        futures: list[Any] = []
        try:
            for k, each in enumerate(inputs):
                place = self.places[k] if self.places else None
                futures.append(
                    self.client.submit(
                        function,
                        each,
                        *arguments,
                        key=self._key(name, self.stages, k),
                        pure=False,
                        workers=None if place is None else [place],
                    )
                )
            layer, level = list(futures), 0
            while add_on_workers and len(layer) > 1:
                level += 1
                layer = [
                    self.client.submit(fold, group, key=self._key("reduce", self.stages, level, i), pure=False)
                    for i, group in enumerate(_groups(layer))
                ]
                futures.extend(layer)
            if self.scheduler is None:
                self.scheduler = self._scheduler_id()
            replies = self._results(layer, f"{name} (stage {self.stages})")
            while len(replies) > 1:
                replies = [fold(group) for group in _groups(replies)]
            (reply,) = replies
        except BaseException:
            _quietly(lambda: self.client.cancel(futures, reason="a stage was given up"))
            raise
        finally:
            _release(futures)
        self.places = list(reply.places)
        if reply.vector is not None:
            self.bytes_moved += len(inputs) * reply.vector.nbytes
        return reply

    def patiently(self, ask: Callable[[], Any]) -> Any:
        """Ask again while workers are being lost, for as long as `timeout` allows between two answers."""
        began, losses = time.monotonic(), 0
        while True:
            try:
                return ask()
            except StageLost as error:
                losses += 1
                if time.monotonic() - began > self.timeout:
                    raise ClusterError(
                        f"Workers were lost {losses} times in {self.timeout:g} s without an answer in between, the last "
                        f"time like this: {error}. Look at the workers' logs; they may be running out of memory."
                    ) from error
                self._forget_weights()
                self._forget_lost_places()
                time.sleep(min(2.0, 0.1 * 2**losses))

    def _sent(self, w: Array) -> Any:
        """Return w, or a future of it on the workers; the same one for all stages at the same w."""
        self.bytes_moved += len(self.parts) * w.nbytes
        if len(self.parts) * w.nbytes <= _INLINE_BYTES:
            return w
        if self._weights is None or self._weights[0] is not w:
            self.stages += 1
            key = self._key("weights", self.stages)
            self._forget_weights()
            try:
                # scatter's own timeout is about finding a worker, not about one that does not answer
                scatter = partial(self.client.scatter, {key: w}, hash=False, timeout=self.timeout, asynchronous=True)
                sent = self.client.sync(scatter, callback_timeout=self.timeout)[key]
            except TimeoutError as error:
                self._check_scheduler()
                raise ClusterError(f"No worker took the weights within {self.timeout:g} s: {error}") from error
            except (OSError, KeyError, distributed.CancelledError) as error:  # KeyError: died while the weights arrived
                self._check_scheduler()
                raise StageLost(f"the weights did not arrive: {error}") from error
            self._weights = (w, sent)
        return self._weights[1]

    def _forget_weights(self) -> None:
        if self._weights is not None:
            _release([self._weights[1]])
        self._weights = None

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        """Say so where something fails because the client was closed, by its owner or for want of a scheduler."""
        try:
            yield
        except Exception as error:
            if isinstance(error, ClusterError) or self.client.status not in ("closing", "closed"):
                raise
            raise ClusterError("The connection to the scheduler was lost: the client has been closed.") from error

    # --- waiting ----------------------------------------------------------------------------------------------------

    def _results(self, futures: list[Any], what: str) -> list[Reply]:
        """Wait for replies; look around once a second for reasons why they will never come."""
        began = time.monotonic()
        while True:
            try:
                if not any(future.status == "error" for future in futures):
                    with (
                        self.client.as_current()
                    ):  # Dask waits with the current client, whatever client the futures are of
                        distributed.wait(futures, timeout=_POLL_SECONDS)
                gather = partial(self.client.gather, futures, asynchronous=True)
                replies: list[Reply] = self.client.sync(gather, callback_timeout=_ANSWER_SECONDS)
                return replies
            except TimeoutError as error:
                for future in futures:  # a task of the user's may have timed out itself
                    if future.status == "error" and isinstance(future.exception(_ANSWER_SECONDS), TimeoutError):
                        raise error
            except (EvaluationLost, Stale) as error:
                raise StageLost(str(error)) from error
            except (distributed.CancelledError, OSError, distributed.scheduler.KilledWorker) as error:
                self._check_scheduler()
                self._mend(error)
                raise StageLost(f"{type(error).__name__}: {error}") from error
            self._check_scheduler()
            alive = self._workers()
            gone = sorted({place for place in self.places if place is not None and place not in alive})
            if gone:
                raise StageLost(f"the worker at {', '.join(gone)} has gone")
            if time.monotonic() - began > self.timeout:
                workers = f"{len(alive)} workers are there" if alive else "the cluster has no workers"
                raise ClusterError(
                    f"No answer for {self.timeout:g} s while waiting for {what}; {workers}. "
                    "Raise timeout if this much work takes longer, or look at the workers."
                )

    def _workers(self) -> set[str]:
        try:
            return set(self.client.sync(self.client.scheduler.ncores, callback_timeout=_ANSWER_SECONDS))
        except (TimeoutError, OSError):
            self._check_scheduler()
            return set()

    def _check_scheduler(self) -> None:
        """Ask the scheduler who it is: one that has restarted answers, but knows nothing of this fit."""
        identity = None
        with contextlib.suppress(OSError, RuntimeError, TimeoutError):
            identity = self._scheduler_id()
        if identity != self.scheduler:
            raise ClusterError("The connection to the scheduler was lost: it has stopped or restarted.")

    def _scheduler_id(self) -> str:
        identity = self.client.sync(self.client.scheduler.identity, callback_timeout=_ANSWER_SECONDS)
        return str(identity["id"])

    def _mend(self, error: Exception) -> None:
        """Begin again with partitions that Dask has given up; rows that were scattered to a worker have died with it."""
        broken = [(k, part) for k, part in enumerate(self.parts) if part.status in ("cancelled", "error")]
        # Dask gives up what has seen several workers die. While rows are loaded, they may well be the reason.
        # All are asked for their reason first: to try one again is to try all that share a source with it.
        for k, part, killed in [(k, part, self._was_killed(part)) for k, part in broken]:
            self.killed += killed
            if not self.loaded and not killed:
                raise ClusterError(
                    f"Partition {k} was refused by the cluster: {error}. The scheduler and the workers must be able to "
                    "import everything that the blocks are made with, dualfree included."
                ) from error
            if not self.loaded and self.killed > _LOADING_AGAIN * len(self.parts):
                raise ClusterError(
                    f"Partition {k} could not be loaded: workers died of it again and again. They may be running out of "
                    f"memory; look at their logs, and make the partitions smaller. {error}"
                ) from error
            self.places[k] = None
            if part.status != "cancelled" and self._tried_again(part):
                continue
            if isinstance(self.sources[k], distributed.Future):
                raise ClusterError(
                    f"The rows of partition {k} are gone and cannot be made again: they were put on a worker that has "
                    "died, not loaded by a task. Give the data as Delayed objects that load them."
                ) from error
            _release([part])
            if k in self.computed:
                _release([self.computed.pop(k)])
            self.parts[k] = self._made(k)

    def _was_killed(self, part: Any) -> bool:
        try:
            return isinstance(part.exception(_ANSWER_SECONDS), distributed.scheduler.KilledWorker)
        except (TimeoutError, distributed.CancelledError):
            return False

    def _tried_again(self, part: Any) -> bool:
        """Have Dask try again to make a part it has given up, with all that the part is made of; False: it has forgotten how.

        A new task would not do: the tasks that load its rows are given up too, and keep their names. `Client.retry` would ask
        the same, but stumbles over tasks that the client has no future of.
        """
        ask = partial(self.client.scheduler.retry, keys=[part.key], client=self.client.id)
        try:
            self.client.sync(ask, callback_timeout=_ANSWER_SECONDS)
        except KeyError:
            return False
        except (OSError, TimeoutError):
            self._check_scheduler()
        return True

    def _forget_lost_places(self) -> None:
        alive = self._workers()
        self.places = [place if place in alive else None for place in self.places]

    def _key(self, name: str, *numbers: int) -> str:
        return "-".join(["dualfree", name, str(self.fit), *map(str, numbers)])


def _groups(layer: list[Any]) -> list[list[Any]]:
    """What is added up together: on the workers or here, in the same order."""
    return [layer[i : i + _FAN_IN] for i in range(0, len(layer), _FAN_IN)]


def total_of(reply: Reply) -> Array:
    """The vector of a reply that has one."""
    assert reply.vector is not None
    return np.asarray(reply.vector)


def _release(futures: Iterable[Any]) -> None:
    """Let go of futures: aloud, for the last reference may live long, in the traceback of a stage that was lost."""
    for future in futures:
        _quietly(future.release)


def _quietly(act: Callable[[], Any]) -> None:
    """Do what can be done to clean up; where the cluster has gone, the reason must be heard and not what follows from it."""
    with contextlib.suppress(Exception, distributed.CancelledError):
        act()
