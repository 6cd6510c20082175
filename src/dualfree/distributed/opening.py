"""The first request of a fit with one partition: check the rows, describe them and begin to solve, all in one task.

A request to a worker takes about ten milliseconds, as long as a small fit, and there would be three. Only the worker
knows the rows, so it makes the `Spec` as well. What it cannot do (data that do not suit the loss, for instance) it leaves
alone: the client then asks step by step and finds the same mistake itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import begun, tasks
from .cluster import Cluster
from .one_partition import Request, Slice, run_slice
from .part import Part
from .partitions import Block
from .reply import Reply
from .setup import Asked, make_spec
from .spec import Spec
from .summary import merged
from .tasks import PartSummary


@dataclass(frozen=True, slots=True)
class Opened:
    """How far the first request has come, and the problem that it found."""

    spec: Spec
    first: Reply
    ended: bool


def open_fit(cluster: Cluster, asked: Asked, request: Request) -> Opened | None:
    """Send the first request; None where the fit has to begin step by step."""
    reply = cluster.open("solve", begin, asked, request, cluster.partitions.n_features, cluster.fit)
    if reply is None or not reply.terms:
        return None
    spec, found = reply.terms
    return Opened(spec, replace(reply, terms=[found]), found.outcome is not None)


def begin(block: Block, asked: Asked, request: Request, n_features: int | None, fit: int) -> Reply:
    """Do on the worker what the client would ask for in turn."""
    part = Part(block, 0, asked.loss, n_features)
    summary: PartSummary = tasks.describe(part).terms[0]
    try:
        whole, _ = merged([summary])
        spec = make_spec(whole, 1, asked, lambda spec, b: tasks.at_zero(part, spec, b).terms)
    except (ValueError, TypeError):
        begun.left(block, fit, part)
        return Reply(None, [], [])
    reply = run_slice(part, spec, request)
    found: Slice = reply.terms[0]
    if found.outcome is None:
        begun.left(block, fit, part)
    return replace(reply, terms=[spec, found])
