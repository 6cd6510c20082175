"""What the estimators share: parameters, the fit over resident partitions, fitted attributes, predictions."""

from __future__ import annotations

import copy
import os
import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._checks import Array
from ..distributed import DistributedResult, Partitions, scatter, solve
from ..distributed.cluster import current_client
from ..distributed.inputs import is_partitioned, partition, refuse_what_holds_no_rows
from ..distributed.inputs.survey import Survey, survey
from ..distributed.inputs.waiting import make_resident, release
from ..distributed.work import CHOICES
from ..estimators._solving import Deadline, seeds
from ..losses import Loss
from ..status import Status
from ._predicting import predict_blocks
from ._scoring import score_blocks

_COPIED = ("coef_", "intercept_", "classes_", "certificate_", "dual_gap_", "n_iter_", "trace_")


@dataclass(frozen=True, slots=True)
class Target:
    """One of the problems of a fit: which rows it has, and what a row costs.

    Attributes
    ----------
    name : str
        What messages call it.
    blocks : list of Future
        The partitions, labelled and weighted for this problem.
    lam : float
        λ.
    """

    name: str
    blocks: list[Any]
    lam: float


class DaskModel(BaseEstimator):  # type: ignore[misc]
    """Base class: a linear model that is fitted on a cluster and otherwise behaves as the local estimator does."""

    _local_class: ClassVar[Any]
    _task: ClassVar[str]
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_rounds": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
        "local_passes": [Interval(Real, 0, None, closed="neither"), StrOptions(set(CHOICES))],
        "client": "no_validation",
        "checkpoint": [str, os.PathLike, None],
        "timeout": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        """Say that sparse matrices are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- a client is a connection: it is neither copied nor written to a file ------------------------------------------

    def __sklearn_clone__(self) -> Any:
        """Clone the estimator; the clone uses the same client."""
        without_client = copy.copy(self)
        without_client.client = None
        fresh = _clone_parametrized(without_client)
        fresh.client = self.client
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        """Leave the client out."""
        return {**super().__getstate__(), "client": None}

    # --- what a subclass says -----------------------------------------------------------------------------------------

    def _targets(self, client: Any, blocks: list[Any], found: Survey) -> list[Target]:
        """Return the problems to solve."""
        raise NotImplementedError

    def _set_coefficients(self, coef: Array, intercept: Array) -> None:
        """Set coef_ and intercept_ in the shapes of scikit-learn."""
        raise NotImplementedError

    def _local(self) -> Any:
        """Return the local estimator with the parameters that both have."""
        known = self._local_class().get_params()
        given = {name: value for name, value in self.get_params(deep=False).items() if name in known}
        return self._local_class(**given)

    # --- the fit ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the model on the cluster. The data stay on the workers; only weights travel.

        Parameters
        ----------
        X : dask array, dask dataframe, list of delayed partitions, Partitions, or data in memory
            Training data. The blocks of a dask array are numpy arrays or scipy CSR matrices. A delayed partition gives
            (X, y) or (X, y, sample_weight). Data in memory are sent to the workers.
        y : dask or numpy array, dask series, or str
            Targets; for a dataframe also the name of the column that holds them. None where X holds them already.
        sample_weight : dask or numpy array, dask series, or str, optional
            Weights ≥ 0, given as y is. A weight of zero is the same as leaving the row out, a whole number the same as
            repeating it.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        self._validate_params()
        deadline = Deadline(self.max_time)
        client = current_client(self.client)
        partitions, names = self._partitions(X, y, sample_weight, client)
        blocks = make_resident(client, partitions.blocks)
        targets: list[Target] = []
        try:
            found = survey(client, blocks, self._task, self.timeout)
            targets = self._targets(client, blocks, found)
            results = self._solve_all(client, targets, found, deadline)
        finally:
            # At once, not when Python gets round to it: the workers' memory is the scarce thing.
            given = {id(block) for block in X.blocks} if isinstance(X, Partitions) else set()
            release(
                block for group in (blocks, *(t.blocks for t in targets)) for block in group if id(block) not in given
            )
        self._keep(found, names, results)
        if results[0].status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # what was reached until then is kept in the attributes
        self._warn_before_tol(targets, results)
        return self

    def _solve_all(
        self, client: Any, targets: list[Target], found: Survey, deadline: Deadline
    ) -> list[DistributedResult]:
        loss, _ = self._local()._loss()
        drawn = seeds(self.random_state, len(targets))
        results: list[DistributedResult] = []
        for k, target in enumerate(targets):
            passes = results[0].local_passes if results else self.local_passes  # measured once for all models
            checkpoint = self._checkpoint(k, len(targets))
            result = self._solve(client, target, loss, found, drawn[k], passes, deadline, checkpoint)
            if result.status is Status.INTERRUPTED and len(targets) > 1:
                raise KeyboardInterrupt  # the other problems have no result to keep
            results.append(result)
        return results

    def _partitions(self, X: Any, y: Any, sample_weight: Any, client: Any) -> tuple[Partitions, Any]:
        """Return the partitions and the names of the columns; data in memory are checked as the local estimators do."""
        if is_partitioned(X):
            return partition(X, y, sample_weight)
        refuse_what_holds_no_rows(X)
        names, local = getattr(X, "columns", None), self._local()
        X, y = local._checked_data(X, y, y_numeric=self._task == "regression")
        if self._task == "classification":
            check_classification_targets(y)
        weights = None if sample_weight is None else local._checked_weights(sample_weight, X)
        return scatter(X, y, weights, client=client), names

    def _solve(
        self,
        client: Any,
        target: Target,
        loss: Loss | str,
        found: Survey,
        seed: int,
        local_passes: float | str,
        deadline: Deadline,
        checkpoint: Path | None,
    ) -> DistributedResult:
        return solve(
            Partitions(target.blocks, n_features=found.n_features),
            loss=loss,
            lam=target.lam,
            fit_intercept=self.fit_intercept,
            tol=float(self.tol),
            max_rounds=int(self.max_rounds),
            max_time=deadline.left,
            random_state=seed,
            local_passes=local_passes,
            client=client,
            checkpoint=checkpoint,
            timeout=float(self.timeout),
            progress=bool(self.verbose),
        )

    def _checkpoint(self, index: int, count: int) -> Path | None:
        """Return the file of one problem; several have a file each, numbered."""
        if self.checkpoint is None:
            return None
        path = Path(self.checkpoint)
        return path if count == 1 else path.with_name(f"{path.name}.{index}")

    def _keep(self, found: Survey, names: Any, results: list[DistributedResult]) -> None:
        single = len(results) == 1
        certificates = [result.certificate for result in results]
        gaps = np.array([certificate.gap for certificate in certificates])
        self.n_features_in_ = found.n_features
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if found.classes is not None:
            self.classes_ = found.classes
        self.n_iter_ = np.array([result.n_rounds for result in results], dtype=np.int32)
        self.local_passes_ = results[0].local_passes
        self.certificate_ = certificates[0] if single else certificates
        self.dual_gap_ = float(gaps[0]) if single else gaps
        self.trace_ = results[0].trace if single else [result.trace for result in results]
        self._set_coefficients(
            np.vstack([result.w for result in results]), np.array([result.intercept for result in results])
        )

    def _warn_before_tol(self, targets: list[Target], results: list[DistributedResult]) -> None:
        """Issue one ConvergenceWarning for the worst problem that stopped before `tol`, stating the gap reached."""
        enough = {Status.CONVERGED, Status.STALLED} if self.tol == 0 else {Status.CONVERGED}
        missed = [k for k, result in enumerate(results) if result.status not in enough]
        if not missed:
            return
        worst = max(missed, key=lambda k: results[k].certificate.relative_gap)
        where = f" for {targets[worst].name}" if len(targets) > 1 else ""
        warnings.warn(
            f"{type(self).__name__} stopped before its tolerance{where}: {results[worst].message} "
            f"tol is {self.tol:g}, relative to the objective at zero.",
            ConvergenceWarning,
            stacklevel=3,
        )

    # --- afterwards ---------------------------------------------------------------------------------------------------

    def to_local(self) -> Any:
        """Return the fitted model as the local estimator of the same name, which needs neither Dask nor a cluster.

        Returns
        -------
        estimator : LogisticRegression, Ridge or LinearSVC of dualfree
            With the coefficients and the certificate; without `dual_coef_`, which stayed on the workers.
        """
        check_is_fitted(self)
        local = self._local()
        for name in (*_COPIED, "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(local, name, getattr(self, name))
        return local

    def predict(self, X: Any) -> Any:
        """Return the prediction for each row: lazily for dask collections, at once for data in memory.

        Parameters
        ----------
        X : dask array, dask dataframe, or data in memory
            Samples.

        Returns
        -------
        predictions : dask array or array of shape (n_samples,)
            Classes or numbers.
        """
        dtype = self.classes_.dtype if hasattr(self, "classes_") else np.dtype(np.float64)
        return predict_blocks(self.to_local(), "predict", X, dtype)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Return the accuracy of a classifier or the R² of a regressor.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        score : dask scalar or float
            A dask array without dimensions for dask collections, which ``float()`` computes; a float for data in memory.
        """
        return score_blocks(self.to_local(), X, y, sample_weight)
