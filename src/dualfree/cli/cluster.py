"""The cluster that ``--cluster`` names: an address, or processes on this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import re
import signal
import threading
from collections.abc import Iterator
from typing import Any

import click

from .._optional import require

_CONNECT_SECONDS = 20.0
_LOCAL = re.compile(r"local(?::(\d+))?")


def cluster_address(text: str) -> str:
    """Read the value of --cluster: ``local``, ``local:4``, ``host:8786`` or ``tcp://host:8786``."""
    if _LOCAL.fullmatch(text):
        if text.endswith(":0"):
            raise click.BadParameter(f"{text!r} has no workers; write local:1 or more.")
        return text
    if not re.fullmatch(r"(?:[a-z]+://)?[^/\s:]+(?::[^/\s:]+)*:\d+(?:/\S*)?", text):
        raise click.BadParameter(
            f"{text!r} is neither the address of a scheduler, such as tcp://host:8786, nor local:4 for processes here."
        )
    return text


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to the cluster; give the client. One that was started here ends with the block."""
    distributed = require("distributed", "dask")
    # What a user must know is said in sentences; the rest belongs into the logs of scheduler and workers.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    local = _LOCAL.fullmatch(address)
    with contextlib.ExitStack() as stack:
        if local:
            with _interrupts_ignored():  # Ctrl-C reaches every process of the terminal; the workers must survive it
                cluster: Any = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=int(local[1] or distributed.system.CPU_COUNT),
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",
                        silence_logs=logging.CRITICAL,
                    )
                )
            yield stack.enter_context(distributed.Client(cluster, set_as_default=False))
            return
        try:
            client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise click.ClickException(
                f"no scheduler answered at {address} within {_CONNECT_SECONDS:g} s ({_first_line(error)}). Is it running, and "
                "can this machine reach it?"
            ) from None
        yield stack.enter_context(client)


def has_dashboard() -> bool:
    """Return whether Dask's dashboard can be shown."""
    return importlib.util.find_spec("bokeh") is not None


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C for a moment; processes that are started meanwhile ignore it for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0].rstrip(".") or type(error).__name__
