"""``dualfree path``: the same problem for many λ."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click
import numpy as np

from .. import path as solve_path
from .._checks import Array
from .._version import __version__
from ..io import Dataset, Model, Objective, Outcome, Training, save_model
from ..path import Path as LambdaPath
from ..problem import Problem
from ..report.words import score_names
from ..solvers import State
from . import exits, scoring
from .fit import READING, read_valid, say_data, taken
from .fitting import check_target
from .interrupt import first_press_keeps_the_model
from .options import (
    json_option,
    make_objective,
    objective_options,
    quiet_option,
    read_training_data,
    reading_options,
    solver_options,
    training_data_options,
)
from .output import Output, say_data_notes
from .progress import FitProgress


def _descending(text: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        lams = [float(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers with commas between them.") from None
    if not all(0 < lam < np.inf for lam in lams):
        raise click.BadParameter("each λ must be a finite number above zero.")
    return sorted(set(lams), reverse=True)


@click.command(short_help="Fit for many λ, each from where the last one ended.")
@click.argument("data", type=click.Path())
@click.option(
    "--lams",
    type=_descending,
    metavar="λ,λ,…",
    help="The values of λ, with commas between them. By default a grid is chosen.",
)
@click.option("--count", type=click.IntRange(min=2), default=25, show_default=True, help="Number of λ in the grid.")
@click.option(
    "--ratio",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=1e-6,
    show_default=True,
    help="Smallest λ of the grid over the largest, which is where the penalty outweighs the data everywhere.",
)
@objective_options
@solver_options
@click.option("--valid", metavar="DATA", type=click.Path(), help="Score each model on these data, and name the best.")
@click.option(
    "--model", "model_file", metavar="FILE", type=click.Path(), help="Write the best model here; needs --valid."
)
@click.option(
    "--picture", metavar="FILE", type=click.Path(), help="Draw coefficients, scores and gaps over λ (.png, .svg)."
)
@training_data_options
@reading_options
@json_option
@quiet_option
def path(
    data: str, as_json: bool, quiet: bool, lams: list[float] | None, count: int, ratio: float, **options: Any
) -> int:
    r"""Fit DATA for many λ, from the largest to the smallest, and certify each.

    Warm starts make the whole path cost little more than its last fits. With --valid, the best λ is the one with the least
    log loss (logistic loss), the highest accuracy (other losses for classes) or the highest R² (numbers).

    \b
    Examples:
      dualfree path train.svm --valid test.svm --picture path.png --model best.safetensors
      dualfree path train.svm --lams 1e-2,1e-3,1e-4 --loss squared_hinge
    """
    output = Output("path", as_json)
    if options["model_file"] and not options["valid"]:
        raise click.UsageError("--model writes the model with the best score, so it needs --valid.")
    training = read_training_data(data, quiet, **taken(options, READING))
    say_data_notes(output, training)
    objective = make_objective(
        training.X.shape[0], lam=1.0, c=None, **taken(options, ("loss", "intercept", "class_weight"))
    )
    y = check_target(training, objective)
    valid = read_valid(options, training.name, training.encoding, quiet, output)
    say_data(output, training)
    classes = objective.classes(y)
    problems = list(objective.problems(training.X, y, classes))
    grid = np.array(lams) if lams is not None else lambda_grid(problems[0], count, ratio)
    paths = _solve_all(problems, grid, quiet, options)
    models = _models(training, objective, classes, grid, paths, options)
    if not models:
        raise KeyboardInterrupt
    scores = [scoring.score(model, valid) for model in models] if valid is not None else None
    best = None if scores is None else best_index(objective, scores)
    _say_table(output, models, scores, best)
    _write_files(output, models, scores, best, options)
    complete = all(one.complete for one in paths) and len(paths) == len(problems)
    status = exits.of(result.status for one in paths for result in one)
    if status == exits.CERTIFIED and not complete:
        status = exits.STOPPED
    return output.end(status)


def lambda_grid(problem: Problem, count: int, ratio: float) -> Array:
    """Return `count` values of λ from the largest that makes sense down to `ratio` times it, evenly on a log scale.

    The Hessian of the mean loss is at most L̃ (1/n) Σ s_i ‖x_i‖²: with λ of that size the penalty outweighs the data in every
    direction. A loss that is not smooth is taken as if L̃ were 1.
    """
    smoothness = problem.loss.smoothness if np.isfinite(problem.loss.smoothness) else 1.0
    largest = smoothness * float(np.mean(problem.sample_weight * problem.row_norms_squared))
    return np.geomspace(largest or 1.0, (largest or 1.0) * ratio, count)


def best_index(objective: Objective, scores: list[dict[str, float | None]]) -> int | None:
    """Return which model is the best; the first of equals, so the one with the largest λ."""
    key, sign = ("r2", 1) if not objective.is_classification else ("accuracy", 1)
    if objective.loss == "logistic" and all(s["log_loss"] is not None for s in scores):
        key, sign = "log_loss", -1
    values = [s[key] for s in scores]
    known = [value for value in values if value is not None]
    return None if len(known) < len(values) else int(np.argmax([sign * value for value in known]))


def _solve_all(problems: list[Problem], grid: Array, quiet: bool, options: dict[str, Any]) -> list[LambdaPath]:
    paths: list[LambdaPath] = []
    total = len(problems) * len(grid)
    share = None if options["max_time"] is None else options["max_time"] / len(problems)
    with FitProgress(quiet, total, options["tol"], what="λ") as progress, first_press_keeps_the_model():
        for column, problem in enumerate(problems):
            begun = -1

            def watch(state: State, problem: Problem = problem, column: int = column) -> None:
                nonlocal begun
                begun += state.epoch == 0
                progress.update(column * len(grid) + begun, problem.at_zero, state)

            one = solve_path(
                problem,
                grid,
                max_time=share,
                solver=options["solver"],
                tol=options["tol"],
                max_epochs=options["max_epochs"],
                random_state=options["seed"],
                n_threads=options["threads"],
                callback=watch,
                **dict(options["solver_option"]),
            )
            paths.append(one)
            if exits.of(result.status for result in one) == exits.INTERRUPTED:
                break
    return paths


def _models(
    training: Dataset, objective: Objective, classes: Any, grid: Array, paths: list[LambdaPath], options: dict[str, Any]
) -> list[Model]:
    """Return a model for each λ that every column has solved, the largest λ first."""
    k = 1 if classes is None or len(classes) == 2 else len(classes)
    if len(paths) < k:
        return []
    models = []
    facts = (options["skip_bad_lines"], options["solver"], options["tol"], options["seed"])
    origin = Training(training.name, training.X.shape[0], *facts, training.fingerprint())
    for index in range(min(len(one) for one in paths)):
        results = [one[index] for one in paths]
        models.append(
            Model(
                coef=np.array([result.w for result in results]),
                intercept=np.array([result.intercept for result in results]),
                alpha=np.array([result.alpha for result in results]),
                classes=classes,
                objective=replace(objective, lam=float(grid[index])),
                encoding=training.encoding,
                training=origin,
                outcomes=tuple(
                    Outcome(r.certificate, r.status.value, r.n_epochs, float(r.trace.seconds[-1])) for r in results
                ),
                version=__version__,
            )
        )
    return models


def _say_table(
    output: Output, models: list[Model], scores: list[dict[str, float | None]] | None, best: int | None
) -> None:
    names = list(scores[0]) if scores else []
    output.say(
        f"{'λ':>10}  {'C':>10}  {'epochs':>6}  {'seconds':>8}  {'gap/P(0)':>8}  {'‖w‖':>10}"
        + "".join(f"  {score_names[name]:>12.12}" for name in names)
    )
    rows = []
    for index, model in enumerate(models):
        lam = model.objective.lam
        row: dict[str, Any] = {
            "lam": lam,
            "C": 1.0 / (lam * model.training.n_rows),
            "n_epochs": max(o.n_epochs for o in model.outcomes),
            "seconds": sum(o.seconds for o in model.outcomes),
            "relative_gap": max(o.certificate.relative_gap for o in model.outcomes),
            "norm": float(np.linalg.norm(model.coef)),
            "status": [o.status for o in model.outcomes],
        }
        cells = (
            f"{lam:10.3e}  {row['C']:10.3e}  {row['n_epochs']:6d}  {row['seconds']:8.3f}  {row['relative_gap']:8.1e}"
        )
        cells += f"  {row['norm']:10.4g}"
        if scores is not None:
            row.update(scores[index])
            cells += "".join(f"  {'—' if v is None else f'{v:.6g}':>12}" for v in scores[index].values())
        output.say(cells + ("  ← best" if index == best else ""))
        rows.append(row)
    output.put(path=rows, best=best)


def _write_files(
    output: Output,
    models: list[Model],
    scores: list[dict[str, float | None]] | None,
    best: int | None,
    options: dict[str, Any],
) -> None:
    written = {}
    if options["picture"]:
        from ..report import draw_path

        draw_path(models, scores, best, options["picture"])
        written["picture"] = options["picture"]
    if options["model_file"] and best is not None:
        save_model(models[best], options["model_file"])
        written["model"] = options["model_file"]
    for kind, name in written.items():
        output.say(f"Wrote the {kind} {name}.")
    output.put(files=written)
