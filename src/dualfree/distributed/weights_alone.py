"""The certificate that w alone proves, without the α that the workers hold: for a model that travels without them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .._checks import Array
from .._threads import one_blas_thread
from ..certificate import Certificate, KnownWeights, bound_from_sums
from ..losses import Loss, get_loss
from .cluster import Cluster, current_client
from .cluster_sums import ClusterSums
from .partitions import Partitions
from .setup import Asked, spec_of_cluster
from .summary import summarise
from .tasks import Point


def certify_weights(
    partitions: Partitions,
    w: Array,
    intercept: float,
    *,
    loss: str | Loss,
    lam: float,
    fit_intercept: bool,
    client: Any = None,
    timeout: float = 300.0,
) -> tuple[Certificate, float]:
    """Bound P(w, b) − P* with α̂ = −s φ'(Xw + b), where b minimises P(w, ·).

    Parameters
    ----------
    partitions : Partitions
        The rows.
    w : array of shape (d,)
        The weights.
    intercept : float
        Where to begin the search for b.
    loss, lam, fit_intercept, client, timeout
        As in `solve`.

    Returns
    -------
    certificate : Certificate
        Whoever has w, b and the data can compute it again: `dualfree.certify` does.
    b : float
        The intercept that it holds for.
    """
    cluster = Cluster(partitions, current_client(client), timeout)
    attempts = itertools.count(1)  # each attempt has a number of its own, so that a late task of another is found out

    def evaluate() -> tuple[Certificate, float]:
        sums = ClusterSums(cluster, spec, Point(next(attempts), intercept, None), w)
        sums.evaluate()
        b = sums.point.b
        known = KnownWeights(sums.sums, sums.sums_error)
        certificate = bound_from_sums(spec, sums, w, b, known, np.empty(spec.d), final=True)
        return certificate, b

    try:
        kind = get_loss(loss)
        cluster.load(kind)
        spec = spec_of_cluster(cluster, summarise(cluster), Asked(kind, lam, fit_intercept, None, seed=0))
        with one_blas_thread():
            certificate, b = cluster.patiently(evaluate)
        return certificate, float(b)
    finally:
        cluster.close()
