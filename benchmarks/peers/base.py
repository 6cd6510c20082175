"""What a peer is: something that minimises (1/n) Σ φ(x_i·w; y_i) + (λ/2) ‖w‖² and can be asked for more accuracy.

Every peer solves exactly this problem: no intercept, scalings translated here. One file for each package; to add a package, add
a file with `PEERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Fit = Callable[[Any, np.ndarray, str, float, float, int], np.ndarray]


@dataclass(frozen=True)
class Peer:
    """A solver of some package.

    `fit(X, y, loss, lam, tol, threads)` returns w. `tolerances` go from loose to tight; one entry where there is nothing to
    set.
    """

    name: str
    losses: tuple[str, ...]
    fit: Fit
    tolerances: tuple[float, ...] = tuple(10.0**-k for k in range(1, 13))
    threads: bool = False
    max_features: int | None = None
