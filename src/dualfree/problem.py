"""The problem: rows, targets, weights, loss and λ; the primal, the dual and what links them. Nothing else re-derives them.

    P(w, b) = (1/n) Σ s_i φ(x_i·w + b; y_i) + (λ/2) ‖w‖²
    D(α)    = −(1/n) Σ s_i φ*(−α_i/s_i; y_i) − (λ/2) ‖w(α)‖²,   w(α) = (1/(λn)) Σ α_i x_i
    κ_i     = s_i φ'(x_i·w + b; y_i) + α_i

With an intercept b, which is never penalised, dual feasibility also asks Σ α_i = 0.
"""

from __future__ import annotations

import copy
import math
from functools import cached_property
from typing import Any

import numpy as np

from . import rows as _rows
from ._checks import Array, finite_vector, plain_array, real_number, refuse_not_finite, row_matrix, sample_weights
from ._jit import device, kernel
from .losses import Loss, Squared, get_loss
from .losses.calls import loss_curvature, loss_derivative, loss_fenchel_young, loss_slopes, loss_value, loss_values
from .vector_math import AT_A_TIME, two_sum, wide_vectors

_EPS = 2.0**-52
_ROOT_STEPS = 200
_SIGNS = np.array([1.0, -1.0])
_LEAST_PENALTY = 1e-150
_SUM_BLOCK = 1024


