"""The same problem over a Dask cluster: rows in partitions, α on the workers, only w travels."""

from __future__ import annotations

from .cluster import ClusterError
from .fit import RoundState
from .inputs import from_array, from_dataframe, from_delayed, from_libsvm, scatter
from .partitions import Block, Partitions
from .result import DistributedResult
from .solve import solve

__all__ = [
    "Block",
    "ClusterError",
    "DistributedResult",
    "Partitions",
    "RoundState",
    "from_array",
    "from_dataframe",
    "from_delayed",
    "from_libsvm",
    "scatter",
    "solve",
]
