"""The same problem over a Dask cluster: rows in partitions, α on the workers, only w travels."""

from __future__ import annotations

from .partitions import Block, Partitions
from .result import DistributedResult
from .solve import solve

__all__ = ["Block", "DistributedResult", "Partitions", "solve"]
