"""The one exception of this folder."""

from __future__ import annotations


class DataError(ValueError):
    r"""A data or model file cannot be used; the message names the file, the place in it and what was expected.

    Examples
    --------
    >>> from io import BytesIO
    >>> from dualfree.io import read_libsvm
    >>> read_libsvm(BytesIO(b"+1 1:0.5\n-1 2:high\n"), name="tiny.svm")
    Traceback (most recent call last):
    ...
    dualfree.io.errors.DataError: tiny.svm, line 2: expected index:value with a number as value, got '2:high'.
    """

    def __init__(self, name: str, problem: str, line: int | None = None) -> None:
        where = name if line is None else f"{name}, line {line}"
        super().__init__(f"{where}: {problem}")


def shown(text: bytes | str, longest: int = 40) -> str:
    """Return a quoted excerpt of `text` that is safe to print."""
    decoded = text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else text
    cut = decoded if len(decoded) <= longest else decoded[:longest] + "…"
    return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut) + "'"
