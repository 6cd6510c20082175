"""Multinomial (softmax) regression: the problem.

    P(W, b) = (1/n) Σ_i s_i [log Σ_k exp(z_ik) − z_{i, y_i}] + (λ/2) ‖W‖²,   z_i = W x_i + b

W has a row w_k per class and ‖W‖ is the Frobenius norm. The intercepts b are never penalised; they are determined up to a
common constant, and chosen to sum to zero. The dual point of (W, b) is α_i = s_i (e_{y_i} − p_i), p_i = softmax(z_i); at the
optimum w_k = (1/(λn)) Σ_i α_ik x_i.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from .. import rows as _rows
from .._checks import Array, finite_matrix, real_number, sample_weights
from ..problem import class_numbers
from .passes import Passes

_EPS = 2.0**-52
_NEWTON_STEPS = 50


class MultinomialProblem:
    """L2-regularised multinomial logistic regression.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Kept as it is, without a copy, when it is a C-order array or a canonical CSR matrix of float32 or float64; but a CSR
        matrix that has few zeros is kept as a dense one.
    y : array of shape (n,)
        Two or more classes of any type.
    lam : float, default=1e-4
        λ, the strength of the penalty. scikit-learn's C is 1/(λn).
    sample_weight : array of shape (n,), optional
        s_i ≥ 0, not normalised.
    fit_intercept : bool, default=False
        Whether to fit b, which is never penalised.

    Attributes
    ----------
    n, d : int
        Rows and columns of X.
    classes : array of shape (K,)
        The classes in sorted order.
    own : array of shape (n,)
        The position of each row's class in `classes`.
    at_zero : float
        P(0): the objective at W = 0 (and the best b, if there is one). `tol` is relative to it.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.multinomial import MultinomialProblem
    >>> problem = MultinomialProblem(np.eye(3), ["a", "b", "c"], lam=0.1)
    >>> bool(np.isclose(problem.primal(np.zeros((3, 3)), np.zeros(3)), np.log(3)))
    True
    """

    def __init__(
        self, X: Any, y: Any, lam: float = 1e-4, sample_weight: Any = None, fit_intercept: bool = False
    ) -> None:
        self.lam = real_number("lam", lam, low=0.0, strict=True)
        if not isinstance(fit_intercept, (bool, np.bool_)):
            raise TypeError(f"fit_intercept must be True or False, got {fit_intercept!r}.")
        self.fit_intercept = bool(fit_intercept)
        self.X = _rows.filled(finite_matrix(X))
        self.n, self.d = self.X.shape
        self.rows = _rows.as_rows(self.X)
        self.sample_weight = _rows.borrowed(sample_weights(sample_weight, self.n))
        self.classes, self.own = self._checked_classes(y)
        self.row_norms: Array = np.sqrt(_rows.squared_norms(self.rows))
        if not np.isfinite(self.row_norms).all():
            row = int(np.argmin(np.isfinite(self.row_norms)))
            raise ValueError(f"X is too large in row {row}: its squared norm overflows. Rescale the columns of X.")
        # The best intercepts at W = 0 are the logarithms of the class shares; there P(0) is the entropy of y.
        shares = np.bincount(self.own, weights=self.sample_weight, minlength=self.K)
        total = shares.sum()
        self.zero_intercept = np.zeros(self.K)
        entropy = np.log(self.K)
        if self.fit_intercept:
            self.zero_intercept = np.log(shares / total)
            entropy = -np.sum(shares / total * self.zero_intercept)
            self.zero_intercept -= self.zero_intercept.mean()
        self.at_zero = float(total / self.n * entropy)

    @property
    def K(self) -> int:
        """The number of classes."""
        return int(self.classes.size)

    @property
    def is_dense(self) -> bool:
        """Whether X is dense."""
        return _rows.kind_of(self.rows) is _rows.Kind.DENSE

    @property
    def nnz(self) -> int:
        """Stored entries of X."""
        return self.n * self.d if self.is_dense else int(self.rows[2][-1])

    def _checked_classes(self, y: Any) -> tuple[Array, Array]:
        labels = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
        if labels.ndim != 1:
            raise ValueError(f"y must have one dimension, got shape {labels.shape}.")
        if labels.size != self.n:
            raise ValueError(f"y must have one entry per row of X ({self.n}), got {labels.size}.")
        classes, own = class_numbers(labels)
        if classes.size < 2:
            raise ValueError(f"y must hold at least two classes, got only {classes.tolist()[0]!r}.")
        if self.fit_intercept:
            weights = np.bincount(own, weights=self.sample_weight, minlength=classes.size)
            if weights.min() == 0.0:
                raise ValueError(
                    f"sample_weight leaves no row of class {classes.tolist()[int(np.argmin(weights))]!r} in y; "
                    "an intercept needs every class with a positive weight. Remove the rows of that class."
                )
        return classes, own.astype(np.int64)

    def with_lam(self, lam: float) -> MultinomialProblem:
        """Return the same problem with another λ; the data are shared, not copied."""
        other = copy.copy(self)
        other.lam = real_number("lam", lam, low=0.0, strict=True)
        return other

    def __repr__(self) -> str:
        form = "dense" if self.is_dense else "CSR"
        intercept = ", fit_intercept=True" if self.fit_intercept else ""
        return f"MultinomialProblem({self.n}×{self.d} {form}, {self.K} classes, lam={self.lam:g}{intercept})"

    def primal(self, W: Any, b: Any) -> float:
        """Return P(W, b)."""
        matrix, vector = self.checked_point(W, b)
        passes = Passes(self)
        Z = passes.scores(matrix)
        loss, _ = passes.residuals(Z, vector, np.empty_like(Z))
        return float(loss / self.n + 0.5 * self.lam * np.sum(matrix * matrix))

    def checked_point(self, W: Any, b: Any) -> tuple[Array, Array]:
        """Return W and b as finite float64 arrays of the right shapes."""
        matrix = np.ascontiguousarray(W, dtype=np.float64)
        vector = np.ascontiguousarray(b, dtype=np.float64)
        if matrix.shape != (self.K, self.d):
            raise ValueError(f"W must have shape ({self.K}, {self.d}), a row per class, got {matrix.shape}.")
        if vector.shape != (self.K,):
            raise ValueError(f"b must have one entry per class ({self.K}), got shape {vector.shape}.")
        if not (np.isfinite(matrix).all() and np.isfinite(vector).all()):
            raise ValueError("W and b must be finite, they contain NaN or infinity.")
        if not self.fit_intercept and vector.any():
            raise ValueError("b must be 0 for a problem without an intercept.")
        return matrix, vector

    def best_intercept(self, passes: Passes, Z: Array, start: Array, R: Array) -> Array:
        """Return the b that minimises P(W, ·) given Z = X Wᵀ: Newton's method in K − 1 dimensions. R is scratch."""
        b = start
        loss, slope = passes.residuals(Z, b, R)
        scratch = np.empty_like(R)
        no_slack = np.zeros(self.n)
        for _ in range(_NEWTON_STEPS):
            size = float(np.linalg.norm(slope))
            if size <= _EPS * float(self.sample_weight.sum()):
                break
            hessian = passes.intercept_hessian(R, no_slack, 0.0)
            # Adding a constant to every intercept changes nothing: a multiple of 1 1ᵀ makes the system regular.
            hessian += np.trace(hessian) / self.K
            try:
                step = -np.linalg.solve(hessian, slope)
            except np.linalg.LinAlgError:
                break
            length, moved = 1.0, False
            for _ in range(30):
                trial = b + length * (step - step.mean())
                new_loss, new_slope = passes.residuals(Z, trial, scratch)
                if new_loss < loss or float(np.linalg.norm(new_slope)) < size:
                    b, loss, slope, moved = trial, new_loss, new_slope, True
                    R, scratch = scratch, R
                    break
                length *= 0.5
            if not moved:
                break
        return b
