"""A fitted model as it lies in a file: weights, what they mean, and what is certified about them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from .._checks import Array
from ..certificate import Certificate
from ..losses import LOSSES, Loss
from ..problem import Problem
from .encoding import Encoding

Label = float | str


def named_loss(name: str, parameter: float | None = None) -> Loss:
    """Return the loss of that name with its parameter; a ValueError where it takes none, or not this one.

    Examples
    --------
    >>> from dualfree.io import named_loss
    >>> named_loss("huber", 1.35)
    Huber(1.35)
    """
    kind = LOSSES[name]
    if parameter is None:
        default: Loss = kind()
        return default
    takes = inspect.signature(kind).parameters.values()
    if not any(entry.kind is entry.POSITIONAL_OR_KEYWORD for entry in takes):
        raise ValueError(f"the loss {name!r} has no parameter; write only {name!r}.")
    loss: Loss = kind(parameter)
    return loss


@dataclass(frozen=True, slots=True)
class Objective:
    """What was minimised: everything of a problem but the data.

    Attributes
    ----------
    loss : str
        A name in ``dualfree.losses.LOSSES``.
    loss_parameter : float or None
        Its parameter, if it has one (the δ of "huber", say).
    lam : float
        λ.
    fit_intercept : bool
        Whether there is an intercept.
    class_weight : str or None
        "balanced": each class has the same total weight. None: each row has weight 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfree.io import Objective
    >>> objective = Objective("logistic", lam=0.1)
    >>> [problem.y.tolist() for problem in objective.problems(np.eye(3), np.array([1.0, 2.0, 3.0]))]
    [[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    """

    loss: str
    loss_parameter: float | None = None
    lam: float = 1e-4
    fit_intercept: bool = False
    class_weight: str | None = None

    def make_loss(self) -> Loss:
        """Return the loss."""
        return named_loss(self.loss, self.loss_parameter)

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return bool(LOSSES[self.loss].task == "classification")

    def classes(self, y: Array) -> Array | None:
        """Return the sorted classes of y, None for a regression loss."""
        return np.unique(y) if self.is_classification else None

    def problems(self, X: Any, y: Array, classes: Array | None = None) -> Iterator[Problem]:
        """Yield the problems to solve: for more than two classes, one for each class against the rest.

        `classes` are those of the training data, where they are known already.
        """
        if classes is None:
            classes = self.classes(y)
        weights = self._weights(y, classes)
        for column in range(1 if classes is None or len(classes) == 2 else len(classes)):
            target = y if classes is None or len(classes) == 2 else y == classes[column]
            yield Problem(X, target, self.make_loss(), self.lam, weights, self.fit_intercept)

    def _weights(self, y: Array, classes: Array | None) -> Array | None:
        if self.class_weight is None or classes is None:
            return None
        place = np.searchsorted(classes, y)
        counts = np.bincount(place, minlength=len(classes))
        return np.asarray(y.size / (len(classes) * counts[place]))


@dataclass(frozen=True, slots=True)
class Training:
    """Where a model comes from.

    Attributes
    ----------
    data : str
        Name of the data file.
    n_rows : int
        Rows used.
    skip_bad_lines : bool
        Whether broken lines were skipped.
    solver : str
        The solver.
    tol : float
        The relative gap asked for.
    seed : int or None
        The random seed.
    fingerprint : str or None
        `Dataset.fingerprint` of the training data; files of format 1 have none.

    Examples
    --------
    >>> from dualfree.io import Training
    >>> Training("train.svm", 455, False, "auto", 1e-6, seed=0, fingerprint=None).n_rows
    455
    """

    data: str
    n_rows: int
    skip_bad_lines: bool
    solver: str
    tol: float
    seed: int | None
    fingerprint: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the solve of one column of weights ended.

    Attributes
    ----------
    certificate : Certificate
        How far it is from the optimum, at most.
    status : str
        A value of ``dualfree.Status``.
    n_epochs : int
        Epochs run.
    seconds : float
        Time spent solving.

    Examples
    --------
    >>> import numpy as np
    >>> import dualfree as df
    >>> from dualfree.io import Outcome
    >>> result = df.solve(df.Problem(np.eye(2), [1.0, 2.0], loss="squared", lam=1.0), random_state=0)
    >>> Outcome(result.certificate, result.status.value, result.n_epochs, seconds=0.1).status
    'converged'
    """

    certificate: Certificate
    status: str
    n_epochs: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Model:
    r"""A fitted linear model.

    Attributes
    ----------
    coef : array of shape (k, d)
        One row of weights for a regression or two classes, otherwise one for each class.
    intercept : array of shape (k,)
    alpha : array of shape (k, n) or None
        The dual vectors that prove the certificates.
    classes : array or None
        The sorted classes: numbers or strings. With two of them a positive score means the second.
    objective : Objective
    encoding : Encoding
    training : Training
    outcomes : tuple of Outcome
        One for each row of `coef`.
    version : str
        The version of dualfree that wrote the file.
    intact : bool
        Whether the file's checksum is right; see `load_model`.

    Examples
    --------
    >>> from io import BytesIO
    >>> from dualfree.cli.fitting import fit_model
    >>> from dualfree.io import Objective, read_data
    >>> data = read_data(BytesIO(b"1 1:2\n-1 2:3\n1 1:1 2:-1\n"), format="libsvm")
    >>> model = fit_model(data, Objective("logistic", lam=0.1), seed=0).model
    >>> scores = model.scores(data.X)
    >>> model.predict(scores)
    array([ 1., -1.,  1.])
    >>> model.certain(scores, model.score_bounds(data.X))
    array([ True,  True,  True])
    """

    coef: Array
    intercept: Array
    alpha: Array | None
    classes: Array | None
    objective: Objective
    encoding: Encoding
    training: Training
    outcomes: tuple[Outcome, ...]
    version: str
    intact: bool = True

    def scores(self, X: Any) -> Array:
        """Return X w + b, a column for each row of `coef`."""
        return np.asarray(X @ self.coef.T + self.intercept)

    def predict(self, scores: Array) -> Array:
        """Return the predictions that belong to these scores: classes or numbers."""
        if self.classes is None:
            return scores[:, 0]
        if scores.shape[1] == 1:
            return np.asarray(self.classes[(scores[:, 0] > 0).astype(int)])
        return np.asarray(self.classes[np.argmax(scores, axis=1)])

    def probabilities(self, scores: Array) -> Array:
        """Return a column of probabilities for each class; for several classes the one-vs-rest ones, normalised."""
        if self.objective.loss != "logistic":
            raise ValueError(
                f"probabilities need the logistic loss; the model was fitted with {self.objective.loss!r}."
            )
        positive = expit(scores)
        if positive.shape[1] == 1:
            return np.hstack([1.0 - positive, positive])
        totals = positive.sum(axis=1, keepdims=True)
        return np.asarray(
            np.divide(positive, totals, out=np.full_like(positive, 1 / positive.shape[1]), where=totals > 0)
        )

    def score_bounds(self, X: Any) -> Array:
        """Bound how much each score can differ from that of the exact optimum."""
        return np.column_stack([outcome.certificate.score_bound(X) for outcome in self.outcomes])

    def certain(self, scores: Array, bounds: Array) -> Array:
        """Return which predicted classes no better optimisation can change."""
        if scores.shape[1] == 1:
            return np.asarray(np.abs(scores[:, 0]) > bounds[:, 0])
        best = np.argmax(scores, axis=1)
        rows = np.arange(best.size)
        highest = scores + bounds
        highest[rows, best] = -np.inf
        return np.asarray(scores[rows, best] - bounds[rows, best] > highest.max(axis=1))
