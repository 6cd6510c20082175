"""The one place that imports Dask."""

from __future__ import annotations

from .._optional import require

dask = require("dask", "dask")
distributed = require("distributed", "dask")
dask_array = require("dask.array", "dask")
Delayed = require("dask.delayed", "dask").Delayed
