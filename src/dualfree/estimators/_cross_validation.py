"""The search over penalties that LogisticRegressionCV and RidgeCV share.

Each fold solves the whole path from the strongest penalty to the weakest one, every solve from the dual point of the one
before; the folds run side by side in threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from .._checks import Array
from ..multinomial import MultinomialProblem
from ..result import Result
from ..status import Status
from ._callbacks import FRAMES_OF_FIT, Progress
from ._solving import AnyProblem, Coefficients, Settings, from_result, seeds

Fold = tuple[Array, Array]


@dataclass(frozen=True)
class Search:
    """What the folds yield; the first axis is the fold, the second one the penalty, in the order given."""

    scores: Array
    coefs: Array
    intercepts: Array
    gaps: Array

    @property
    def best(self) -> int:
        """The penalty with the best mean score; the first one of several."""
        return int(np.argmax(self.scores.mean(axis=0)))

    def starts(self, problems: list[AnyProblem]) -> list[Any]:
        """Where to begin the refit: the mean of the folds' coefficients at the best penalty."""
        w = self.coefs[:, self.best].mean(axis=0, dtype=np.float64)
        b = self.intercepts[:, self.best].mean(axis=0, dtype=np.float64)
        if isinstance(problems[0], MultinomialProblem):
            return [{"w": w, "intercept": b}]
        return [{"w": w[k], "intercept": float(b[k])} for k in range(len(problems))]


def search(
    folds: list[Fold],
    penalties: Array,
    problems_of: Callable[[Array], list[AnyProblem]],
    score: Callable[[Coefficients, Array], float],
    settings: Settings,
    random_state: Any,
    progress: Progress,
) -> Search:
    """Solve the path and score it on every fold.

    Parameters
    ----------
    folds : list of (train, test)
        Row numbers.
    penalties : array
        λn for each step of the path.
    problems_of : callable
        Makes the problems of the given training rows.
    score : callable
        Scores coefficients on the given test rows.
    settings : Settings
        How to solve.
    random_state : int, RandomState or None
        As of the estimator.
    progress : Progress
        Has a part per fold.
    """

    def one(index: int, seed: int) -> list[tuple[float, Coefficients, float]]:
        train, test = folds[index]
        report = progress.part(index)
        problems = problems_of(train)
        results: list[Result] = []
        steps: dict[int, tuple[float, Coefficients, float]] = {}
        for step in np.argsort(-penalties, kind="stable").tolist():
            here = [problem.with_lam(float(penalties[step]) / problem.n) for problem in problems]
            starts = [from_result(*pair) for pair in zip(here, results, strict=True)] if results else [None] * len(here)
            results = [settings.solve(problem, seed, start) for problem, start in zip(here, starts, strict=True)]
            if any(result.status is Status.INTERRUPTED for result in results):
                raise KeyboardInterrupt
            kept = Coefficients.of(here, results)
            gap = max(certificate.relative_gap for certificate in kept.certificates)
            steps[step] = score(kept, test), kept, gap
        report.end()
        progress.say(progress.names[index], f"{penalties.size} penalties, {len(problems)} problem(s) each: done")
        return [steps[step] for step in range(penalties.size)]

    drawn = seeds(random_state, len(folds))
    # The kernels release the GIL, so threads are enough and X is not sent around.
    paths = Parallel(n_jobs=settings.n_jobs, prefer="threads")(
        delayed(one)(index, seed) for index, seed in enumerate(drawn)
    )
    return Search(
        scores=np.array([[score for score, _, _ in path] for path in paths]),
        coefs=np.array([[kept.coef for _, kept, _ in path] for path in paths]),
        intercepts=np.array([[kept.intercept for _, kept, _ in path] for path in paths]),
        gaps=np.array([[gap for _, _, gap in path] for path in paths]),
    )


def warn_of_folds(estimator: Any, settings: Settings, found: Search) -> None:
    """Issue one ConvergenceWarning where a fold's fit stopped before `tol`."""
    tol = settings.accepted
    late = int((found.gaps > tol).sum())
    if tol > 0 and late:
        warnings.warn(
            f"{type(estimator).__name__}: {late} of {found.gaps.size} fits on the folds stopped before tol={tol:g}; the "
            f"largest certified gap is {found.gaps.max():.1e} of the objective at zero. Increase max_iter, max_time or "
            "tol, or scale the columns of X (see sklearn.preprocessing). The refit has its own certificate.",
            ConvergenceWarning,
            stacklevel=2 + FRAMES_OF_FIT,
        )


# --- metadata ---------------------------------------------------------------------------------------------------------


def routed(estimator: Any, sample_weight: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the splitter and what the scorer receive."""
    if get_config()["enable_metadata_routing"]:
        everything = process_routing(estimator, "fit", sample_weight=sample_weight, **params)
        return everything.splitter.split, everything.scorer.score
    if params:
        raise ValueError(
            f"[{', '.join(map(repr, params))}] are passed to fit but metadata routing is off. Turn it on with "
            "sklearn.set_config(enable_metadata_routing=True)."
        )
    return {}, {} if sample_weight is None else {"sample_weight": sample_weight}


def router(estimator: Any, scorer: Any) -> MetadataRouter:
    """Return the routes of metadata through `fit`."""
    return (
        MetadataRouter(owner=type(estimator).__name__)
        .add_self_request(estimator)
        .add(splitter=estimator.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
        .add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
    )


def scored(scorer: Any, model: Any, X: Any, y: Any, test: Array, params: dict[str, Any]) -> float:
    """Score a model on the test rows, with their part of the metadata."""
    return float(scorer(model, X[test], y[test], **_check_method_params(X, params, indices=test)))


def chosen_scorer(scoring: Any, default: str) -> Any:
    """Return the scorer that `scoring` names."""
    return get_scorer(default if scoring is None else scoring)
