"""``dualfree fit --cluster``: the same fit with the rows on the workers of a Dask cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from .._version import __version__
from ..certificate import Certificate
from ..distributed import ClusterError, DistributedResult, Partitions, RoundState, solve
from ..distributed.inputs.labels import label_blocks
from ..distributed.weights_alone import certify_weights
from ..io import Model, Objective, Outcome, Training
from ..status import Status
from .cluster import connected, has_dashboard
from .cluster_data import TIMEOUT, ClusterData, read_on_cluster
from .fit import read_valid, say_end, say_files, say_scores, taken, write_model_and_trace
from .fitting import Fit
from .interrupt import first_press_keeps_the_model
from .options import make_objective
from .output import Output
from .progress import FitProgress

Watch = Callable[[int, RoundState], None]

_LOCAL_ONLY: dict[str, Callable[[dict[str, Any]], bool]] = {
    "--solver": lambda options: options["solver"] != "auto",
    "--threads": lambda options: options["threads"] != 1,
    "--option": lambda options: bool(options["solver_option"]),
    "--warm-start": lambda options: options["warm_start"] is not None,
    "--report": lambda options: options["report"] is not None,
    "--categorical": lambda options: bool(options["categorical"]),
    "--no-header": lambda options: options["no_header"],
}
_INNER_TOL_FACTOR = 0.05


def fit_on_cluster(output: Output, data: str, quiet: bool, options: dict[str, Any]) -> int:
    """Run the command on a cluster; return its exit status."""
    for option, given in _LOCAL_ONLY.items():
        if given(options):
            raise click.UsageError(f"{option} is for fits on one machine; leave it or --cluster out.")
    strength = taken(options, ("loss", "lam", "c", "intercept", "class_weight"))
    asked = make_objective(1, **strength)
    if options["model_file"] is not None and not _weights_can_prove(asked):
        raise click.UsageError(
            f"a model from a cluster holds no dual vectors, and without them nothing can be proven for the loss {asked.loss}. "
            "Use a smooth loss, smoothed_hinge for instance, leave out --model, or fit on one machine."
        )
    try:
        with connected(options["cluster"]) as client:
            if not quiet and has_dashboard():
                output.note(f"Dashboard: {client.dashboard_link}")
            training = read_on_cluster(client, data, asked.is_classification, options)
            _say_data(output, client, training)
            objective = make_objective(training.found.n_rows, **strength)
            valid = read_valid(options, training.name, training.encoding, quiet, output)
            columns = 1 if training.classes is None or len(training.classes) == 2 else len(training.classes)
            with FitProgress(quiet, columns, options["tol"], unit="round") as progress, first_press_keeps_the_model():

                def watch(column: int, state: RoundState) -> None:
                    progress.update(column, _at_zero(state.certificate), state)

                done = _fit(client, training, objective, options, watch)
    except ClusterError as error:
        raise click.ClickException(str(error)) from None
    status = say_end(output, done, unit="round")
    say_scores(output, done, valid)
    say_files(output, write_model_and_trace(done, options))
    return output.end(status)


def _say_data(output: Output, client: Any, data: ClusterData) -> None:
    found, workers = data.found, len(client.nthreads())
    if data.bad_lines:
        output.note(f"{data.name}: {data.bad_lines} broken line{'s were' if data.bad_lines > 1 else ' was'} skipped.")
    output.put(
        data={
            "name": data.name,
            "n_rows": found.n_rows,
            "n_features": found.n_features,
            "nnz": found.nnz,
            "bad_lines": data.bad_lines,
        },
        cluster={"workers": workers, "partitions": len(data.blocks)},
    )
    output.say(
        f"{data.name}: {found.n_rows} rows, {found.n_features} features, {found.nnz} stored entries; "
        f"partitions: {len(data.blocks)}, workers: {workers}."
    )


def _at_zero(certificate: Certificate) -> float:
    return certificate.gap / certificate.relative_gap if certificate.relative_gap > 0 else 0.0


def _fit(
    client: Any, data: ClusterData, objective: Objective, options: dict[str, Any], watch: Watch
) -> Fit[DistributedResult]:
    """Solve one problem, or one for each class against the rest, over the same resident rows."""
    began = time.perf_counter()
    problems = _problems(client, data, objective)
    deadline = None if options["max_time"] is None else began + options["max_time"]
    results: list[DistributedResult] = []
    for column, blocks in enumerate(problems):
        interrupted = bool(results) and results[-1].status is Status.INTERRUPTED
        left = None if deadline is None else max(0.0, deadline - time.perf_counter()) / (len(problems) - column)
        checkpoint = options["checkpoint"]
        if checkpoint is not None and len(problems) > 1:
            checkpoint = Path(checkpoint).with_name(f"{Path(checkpoint).name}.{column}")
        result = (solve_without_dual if _weights_can_prove(objective) else _solve)(
            Partitions(blocks, n_features=data.found.n_features),
            tol=options["tol"],
            watch=partial(watch, column),
            problem={
                "loss": objective.make_loss(),
                "lam": objective.lam,
                "fit_intercept": objective.fit_intercept,
                "client": client,
                "timeout": TIMEOUT,
            },
            max_rounds=0 if interrupted else options["max_epochs"],
            max_time=left,
            random_state=options["seed"],
            checkpoint=checkpoint,
        )
        if interrupted and result.status is Status.MAX_EPOCHS:
            result = replace(result, status=Status.INTERRUPTED, message=Status.INTERRUPTED.sentence)
        results.append(result)
    model = Model(
        coef=np.array([result.w for result in results]),
        intercept=np.array([result.intercept for result in results]),
        alpha=None,
        classes=data.classes,
        objective=objective,
        encoding=data.encoding,
        training=Training(
            data.name,
            data.found.n_rows,
            options["skip_bad_lines"],
            "cocoa+",
            options["tol"],
            options["seed"],
            fingerprint=None,
        ),
        outcomes=tuple(
            Outcome(result.certificate, result.status.value, result.n_rounds, float(result.trace.seconds[-1]))
            for result in results
        ),
        version=__version__,
    )
    return Fit(model, results, time.perf_counter() - began)


def _problems(client: Any, data: ClusterData, objective: Objective) -> list[list[Any]]:
    """Return the blocks of each problem; with class weights, every row counts as its class says, in all of them."""
    classes, found = data.found.classes, data.found
    if classes is None or found.class_weights is None:
        return [data.blocks]
    costs = np.ones(classes.size)
    if objective.class_weight is not None:
        costs = found.n_rows / (classes.size * found.class_weights)
    positives = [1] if classes.size == 2 else range(classes.size)
    return [label_blocks(client, data.blocks, classes, costs, positive) for positive in positives]


def _weights_can_prove(objective: Objective) -> bool:
    """Return whether weights near the optimum prove it: for a smooth loss the gradient tells, for others α is needed."""
    return math.isfinite(objective.make_loss().smoothness)


def _solve(
    partitions: Partitions, *, tol: float, watch: Callable[[RoundState], None], problem: dict[str, Any], **limits: Any
) -> DistributedResult:
    return solve(partitions, tol=tol, callback=watch, **problem, **limits)


def solve_without_dual(
    partitions: Partitions, *, tol: float, watch: Callable[[RoundState], None], problem: dict[str, Any], **limits: Any
) -> DistributedResult:
    """Solve until the weights alone prove that the gap is at most tol.

    What they prove is larger than the gap with α, so the solve goes on below tol where needed.
    """
    proven: list[tuple[RoundState, Certificate, float]] = []
    ask_below = tol

    def stop(state: RoundState) -> bool:
        nonlocal ask_below
        watch(state)
        if state.certificate.relative_gap > ask_below:
            return False
        certificate, intercept = certify_weights(partitions, state.w, state.intercept, **problem)
        proven[:] = [(state, certificate, intercept)]
        ask_below *= _INNER_TOL_FACTOR
        return certificate.relative_gap <= tol

    result = solve(partitions, tol=0.0, callback=stop, **problem, **limits)
    if proven and proven[0][1].relative_gap <= tol:
        state, certificate, intercept = proven[0]
        return replace(
            result,
            w=state.w,
            intercept=intercept,
            certificate=certificate,
            status=Status.CONVERGED,
            message=Status.CONVERGED.sentence,
        )
    try:
        certificate, intercept = certify_weights(partitions, result.w, result.intercept, **problem)
    except KeyboardInterrupt:  # the first Ctrl-C came after the solve: what is missing is only the proof
        certificate, intercept = certify_weights(partitions, result.w, result.intercept, **problem)
        result = replace(result, status=Status.INTERRUPTED, message=Status.INTERRUPTED.sentence)
    message = result.message
    if result.status is Status.STALLED:
        message = "The weights alone, without the dual vectors that stay on the workers, cannot prove a gap of tol."
    return replace(result, certificate=certificate, intercept=intercept, message=message)
