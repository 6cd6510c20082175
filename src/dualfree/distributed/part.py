"""One partition on its worker: the rows, and the dual vectors of the last rounds.

A `Part` is the result of a Dask task and lives in the worker's memory for as long as the client holds its future. The
dual vectors are kept inside it and are changed in place: they would otherwise be results of their own, each one depending on
the one before, and a worker's death would make Dask compute all rounds again. So they go when the part goes: with the end
of the fit, the client's or the worker's. A part that Dask makes again from its block has none, and the next task
rebuilds α from w (`Part.base`). One that Dask copies to another worker takes them along.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array, finite_vector, non_negative_vector, plain_array
from ..dual_domain import clip
from ..losses import Loss
from ..problem import Problem, slopes_into
from .partitions import Block, RejectedBlock
from .spec import Spec


class PartitionError(ValueError):
    """Something is wrong with the rows of a partition."""


class LocalProblem(Problem):
    """The rows of one partition. Unlike a whole problem it may hold a single class, or weights that are all zero."""

    def __init__(self, block: Block, loss: Loss) -> None:
        self.loss = loss
        self._take_rows(block.X)
        self.labels = self._checked_labels(block.y)
        given = block.sample_weight
        weights = np.ones(self.n) if given is None else non_negative_vector("sample_weight", given, self.n)
        self.sample_weight = _rows.borrowed(weights)
        self.unit_weights = given is None
        self.bound = False

    def _checked_labels(self, y: Any) -> Array:
        if self.loss.task == "regression":
            return _rows.borrowed(finite_vector("y", y, self.n))
        labels = plain_array("y", y)
        if labels.ndim != 1 or labels.size != self.n:
            raise ValueError(f"y must have one entry per row of X ({self.n}), got shape {labels.shape}.")
        if labels.dtype.kind == "f":
            finite_vector("y", labels)
        return labels

    def bind(self, spec: Spec) -> None:
        """Take over what only all partitions together know."""
        if self.bound:
            return
        self.fit_intercept = spec.fit_intercept
        self.lam = spec.lam
        self.classes = spec.classes
        self._at_zero = None
        if self.loss.task == "regression":
            self.y = self.labels
        else:
            self.y = np.where(self.labels == spec.positive, 1.0, -1.0)
        self.bound = True


class Part:
    """One partition: its rows and the dual vectors that rounds have left there."""

    def __init__(self, block: Block, k: int, loss: Loss, n_features: int | None) -> None:
        if isinstance(block, RejectedBlock):
            raise PartitionError(block.sentence)
        if not isinstance(block, Block):
            raise TypeError(f"Partition {k} must be a dualfree.distributed.Block, got {type(block).__name__}.")
        self.k = k
        self.lock = threading.Lock()
        self.outputs: dict[int, Array] = {}
        self.rebuilt: int | None = None  # the result, if any, for which α had to be rebuilt from w
        self.evaluation: Any = None
        self.run: Any = None
        self.problem: LocalProblem | None = None
        shape: tuple[int, ...] = getattr(block.X, "shape", ())
        if len(shape) == 2 and n_features is not None and shape[1] != n_features:
            raise PartitionError(f"Partition {k} has {shape[1]} columns, expected {n_features}.")
        if len(shape) == 2 and shape[0] == 0:
            return
        try:
            self.problem = LocalProblem(block, loss)
        except (ValueError, TypeError) as error:
            raise PartitionError(f"Partition {k}: {error}") from error

    @property
    def rows(self) -> LocalProblem:
        """The rows of a partition that has some."""
        assert self.problem is not None
        return self.problem

    def __sizeof__(self) -> int:
        problem = self.problem
        if problem is None:
            return 1000
        arrays = [*problem.rows, problem.row_norms_squared, problem.sample_weight, *self.outputs.values()]
        return 1000 + sum(array.nbytes for array in arrays)

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            state = self.__dict__.copy()
            state["outputs"] = dict(self.outputs)
        del state["lock"]
        state["evaluation"] = state["run"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.lock = threading.Lock()
        if self.problem is not None:
            self.problem.rows = _rows.without_ones(_rows.as_rows(self.problem.X))  # one copy of the data, not two

    # --- dual vectors -----------------------------------------------------------------------------------------------

    def base(self, recipe: Iterable[tuple[int, float]], w: Array, b: float) -> tuple[Array, bool]:
        """Return Σ θ_j α^(j), brought back into the domain, and whether it had to be rebuilt as α̂ = −s φ'(Xw + b).

        An empty recipe is the start, α = 0.
        """
        problem = self.rows
        recipe = list(recipe)
        alpha = np.zeros(problem.n)
        if not all(seq in self.outputs for seq, _ in recipe):
            return self.dual_of_margins(problem.margins(w), b), True
        if len(recipe) == 1 and recipe[0][1] == 1.0:
            return self.outputs[recipe[0][0]].copy(), False
        for seq, theta in recipe:
            alpha += theta * self.outputs[seq]
        clip(problem.loss.compiled, problem.y, problem.sample_weight, alpha, alpha)
        return alpha, False

    def dual_of_margins(self, z: Array, b: float) -> Array:
        """Return α̂ = −s φ'(z + b), inside the domain."""
        problem = self.rows
        alpha = np.empty(problem.n)
        loss, y, s = problem.loss.compiled, problem.y, problem.sample_weight
        slopes_into(loss, z, b, y, s, alpha)
        np.negative(alpha, out=alpha)
        clip(loss, y, s, alpha, alpha)
        return alpha

    def keep(self, seq: int, alpha: Array, wanted: Iterable[int]) -> None:
        """Store the result of a task; of the earlier ones only those `wanted`."""
        kept = set(wanted)
        self.outputs = {j: a for j, a in self.outputs.items() if j in kept}
        self.outputs[seq] = alpha
