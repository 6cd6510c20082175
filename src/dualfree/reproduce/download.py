"""A download that can be resumed and that is checked before it counts."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

_CHUNK = 1 << 16
_TIMEOUT = 20.0  # seconds without a byte
Progress = Callable[[int, int | None], None]
"""Called with the bytes at hand and the size of the whole file, where the server tells it."""


class DownloadError(OSError):
    """A file could not be had from the network, or is not the one that was asked for."""


def download(url: str, target: Path, checksum: str, progress: Progress | None = None) -> Path:
    """Fetch `url` into `target`, going on where an earlier attempt stopped.

    Parameters
    ----------
    url : str
        Where the file is.
    target : Path
        Where it goes. Until its checksum has been seen to be right it is called ``target.part``.
    checksum : str
        ``algorithm:digest``, for instance ``sha256:…``.
    progress : callable, optional
        See `Progress`.

    Returns
    -------
    Path
        `target`.
    """
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _fetch(url, part, progress)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise DownloadError(f"{url} cannot be downloaded ({reason}). Put the file into --data-dir by hand.") from None
    found = _digest(part, checksum.partition(":")[0])
    if found != checksum:
        part.unlink()  # to go on from a wrong file would never end well
        raise DownloadError(f"{url}: the file has the checksum {found}, {checksum} was expected; it was thrown away.")
    os.replace(part, target)
    return target


def _fetch(url: str, part: Path, progress: Progress | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is left to send: the part is complete, or not this file at all
            return
        raise
    with response:
        goes_on = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if not goes_on:
            have = 0  # the server sends the whole file
        length = response.headers.get("Content-Length")
        size = have + int(length) if length is not None and length.isdigit() else None
        with open(part, "ab" if goes_on else "wb") as file:
            while block := response.read(_CHUNK):
                file.write(block)
                have += len(block)
                if progress is not None:
                    progress(have, size)
    if size is not None and have < size:
        raise ConnectionError(f"the connection ended after {have:,} of {size:,} bytes; run the command again to go on")


def _digest(path: Path, algorithm: str) -> str:
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return f"{algorithm}:{digest.hexdigest()}"
