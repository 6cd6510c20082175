"""What every estimator shares: common parameters, checked input, the fit, fitted attributes."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .. import rows as _rows
from .._checks import Array
from ..certificate import Certificate
from ..result import Result
from ..solvers import SOLVERS, State
from ..status import Status
from ._callbacks import CallbackSupportMixin, Progress
from ._solving import AnyProblem, Coefficients, Deadline, Settings, last_point, solve_all, warn_before_tol

_FLOATS = [np.float64, np.float32]

POSITIVE = [Interval(Real, 0, None, closed="neither")]
JOBS = [Integral, None]


class CertifiedModel(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the estimators: a linear model whose fit comes with a certificate."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "solver": [StrOptions(set(SOLVERS))],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        """Say that sparse matrices are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- data in ----------------------------------------------------------------------------------------------------

    def _checked_data(self, X: Any, y: Any, **options: Any) -> tuple[Any, Any]:
        """Check X and y; float32 stays float32, CSR stays CSR with its indices as they are."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=_FLOATS, order="C", **options)
        return X, y

    def _checked_rows(self, X: Any) -> Any:
        """Check X for prediction."""
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, order="C", reset=False)

    @staticmethod
    def _checked_weights(sample_weight: Any, X: Any) -> Array:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
        return np.asarray(weights)

    # --- the fit ----------------------------------------------------------------------------------------------------

    def _settings(self) -> Settings:
        return Settings(
            solver=self.solver,
            tol=None if self.tol is None else float(self.tol),
            max_iter=int(self.max_iter),
            deadline=Deadline(self.max_time),
            n_jobs=getattr(self, "n_jobs", None),
        )

    def _fit_problems(
        self, problems: list[AnyProblem], starts: list[Any], settings: Settings, progress: Progress, flat: bool = False
    ) -> None:
        """Solve the problems from the given starts and set the fitted attributes; `flat` for a single target."""
        results = solve_all(problems, starts, settings, self.random_state, progress, self._attributes_at)
        kept = self._keep(problems, results, flat)
        progress.end()
        if results[0].status is Status.INTERRUPTED and not progress.stopped:
            raise KeyboardInterrupt  # Ctrl-C: what was reached until then is kept in the attributes
        warn_before_tol(self, settings, problems, results, kept)

    def _starts(self, problems: list[AnyProblem], go_on: bool) -> list[Any]:
        """Where each problem's solve begins: at the last fit's point where `go_on` is set."""
        return [last_point(self, problem, index) if go_on else None for index, problem in enumerate(problems)]

    def _keep(self, problems: list[AnyProblem], results: list[Result], flat: bool) -> Coefficients:
        kept = Coefficients.of(problems, results)
        single = len(results) == 1
        gaps = np.array([certificate.gap for certificate in kept.certificates])
        self.n_iter_ = np.array([result.n_epochs for result in results], dtype=np.int32)
        self.certificate_: Certificate | list[Certificate] = kept.certificates[0] if single else kept.certificates
        self.dual_gap_: float | Array = float(gaps[0]) if single else gaps
        self.trace_ = results[0].trace if single else [result.trace for result in results]
        self.dual_coef_ = kept.alpha[0] if flat else kept.alpha
        self._set_coefficients(kept.coef, kept.intercept, flat)
        return kept

    def _set_coefficients(self, coef: Array, intercept: Array, flat: bool) -> None:
        """Set coef_ and intercept_ in the shapes of scikit-learn."""
        self.coef_ = coef[0] if flat else coef
        self.intercept_ = intercept[0] if flat else intercept

    def _attributes_at(self, state: State) -> dict[str, Any]:
        """The attributes that make this estimator predict as the solver's current point does."""
        return {"coef_": np.atleast_2d(state.w).copy(), "intercept_": np.atleast_1d(state.intercept).copy()}

    # --- what is certain --------------------------------------------------------------------------------------------

    def _rounding(self, X: Any, scores: Array) -> Array:
        """Bound what rounding adds to the certificate's bounds of the given scores x·w + b, in their shape.

        Those bounds cover the products x·w of float64, not the addition of b, and nothing that is computed in float32.
        """
        rounding = 4.0 * np.finfo(np.float64).eps * np.abs(scores.astype(np.float64))
        if scores.dtype == np.float32:
            rows = _rows.as_rows(X)
            lengths = _rows.stored_lengths(X)
            weights = float(np.linalg.norm(np.atleast_2d(self.coef_).astype(np.float64), axis=1).max())
            sizes = np.sqrt(_rows.squared_norms(rows)) * weights + float(np.abs(self.intercept_).max())
            each = (lengths + 4.0) * np.finfo(np.float32).eps * sizes
            rounding += each.reshape(-1, *[1] * (scores.ndim - 1))
        return np.asarray(rounding)
