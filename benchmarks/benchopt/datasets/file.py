"""A data file of your own: a NumPy archive or LIBSVM text, read as the comparison of this project reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmark_utils.repository import datasets
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Named on the command line: -d "file[path=data/a9a.npz]"."""

    name = "file"
    parameters = {"path": [None], "dtype": ["float64"]}

    def get_data(self) -> dict[str, Any]:
        if self.path is None:
            return {"X": None, "y": None, "task": ""}
        path = Path(self.path)
        data = datasets.load(path.stem, path, self.dtype)
        return {"X": data.X, "y": data.y, "task": data.task}