class Problem:
    """An L2-regularised empirical-risk-minimisation problem.

    Minimise ``(1/n) Σ s_i φ(x_i·w + b; y_i) + (λ/2) ‖w‖²`` over w, and over b where `fit_intercept` is set.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Kept as it is, without a copy, when it is a C-order array or a canonical CSR matrix of float32 or float64; but a CSR
        matrix that has few zeros is kept as a dense one.
    y : array of shape (n,)
        Numbers for a regression loss, two classes of any type for a classification loss (the greater one becomes +1).
    loss : str or Loss, default="logistic"
        A name in ``dualfree.losses.LOSSES`` or an instance.
    lam : float, default=1e-4
        λ, the strength of the penalty. scikit-learn's C is 1/(λn).
    sample_weight : array of shape (n,), optional
        s_i ≥ 0. They are not normalised: the sum is divided by n, not by Σ s_i.
    fit_intercept : bool, default=False
        Whether to fit b, which is never penalised.

    Attributes
    ----------
    n, d : int
        Rows and columns of X.
    y : array of shape (n,)
        Targets in float64; ±1 for a classification loss.
    classes : array or None
        The two classes in sorted order, −1 first.
    row_norms_squared : array of shape (n,)
        v_i = ‖x_i‖².
    at_zero : float
        P(0): the objective at w = 0 (and the best b, if there is one). `tol` is relative to it.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> problem = df.Problem(X, [1.0, 2.0, 3.0], loss="squared", lam=1 / 3)
    >>> round(problem.primal(np.zeros(2)), 6)
    2.333333
    >>> result = df.solve(problem, tol=1e-10, random_state=0)
    >>> np.round(result.w, 3)
    array([0.875, 1.375])
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        loss: str | Loss = "logistic",
        lam: float = 1e-4,
        sample_weight: Any = None,
        fit_intercept: bool = False,
    ) -> None:
        self.loss = get_loss(loss)
        if not isinstance(fit_intercept, (bool, np.bool_)):
            raise TypeError(f"fit_intercept must be True or False, got {fit_intercept!r}.")
        self.fit_intercept = bool(fit_intercept)
        self._take_rows(X)
        self.lam = checked_penalty(lam, self.n)
        self._take_weights(sample_weight)
        self.y, self.classes = self._checked_targets(y)
        self._at_zero: float | None = None

    # --- what was given ---------------------------------------------------------------------------------------------

    def _take_rows(self, X: Any) -> None:
        self.X = _rows.filled(row_matrix(X))
        self.n, self.d = self.X.shape
        self.rows = _rows.without_ones(_rows.as_rows(self.X))
        self.row_norms_squared: Array = _rows.squared_norms(self.rows)
        if not math.isfinite(self.row_norms_squared.max()):
            refuse_not_finite(self.X)
            row = int(np.argmin(np.isfinite(self.row_norms_squared)))
            raise ValueError(f"X is too large in row {row}: its squared norm overflows. Rescale the columns of X.")

    def _take_weights(self, given: Any) -> None:
        self.sample_weight = _rows.borrowed(sample_weights(given, self.n))
        self.unit_weights = given is None or bool((self.sample_weight == 1.0).all())

    def _checked_targets(self, y: Any) -> tuple[Array, Array | None]:
        if self.loss.task == "regression":
            return _rows.borrowed(finite_vector("y", y, self.n)), None
        labels = plain_array("y", y)
        if labels.ndim != 1:
            raise ValueError(f"y must have one dimension, got shape {labels.shape}.")
        if labels.size != self.n:
            raise ValueError(f"y must have one entry per row of X ({self.n}), got {labels.size}.")
        if labels.dtype.kind == "f":
            finite_vector("y", labels)
        two = two_numbers(labels)
        classes = self._checked_classes(labels) if two is None else two[0]
        upper = labels == classes[1] if two is None else two[1]
        signs = upper.astype(np.float64)
        signs *= 2.0
        signs -= 1.0
        if self.fit_intercept:
            weighted = signs[self.sample_weight > 0]
            if weighted.min() == weighted.max():
                only = classes[1] if weighted[0] > 0 else classes[0]
                raise ValueError(
                    f"sample_weight leaves only class {only.item() if hasattr(only, 'item') else only!r} in y; "
                    "an intercept needs both classes with a positive weight."
                )
        return signs, classes

    def _checked_classes(self, labels: Array) -> Array:
        """Return the two classes, in their order; labels may be of any type."""
        try:
            classes = np.unique(labels)
            missing = any(c != c for c in classes.tolist())
        except TypeError as error:  # labels of several types, or missing ones
            raise TypeError(f"y must hold labels of one type that can be sorted, none missing: {error}.") from None
        if missing:
            raise ValueError("y contains a missing label (NaN). Remove or impute such entries first.")
        if classes.size != 2:
            shown = ", ".join(repr(c) for c in classes[:5].tolist()) + (", …" if classes.size > 5 else "")
            raise ValueError(
                f"y must hold exactly two classes for the {self.loss.name or 'given'} loss, "
                f"got {classes.size}: {shown}."
            )
        return np.asarray(classes)

    def with_lam(self, lam: float) -> Problem:
        """Return the same problem with another λ; the data are shared, not copied."""
        other = copy.copy(self)
        other.lam = checked_penalty(lam, self.n)
        return other

    def with_targets(self, y: Any, sample_weight: Any = None) -> Problem:
        """Return the same problem with other targets and, if given, weights; X is shared, not copied or checked again."""
        other = copy.copy(self)
        if sample_weight is not None:
            other._take_weights(sample_weight)
        other.y, other.classes = other._checked_targets(y)
        other._at_zero = None
        return other

    def subset(self, chosen: Array) -> Problem:
        """Return the problem on some of the rows, with the same λ; those rows are copied."""
        other = copy.copy(self)
        other.__dict__.pop("pairs", None)
        other.X = self.X.take(chosen, axis=0) if self.is_dense else self.X[chosen]  # thrice as fast with short rows
        other.n = other.X.shape[0]
        other.rows = _rows.as_rows(other.X)[-len(self.rows) :]  # with or without values, as here
        other.y = self.y[chosen]
        other.sample_weight = np.ones(other.n) if self.unit_weights else self.sample_weight[chosen]
        other.row_norms_squared = self.row_norms_squared[chosen]
        other._at_zero = None
        return other

    def __repr__(self) -> str:
        form = "dense" if self.is_dense else "CSR"
        intercept = ", fit_intercept=True" if self.fit_intercept else ""
        return f"Problem({self.n}×{self.d} {form}, {self.loss!r}, lam={self.lam:g}{intercept})"

    # --- constants of the problem -----------------------------------------------------------------------------------

    @property
    def smoothness(self) -> Array:
        """L_i = s_i L̃."""
        return np.asarray(self.sample_weight * self.loss.smoothness)

    @property
    def kind(self) -> _rows.Kind:
        """How the rows are held."""
        return _rows.kind_of(self.rows)

    @property
    def is_dense(self) -> bool:
        """Whether the rows are kept with their zeros."""
        return len(self.rows) == _rows.Kind.DENSE

    @property
    def nnz(self) -> int:
        """Stored entries of X."""
        return self.n * self.d if self.is_dense else int(self.rows[-1][-1] - self.rows[-1][0])

    @cached_property
    def pairs(self) -> int:
        """Σ nnz_i², what a Hessian costs."""
        return _rows.sum_of_squared_lengths(self.rows)

    @property
    def nnz_per_row_max(self) -> int:
        """Stored entries of the longest row."""
        return self.d if self.is_dense else int(np.diff(self.rows[-1]).max())

    @property
    def at_zero(self) -> float:
        """P(0), the objective at w = 0 (at the best intercept, where there is one)."""
        if self._at_zero is None:
            b = self.intercept_at_zero if self.fit_intercept else 0.0
            self._at_zero = self._losses_at(b) / self.n
        return self._at_zero

    @property
    def intercept_at_zero(self) -> float:
        """The best intercept for w = 0; a classification loss then has two kinds of rows only."""
        if isinstance(self.loss, Squared):
            if self.unit_weights:
                return float(self.y.mean())
            return float(np.einsum("i,i->", self.sample_weight, self.y) / self.sample_weight.sum())  # not by BLAS
        if self.loss.task == "regression":
            return self.best_intercept(np.zeros(self.n))
        return float(_best_intercept(self.loss.compiled, np.zeros(2), _SIGNS, self._class_weights(), 0.0))

    def _class_weights(self) -> Array:
        """The weight of each class, in the order of `_SIGNS`."""
        first = self.y > 0.0
        if self.unit_weights:
            count = np.count_nonzero(first)
            return np.array([count, self.n - count], dtype=np.float64)
        return np.array([self.sample_weight[rows].sum() for rows in (first, ~first)])

    def _losses_at(self, b: float) -> float:
        """Σ s_i φ(b; y_i). Where labels are signs, or the loss is a square, that is a few numbers or a product."""
        loss, s = self.loss, self.sample_weight
        if loss.builtin_id is not None and loss.task == "classification":
            at_b = [float(loss(b, label)) for label in _SIGNS]
            if at_b[0] == at_b[1]:
                return at_b[0] * float(s.sum())
            return float(self._class_weights() @ at_b)
        if isinstance(loss, Squared):
            away = self.y if b == 0.0 else self.y - b
            weighted = away if self.unit_weights else s * away
            return 0.5 * float(np.einsum("i,i->", weighted, away))  # not by BLAS and its threads
        return float(loss_sum(loss.compiled, np.zeros(self.n), b, self.y, s))

    # --- the two objectives and their link --------------------------------------------------------------------------

    def margins(self, w: Array) -> Array:
        """Return X w (without the intercept)."""
        z = np.empty(self.n)
        _rows.margins_into(self.rows, self._weight_vector(w), z)
        return z

    def primal(self, w: Array, intercept: float = 0.0) -> float:
        """Return P(w, b)."""
        w = self._weight_vector(w)
        total = loss_sum(self.loss.compiled, self.margins(w), float(intercept), self.y, self.sample_weight)
        return float(total / self.n + 0.5 * self.lam * (w @ w))

    def dual(self, alpha: Array) -> float:
        """Return D(α); −∞ outside the dual domain or, with an intercept, where |Σ α| exceeds rounding."""
        alpha = self.dual_vector(alpha)
        if not self.loss.has("conjugate") and not self.loss.has("fenchel_young"):
            raise TypeError(f"loss {self.loss!r} defines no conjugate, so D(α) is unknown.")
        if self.fit_intercept and abs(math.fsum(alpha)) > 1e-9 * max(1.0, float(np.abs(alpha).max())):
            return -math.inf
        w = self.weights_of(alpha)
        conjugates = conjugate_sum(self.loss.compiled, self.y, self.sample_weight, alpha)
        return float(-conjugates / self.n - 0.5 * self.lam * (w @ w))

    def weights_of(self, alpha: Array) -> Array:
        """Return w(α) = (1/(λn)) Σ α_i x_i."""
        w = np.empty(self.d)
        self.sum_rows_into(self.dual_vector(alpha), w, np.empty(self.d))
        w /= self.lam * self.n
        return w

    def sum_rows_into(self, alpha: Array, out: Array, scratch: Array) -> float:
        """out = Σ α_i x_i; return e such that the rounding error is at most e Σ |α_i| ‖x_i‖."""
        _rows.weighted_sum_into(self.rows, alpha, self.sum_block, out, scratch)
        return self.sum_error

    @property
    def sum_block(self) -> int:
        """How many rows are added up before their sum is added to the others'."""
        return max(_SUM_BLOCK, self.n * self.d // max(1, self.nnz))  # a block's end costs d additions

    @property
    def sum_error(self) -> float:
        """What `sum_rows_into` returns."""
        return (min(self.sum_block, self.n) + self.n / self.sum_block + 4.0) * _EPS

    def residuals(self, w: Array, alpha: Array, intercept: float = 0.0) -> Array:
        """Return κ_i = s_i φ'(x_i·w + b; y_i) + α_i."""
        kappa = self.margins(w)
        slopes_into(self.loss.compiled, kappa, float(intercept), self.y, self.sample_weight, kappa)
        kappa += self.dual_vector(alpha)
        return kappa

    def gradient(self, w: Array, intercept: float = 0.0) -> Array:
        """Return ∇_w P(w, b)."""
        slopes = self.residuals(w, np.zeros(self.n), intercept)
        return np.asarray(self.lam * (self._weight_vector(w) + self.weights_of(slopes)))

    def best_intercept(self, z: Array, start: float = 0.0) -> float:
        """Return the b that minimises P(w, ·), given the margins z = X w."""
        return float(_best_intercept(self.loss.compiled, z, self.y, self.sample_weight, start))

    # --- vectors of the right shape ---------------------------------------------------------------------------------

    def _weight_vector(self, w: Any) -> Array:
        vector = np.ascontiguousarray(w, dtype=np.float64)
        if vector.shape != (self.d,):
            raise ValueError(f"w must have one entry per column of X ({self.d}), got shape {vector.shape}.")
        return vector

    def dual_vector(self, alpha: Any) -> Array:
        """Return `alpha` as a float64 vector of length n."""
        vector = np.ascontiguousarray(alpha, dtype=np.float64)
        if vector.shape != (self.n,):
            raise ValueError(f"alpha must have one entry per row of X ({self.n}), got shape {vector.shape}.")
        return vector


def checked_penalty(lam: Any, n: int) -> float:
    """Return λ as a float; refuse one with which w would overflow."""
    number = real_number("lam", lam, low=0.0, strict=True)
    if number * n < _LEAST_PENALTY:
        raise ValueError(f"lam is too small, got {lam!r}: w grows like 1/(lam · n) and would overflow.")
    return number


def two_numbers(labels: Array) -> tuple[Array, Array] | None:
    """Return two classes, in their order, and which labels are the second; None where labels are not numbers, or not two."""
    if labels.dtype.kind in "biuf" and labels.size > 0:
        low, high = labels.min(), labels.max()
        upper = labels == high
        if low < high and np.logical_or(upper, labels == low).all():  # a quarter of the time that sorting takes
            return np.array([low, high]), upper
    return None


def class_numbers(labels: Array) -> tuple[Array, Array]:
    """Return the classes, in their order, and each label's number among them.

    What `numpy.unique` with `return_inverse` says; it sorts an index for that, twenty times as long as all of this takes.
    """
    two = two_numbers(labels)
    if two is not None:
        return two[0], two[1].astype(np.intp)
    classes = np.unique(labels)
    return classes, np.searchsorted(classes, labels)


# --- kernels over margins ---------------------------------------------------------------------------------------------


@kernel
def loss_sum(loss: Any, z: Any, b: float, y: Any, s: Any) -> float:
    """Return Σ s_i φ(z_i + b; y_i)."""
    wide_vectors()
    values = np.empty(AT_A_TIME)
    total = 0.0
    for first in range(0, z.size, AT_A_TIME):
        size = min(AT_A_TIME, z.size - first)
        part = slice(first, first + size)
        loss_values(loss, z[part], b, y[part], values[:size])
        total += _weighted_sum(s[part], values, z[part])
    return total


@device(reassociate=True)
def _weighted_sum(s: Any, values: Any, z: Any) -> float:
    """Σ s_i values_i. A loss on vector registers may not see that a margin is not a number."""
    total = 0.0
    for k in range(s.size):
        value = values[k] if z[k] == z[k] else np.nan
        total += s[k] * value if s[k] > 0.0 else 0.0
    return total


@kernel
def conjugate_sum(loss: Any, y: Any, s: Any, alpha: Any) -> float:
    """Return Σ s_i φ*(−α_i/s_i; y_i), from Fenchel–Young at z = 0: φ(0) + φ*(−a)."""
    total = 0.0
    for i in range(alpha.size):
        if s[i] > 0.0:
            total += s[i] * (loss_fenchel_young(loss, 0.0, y[i], alpha[i] / s[i])[0] - loss_value(loss, 0.0, y[i]))
        elif alpha[i] != 0.0:
            return np.inf
    return total


@kernel
def slopes_into(loss: Any, z: Any, b: float, y: Any, s: Any, out: Any) -> None:
    """out_i = s_i φ'(z_i + b; y_i). `out` may be `z`."""
    wide_vectors()
    loss_slopes(loss, z, b, y, s, out)


@device
def slope_sum(loss: Any, z: Any, b: float, y: Any, s: Any) -> tuple[float, float, float]:
    """Return Σ s φ'(z + b) in compensated arithmetic, Σ s φ''(z + b) and Σ |s φ'(z + b)|."""
    total, lost, curvature, size = 0.0, 0.0, 0.0, 0.0
    for i in range(z.size):
        if s[i] > 0.0:
            term = s[i] * loss_derivative(loss, z[i] + b, y[i])
            total, error = two_sum(total, term)
            lost += error
            curvature += s[i] * loss_curvature(loss, z[i] + b, y[i])
            size += abs(term)
    return total + lost, curvature, size


@kernel
def _best_intercept(loss: Any, z: Any, y: Any, s: Any, start: float) -> float:
    """Minimise Σ s φ(z + b) over b: Newton inside a bracket of the root of its non-decreasing derivative."""
    b = start
    low, high = -np.inf, np.inf
    reach = 1.0 + abs(start)  # the root is not farther away than a few times the spread of y − z
    for i in range(z.size):
        reach = max(reach, abs(y[i] - z[i]))
    for _ in range(_ROOT_STEPS):
        slope, curvature, size = slope_sum(loss, z, b, y, s)
        done, b, low, high, reach = next_intercept(b, slope, curvature, size, low, high, reach)
        if done:
            break
    return b


@kernel
def next_intercept(
    b: float, slope: float, curvature: float, size: float, low: float, high: float, reach: float
) -> tuple[bool, float, float, float, float]:
    """One step of the search for the root of a slope that does not decrease: whether it is found, b, its bracket, the reach."""
    if abs(slope) <= 0.25 * _EPS * size:
        return True, b, low, high, reach
    if slope < 0.0:
        low = b
    else:
        high = b
    new = b - slope / curvature if curvature > 0.0 else np.inf
    if not (low < new < high and abs(new - b) <= reach):
        bracketed = np.isfinite(low) and np.isfinite(high)
        new = 0.5 * (low + high) if bracketed else b - np.sign(slope) * reach
        reach *= 2.0
    if abs(new - b) <= _EPS * abs(b) or new == b:
        return True, b, low, high, reach
    return False, new, low, high, reach
