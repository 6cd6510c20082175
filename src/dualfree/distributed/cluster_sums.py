"""The sums that a certificate needs, added up over the partitions of a cluster.

Each partition returns what `row_sums.LocalSums` says of its rows. Non-negative sums are added plainly: the error bounds
of the certificate allow for n roundings one after another, and a partition's rows together with the number of partitions are at
most that many. Sums of either sign are added exactly (`math.fsum`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .._checks import Array
from ..dual_domain import MUCH
from ..row_sums import EPS, GapTerms, Imbalance, ResidualTerms, Slope, SlopeDoubt
from . import tasks
from .cluster import Cluster, total_of
from .spec import Spec
from .tasks import PartTerms, Point, Shift, Survey


class ClusterSums:
    """The sums at one point (w, b); `RowSums` for `certificate.bound_from_sums`."""

    def __init__(self, cluster: Cluster, spec: Spec, point: Point, w: Array) -> None:
        self.cluster, self.spec, self.point, self.w = cluster, spec, point, w
        self.rebuilt = False

    def evaluate(self) -> None:
        """Run the stages that every certificate needs."""
        balance = self._balance() if self.spec.fit_intercept else None
        self._collect(balance)
        if balance is not None and self.imbalance.excess > MUCH * self.imbalance.reach:
            # Next to no row can move; see `dual_domain`.
            self._collect(Shift(0.0, 0.0, 0.0, shrink=True))

    def _collect(self, balance: Shift | None) -> None:
        reply = self.cluster.stage("certificate", tasks.gap_terms, self.spec, self.point, balance, w=self.w)
        self.rebuilt = self.rebuilt or reply.rebuilt
        parts: list[PartTerms] = reply.terms
        self.sums = total_of(reply)
        self.sums_error = max(part.sums_error for part in parts) + len(parts) * EPS
        gaps = [part.gap for part in parts]
        self.terms = GapTerms(*(math.fsum(column) for column in zip(*gaps, strict=True)))
        self.residuals = np.sum([part.residuals for part in parts], axis=0)
        self.imbalance = Imbalance(0.0, 1.0, 0.0, 0.0)
        if self.spec.fit_intercept:
            excess = abs(math.fsum(part.total for part in parts))
            excess = excess * (1 + EPS) + sum(part.total_error for part in parts) * (1 + len(parts) * EPS)
            freest = max(parts, key=lambda part: part.reach)
            fits = excess <= freest.reach
            self.imbalance = Imbalance(excess if fits else math.inf, freest.reach, freest.farther, freest.norm)
            if excess == 0.0:
                self.imbalance = Imbalance(0.0, 1.0, 0.0, 0.0)

    def _balance(self) -> Shift:
        """Find the shift to Σ α = 0; improve b by a Newton step (or several, where α follows from b)."""
        for _ in range(1 if self.point.seq is not None else 8):
            reply = self.cluster.stage("margins", tasks.survey, self.spec, self.point, w=self.w)
            self.rebuilt = self.rebuilt or reply.rebuilt
            found: list[Survey] = reply.terms
            slope = merged_slopes([[part.slope] for part in found])[0]
            step = -slope.total / slope.curvature if slope.curvature > 0.0 else 0.0
            if self.point.seq is not None:
                self.point = self.point._replace(b=self.point.b + step)
            elif abs(slope.total) > 4.0 * EPS * slope.size and self.point.b + step != self.point.b:
                self.point = self.point._replace(b=self.point.b + step)
                continue
            break
        total = math.fsum(part.total for part in found)
        rooms = [part.down if total > 0.0 else part.up for part in found]
        unlimited, room = math.fsum(r[0] for r in rooms), math.fsum(r[1] for r in rooms)
        if unlimited == 0.0 and room < abs(total):
            return Shift(0.0, 0.0, 0.0)  # the domain excludes Σ α = 0; the certificate will say so
        return Shift(total, unlimited, room)

    # --- RowSums ----------------------------------------------------------------------------------------------------

    def gap_terms(self) -> tuple[GapTerms, Imbalance]:
        """Return the terms of P(w, b) − D(α)."""
        return self.terms, self.imbalance

    def residual_rows(self, h: float, gradient: Array) -> ResidualTerms:
        """gradient += (1/n) Σ κ_i x_i."""
        reply = self.cluster.stage(
            "gradient", tasks.residual_rows, self.spec, self.point, h, reply_bytes=8 * self.spec.d
        )
        gradient += total_of(reply)
        return ResidualTerms(*(math.fsum(column) for column in zip(*reply.terms, strict=True)))

    def slope_doubt(self) -> SlopeDoubt:
        """Return what rounding may hide of a slope."""
        doubts = self.cluster.stage("intercept", tasks.slope_doubt, self.spec, self.point).terms
        fixed, per_distance = (math.fsum(column) for column in list(zip(*doubts, strict=True))[:2])
        return SlopeDoubt(fixed, per_distance, max(doubt.largest_margin for doubt in doubts))

    def slopes(self, at: Sequence[float]) -> list[Slope]:
        """Return the slopes at several intercepts."""
        reply = self.cluster.stage("intercept", tasks.slopes, self.spec, self.point, list(at))
        return merged_slopes(reply.terms)

    def shifted_slopes(self, at: Sequence[float], radius: float, fuzz: float) -> list[tuple[float, float]]:
        """Return Σ s φ'(z_i + b + (radius + fuzz) ‖x_i‖) and the size of its terms, for several b."""
        reply = self.cluster.stage("intercept", tasks.shifted_slopes, self.spec, self.point, list(at), radius, fuzz)
        return [
            (math.fsum(total for total, _ in column), math.fsum(size for _, size in column))
            for column in zip(*reply.terms, strict=True)
        ]

    def typical_norm(self) -> float:
        """Return the root of the mean ‖x_i‖²."""
        return math.sqrt(self.spec.mean_norm_squared)


def merged_slopes(parts: list[list[Slope]]) -> list[Slope]:
    """Add up slopes: one list a partition, one entry an intercept."""
    return [Slope(*(math.fsum(values) for values in zip(*column, strict=True))) for column in zip(*parts, strict=True)]
