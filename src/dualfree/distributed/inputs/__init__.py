"""From what Dask users have to `Partitions`. The data go from where they are to the workers, never to the client."""

from __future__ import annotations

from typing import Any

from .._dask import Delayed, distributed
from ..partitions import Partitions
from .arrays import from_array, from_delayed, scatter
from .blocks import is_lazy
from .files import from_libsvm, read_libsvm_files
from .frames import feature_names, from_dataframe

__all__ = ["from_array", "from_dataframe", "from_delayed", "from_libsvm", "partition", "read_libsvm_files", "scatter"]


def is_dask_array(X: Any) -> bool:
    """Return whether X is a dask array."""
    return is_lazy(X) and hasattr(X, "numblocks")


def is_dask_frame(X: Any) -> bool:
    """Return whether X is a dask dataframe."""
    return is_lazy(X) and hasattr(X, "npartitions") and hasattr(X, "columns")


def is_partitioned(X: Any) -> bool:
    """Return whether X is a dask collection, `Partitions` or a list of delayed partitions; other data are in memory."""
    return isinstance(X, Partitions) or is_dask_array(X) or is_dask_frame(X) or _is_list_of_parts(X)


def partition(X: Any, y: Any = None, sample_weight: Any = None) -> tuple[Partitions, list[Any] | None]:
    """Return the partitions of data that are not in memory, and the names of the columns where they have some."""
    if isinstance(X, Partitions) or _is_list_of_parts(X):
        if y is not None or sample_weight is not None:
            raise ValueError("y and sample_weight are part of the partitions already; leave them out.")
        return (X if isinstance(X, Partitions) else from_delayed(X)), None
    if y is None:
        raise ValueError("y is missing. Only partitions, which hold it already, come without it.")
    if is_dask_array(X):
        return from_array(X, y, sample_weight), None
    return from_dataframe(X, y, sample_weight), feature_names(X, y, sample_weight)


def refuse_what_holds_no_rows(X: Any) -> None:
    """Say what to do with a path or a single delayed value, which look like data and are none."""
    if isinstance(X, Delayed):
        raise TypeError("X is one delayed value. Pass a list of delayed partitions, each of which gives (X, y).")
    if isinstance(X, (str, bytes)) or hasattr(X, "__fspath__"):
        raise TypeError(
            f"X must hold rows, got the path {X!r}. Read files on the workers with dualfree.distributed.from_libsvm or "
            "dask.dataframe.read_parquet, and pass what that returns."
        )


def _is_list_of_parts(X: Any) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (Delayed, distributed.Future))
