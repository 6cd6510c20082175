"""A small problem made on the spot."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Gaussian features, a linear signal with noise."""

    name = "simulated"
    parameters = {
        "task": ["binary", "regression"],
        "n_samples": [2000],
        "n_features": [50],
        "density": [1.0],
    }
    test_parameters = {"n_samples": [50], "n_features": [5]}

    def get_data(self) -> dict[str, Any]:
        rng = np.random.default_rng(self.get_seed())
        X = rng.normal(size=(self.n_samples, self.n_features))
        if self.density < 1:
            X = scipy.sparse.csr_matrix(X * (rng.random(X.shape) < self.density))
        score = X @ rng.normal(size=self.n_features) + rng.normal(size=self.n_samples)
        y = score if self.task == "regression" else np.where(score > 0, 1.0, -1.0)
        return {"X": X, "y": y, "task": self.task}
