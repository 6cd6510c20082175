"""From what was asked and what is there to the `Spec` that all tasks share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ..losses import Loss
from ..problem import Problem, checked_penalty, next_intercept
from ..row_sums import Slope
from ..solvers.base import INTERCEPT_SHARE
from . import tasks
from .cluster import Cluster
from .cluster_sums import merged_slopes
from .spec import Spec
from .summary import Summary

_ROOT_STEPS = 200


AtZero = Callable[[Spec, float], list[tuple[float, Slope]]]
"""What `tasks.at_zero` says of each partition."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller of `solve` wants to know of the data, unchecked where only the data can tell."""

    loss: Loss
    lam: Any
    fit_intercept: bool
    positive: Any
    seed: int


def spec_of_cluster(cluster: Cluster, summary: Summary, asked: Asked) -> Spec:
    """Return the spec of the partitions that a cluster has loaded."""

    def at_zero(spec: Spec, b: float) -> Any:
        return cluster.patiently(partial(cluster.stage, "start", tasks.at_zero, spec, b)).terms

    return make_spec(summary, len(cluster.parts), asked, at_zero)


def make_spec(summary: Summary, partitions: int, asked: Asked, ask_at_zero: AtZero) -> Spec:
    """Return the spec."""
    loss, fit_intercept, positive = asked.loss, asked.fit_intercept, asked.positive
    if not summary.weight > 0:
        raise ValueError("sample_weight must have at least one positive entry, all are zero.")
    mean = summary.mean_norm_squared
    spec = Spec(
        loss=loss,
        lam=checked_penalty(asked.lam, summary.n),
        fit_intercept=fit_intercept,
        n=summary.n,
        d=summary.d,
        partitions=partitions,
        extra=(INTERCEPT_SHARE * mean if mean > 0 else 1.0) / partitions**2 if fit_intercept else 0.0,
        seed=asked.seed,
        nnz_per_row_max=summary.nnz_per_row_max,
        mean_norm_squared=mean,
        at_zero=math.nan,
        intercept_at_zero=math.nan,
        positive=None,
        classes=None,
    )
    if loss.task == "regression":
        if positive is not None:
            raise ValueError(f"positive names a class, and {loss!r} is a loss for regression.")
        value, b = _zero_of_numbers(ask_at_zero, spec, summary)
    else:
        chosen, classes = _two_classes(summary, loss, positive)
        spec = replace(spec, positive=chosen, classes=classes)
        value, b = _zero_of_classes(summary, spec)
    return replace(spec, at_zero=value, intercept_at_zero=b)


def _two_classes(summary: Summary, loss: Loss, positive: Any) -> tuple[Any, Any]:
    labels = summary.labels
    shown = ", ".join(repr(c) for c in labels[:5].tolist()) + (", …" if labels.size > 5 else "")
    if positive is not None:
        if positive not in labels.tolist():
            raise ValueError(f"positive must be one of the labels in y, got {positive!r}; there are {shown}.")
        if labels.size < 2:
            raise ValueError(f"y must hold at least two classes, got one: {shown}.")
        return positive, labels if labels.size == 2 and positive == labels[1] else None
    if labels.size != 2:
        raise ValueError(
            f"y must hold exactly two classes for the {loss.name or 'given'} loss, got {labels.size}: {shown}. "
            "Name one of them with positive to set it against the rest."
        )
    return labels[1], labels


def _zero_of_classes(summary: Summary, spec: Spec) -> tuple[float, float]:
    """P(0) and its intercept: all rows of a class have the same loss, so two rows stand for them."""
    ours = summary.labels == spec.positive
    weights = [float(summary.label_weights[ours].sum()), float(summary.label_weights[~ours].sum())]
    if spec.fit_intercept and min(weights) == 0.0:
        raise ValueError(
            "sample_weight leaves only one class in y; an intercept needs both classes with a positive weight."
        )
    two = Problem(np.zeros((2, 1)), [1.0, -1.0], spec.loss, 1.0, weights, spec.fit_intercept)
    b = two.best_intercept(np.zeros(2)) if spec.fit_intercept else 0.0
    return two.at_zero * 2 / spec.n, b


def _zero_of_numbers(ask: AtZero, spec: Spec, summary: Summary) -> tuple[float, float]:
    """P(0) and its intercept: a search for the root of the slope, one stage a step."""
    b, low, high, reach = 0.0, -math.inf, math.inf, 1.0 + summary.largest_target
    for _ in range(_ROOT_STEPS):
        found = ask(spec, b)
        value = math.fsum(total for total, _ in found) / spec.n
        slope = merged_slopes([[s] for _, s in found])[0]
        if not spec.fit_intercept:
            break
        done, b, low, high, reach = next_intercept(b, *slope, low, high, reach)
        if done:
            break
    return value, b
