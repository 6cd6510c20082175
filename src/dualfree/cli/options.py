"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click
import numpy as np

from .._checks import near_match
from ..io import FORMATS, MAX_FEATURES, Dataset, Encoding, Objective, named_loss, read_data
from ..losses import LOSSES
from ..solvers import SOLVERS
from .progress import reading_progress

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|min|s|m|h)?\s*")


def duration(text: str) -> float:
    """Read a time (90, 90s, 1.5m, 1h30m, 500ms) as seconds."""
    seconds, at = 0.0, 0
    for match in _DURATION.finditer(text.strip()):
        if match.start() != at:
            break
        seconds += float(match[1]) * _UNITS[match[2] or "s"]
        at = match.end()
    if at == 0 or at != len(text.strip()):
        raise click.BadParameter(f"{text!r} is not a time; write 90, 90s, 1.5m or 1h30m.")
    return seconds


def loss_and_parameter(text: str) -> tuple[str, float | None]:
    """Read a loss with its parameter, if one is given: logistic, huber:1.35."""
    name, colon, written = text.partition(":")
    if name not in LOSSES:
        raise click.BadParameter(f"{name!r} is unknown.{near_match(name, LOSSES)} Known are {', '.join(LOSSES)}.")
    if not colon:
        return name, None
    try:
        parameter = float(written)
        named_loss(name, parameter)
    except ValueError as error:
        raise click.BadParameter(f"the parameter of {text!r} cannot be used: {error}") from None
    return name, parameter


def name_and_value(text: str) -> tuple[str, int | float | str]:
    """Read NAME=VALUE; the value is a number where it can be one."""
    name, equals, written = text.partition("=")
    if not (name.isidentifier() and equals and written):
        raise click.BadParameter(f"{text!r} is not NAME=VALUE.")
    for kind in (int, float):
        try:
            return name, kind(written)
        except ValueError:
            continue
    return name, written


def _together(*options: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")

quiet_option = click.option("--quiet", "-q", is_flag=True, help="Show no progress.")

reading_options = _together(
    click.option(
        "--format",
        "file_format",
        type=click.Choice(FORMATS),
        help="What DATA is. By default its first bytes and its suffix decide; an unknown suffix means LIBSVM text.",
    ),
    click.option("--no-header", is_flag=True, help="CSV, TSV: the first line is data; columns are column1, column2, …"),
    click.option(
        "--skip-bad-lines", is_flag=True, help="Count broken lines and go on instead of stopping at the first."
    ),
)

training_data_options = _together(
    click.option("--target", metavar="COLUMN", help="Tables: the column to predict."),
    click.option(
        "--categorical",
        metavar="COLUMN",
        multiple=True,
        help="Tables: a column of numbers that are names of categories. Text columns are categorical anyway. Repeatable.",
    ),
    click.option("--ignore", metavar="COLUMN", multiple=True, help="Tables: a column to leave out. Repeatable."),
    click.option("--features", type=click.IntRange(min=1), help="LIBSVM: number of features, if the file has fewer."),
    click.option(
        "--index-base",
        type=click.Choice(["auto", "0", "1"]),
        default="auto",
        show_default=True,
        help="LIBSVM: index of the first feature. auto: 0 if the index 0 occurs, else 1.",
    ),
    click.option(
        "--max-features",
        type=click.IntRange(min=1),
        default=MAX_FEATURES,
        show_default=True,
        help="Refuse data with more features than this.",
    ),
    click.option("--float32", is_flag=True, help="Keep the data in 32 bits: half the memory. Sums stay in 64 bits."),
)

objective_options = _together(
    click.option(
        "--loss",
        type=loss_and_parameter,
        metavar="LOSS",
        default="logistic",
        show_default=True,
        help=f"One of {', '.join(LOSSES)}; a parameter follows a colon, as in huber:1.35.",
    ),
    click.option("--intercept", is_flag=True, help="Fit an intercept. It is never penalised."),
    click.option(
        "--class-weight",
        type=click.Choice(["balanced"]),
        help="Give each class the same total weight, however rare it is.",
    ),
)

strength_options = _together(
    click.option("--lam", type=float, help="λ: the penalty is λ/2 ‖w‖² beside the mean loss."),
    click.option("--C", "c", type=float, help="LIBLINEAR's and scikit-learn's C = 1/(λn).  [default: 1]"),
)

solver_options = _together(
    click.option(
        "--solver",
        type=click.Choice(list(SOLVERS)),
        default="auto",
        show_default=True,
        help="The algorithm; auto chooses.",
    ),
    click.option(
        "--tol",
        type=float,
        default=1e-6,
        show_default=True,
        help="Stop when the certified gap is at most TOL times the objective at zero.",
    ),
    click.option("--max-time", type=duration, metavar="TIME", help="Stop after this time: 60s, 5m, 1h30m."),
    click.option(
        "--max-epochs", type=click.IntRange(min=0), default=1000, show_default=True, help="Stop after so many epochs."
    ),
    click.option("--seed", type=click.IntRange(min=0), help="Random seed: the same seed gives the same bits."),
    click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads for the solver."),
    click.option(
        "--option",
        "solver_option",
        type=name_and_value,
        metavar="NAME=VALUE",
        multiple=True,
        help="An option of the solver, such as shrink=10 or step=safe for adfsdca+. Repeatable.",
    ),
)


def read_training_data(
    data: str,
    quiet: bool,
    file_format: str | None,
    no_header: bool,
    skip_bad_lines: bool,
    target: str | None,
    categorical: tuple[str, ...],
    ignore: tuple[str, ...],
    features: int | None,
    index_base: str,
    max_features: int,
    float32: bool,
) -> Dataset:
    """Read DATA as the options of `reading_options` and `training_data_options` say."""
    with reading_progress(data, quiet) as progress:
        return read_data(
            data,
            format=file_format,
            target=target,
            categorical=categorical,
            ignore=ignore,
            header=not no_header,
            n_features=features,
            index_base=None if index_base == "auto" else int(index_base),
            dtype=np.float32 if float32 else None,
            skip_bad_lines=skip_bad_lines,
            max_features=max_features,
            progress=progress,
        )


def read_for_model(
    data: str,
    encoding: Encoding,
    quiet: bool,
    file_format: str | None,
    no_header: bool,
    skip_bad_lines: bool,
    need_target: bool = True,
) -> Dataset:
    """Read DATA the way the training data of a model were read."""
    with reading_progress(data, quiet) as progress:
        return read_data(
            data,
            format=file_format,
            header=not no_header,
            skip_bad_lines=skip_bad_lines,
            encoding=encoding,
            need_target=need_target,
            progress=progress,
        )


def make_objective(
    n_rows: int,
    loss: tuple[str, float | None],
    lam: float | None,
    c: float | None,
    intercept: bool,
    class_weight: str | None,
) -> Objective:
    """Return what to minimise; λ comes from --lam or from --C."""
    if lam is not None and c is not None:
        raise click.UsageError("--lam and --C say the same thing; give one of them.")
    strength, option = (c, "--C") if c is not None else (lam, "--lam")
    if strength is not None and not 0 < strength < np.inf:
        raise click.BadParameter(f"{strength:g} is not a finite number above zero.", param_hint=option)
    if lam is None:
        lam = 1.0 / ((1.0 if c is None else c) * n_rows)
    name, parameter = loss
    objective = Objective(name, parameter, lam, intercept, class_weight)
    if class_weight is not None and not objective.is_classification:
        raise click.UsageError(f"--class-weight needs a loss for classes; {name} is for numbers.")
    return objective
