"""Files that are either written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def written_in_place(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the name of a temporary file beside `path`; it becomes `path` if the block ends well, and vanishes if not.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dualfree.io import written_in_place
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written_in_place(folder / "answer.txt") as temporary:
    ...     _ = temporary.write_text("42")
    >>> (folder / "answer.txt").read_text(), len(list(folder.iterdir()))
    ('42', 1)
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a folder; name a file.")
        yield target  # a device or a pipe: there is nothing to move into place
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {target.parent}.")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Return the process's mask for new files; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
