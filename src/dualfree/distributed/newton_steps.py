"""Newton's method over a cluster, for few features: the second phase where the problem is badly conditioned.

The Hessian is a sum over the rows, so each partition sends its part (the upper triangle) and the client factorises the sum.
The gradient comes with the certificate: ∇P = λ (w − w(α̂)), α̂ = −s φ'(Xw + b), and b minimises P(w, ·) there. So does P,
which the line search looks at. A step costs one stage for the Hessian and, as a rule, one certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from .._checks import Array
from ..certificate import Certificate
from ..solvers.hessian import factorised
from . import tasks
from .cluster import Cluster, total_of
from .cluster_sums import ClusterSums
from .spec import Spec

_HALVINGS = 40

Certify = Callable[[Array, float, int | None], tuple[Certificate, float, ClusterSums]]


class NewtonSteps:
    """Newton steps from a point (w, b)."""

    def __init__(self, cluster: Cluster, spec: Spec, certify: Certify, w: Array, b: float) -> None:
        self.cluster, self.spec, self.certify = cluster, spec, certify
        self._take(w, b)

    def _take(self, w: Array, b: float) -> None:
        self.w = w
        self.certificate, self.b, self.sums = self.certify(w, b, None)

    def step(self) -> tuple[Certificate, ClusterSums]:
        """Make one step with a backtracking line search on P; return the certificate of the point reached."""
        spec, w, b, here = self.spec, self.w, self.b, self.certificate.primal
        gradient = spec.lam * w - self.sums.sums / spec.n
        if spec.fit_intercept:
            gradient = np.append(gradient, 0.0)
        size = 4 * gradient.size * (gradient.size + 1)
        reply = self.cluster.patiently(
            partial(self.cluster.stage, "hessian", tasks.hessian, spec, b, w=w, reply_bytes=size)
        )
        hessian = np.zeros((gradient.size, gradient.size))
        hessian[np.triu_indices(gradient.size)] = total_of(reply)
        direction = -factorised(hessian, spec).divided(gradient)
        slope, t = float(gradient @ direction), 1.0
        for _ in range(_HALVINGS):
            step_b = t * float(direction[-1]) if spec.fit_intercept else 0.0
            self._take(w + t * direction[: spec.d], b + step_b)
            # near the optimum both sides agree to rounding; a full step is then right
            if self.certificate.primal <= here + 1e-4 * t * slope + 1e-14 * abs(here):
                break
            t *= 0.5
        return self.certificate, self.sums
