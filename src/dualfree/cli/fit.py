"""``dualfree fit``: data in, a certified model out."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..io import DataError, Dataset, Encoding, load_model, save_model
from ..status import Status
from . import exits, scoring
from .cluster import cluster_address
from .fitting import Fit, fit_model
from .interrupt import first_press_keeps_the_model
from .options import (
    json_option,
    make_objective,
    objective_options,
    quiet_option,
    read_for_model,
    read_training_data,
    reading_options,
    solver_options,
    strength_options,
    training_data_options,
)
from .output import Output, say_certificates, say_data_notes
from .progress import FitProgress
from .trace_file import TRACE_SUFFIXES, write_trace


@click.command(short_help="Fit a model to data and certify it.")
@click.argument("data", type=click.Path())
@objective_options
@strength_options
@solver_options
@click.option("--valid", metavar="DATA", type=click.Path(), help="Score the model on these data, too.")
@click.option("--model", "model_file", metavar="FILE", type=click.Path(), help="Write the model here (safetensors).")
@click.option(
    "--report", metavar="FILE", type=click.Path(), help="Write a page with curves and certificate here (HTML)."
)
@click.option("--trace", metavar="FILE", type=click.Path(), help="Write the history here (.parquet, .csv or .jsonl).")
@click.option("--warm-start", metavar="MODEL", type=click.Path(), help="Begin where this model ended.")
@click.option("--no-dual", is_flag=True, help="Leave the dual vectors out of the model: a smaller file, a longer fit.")
@click.option(
    "--cluster",
    type=cluster_address,
    metavar="ADDRESS",
    help="Fit on a Dask cluster: the address of its scheduler, or local:4 for four processes on this machine.",
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    type=click.Path(),
    help="On a cluster: save the point reached here on the way; the same command goes on from it.",
)
@training_data_options
@reading_options
@json_option
@quiet_option
def fit(data: str, as_json: bool, quiet: bool, **options: Any) -> int:
    r"""Fit a linear model to DATA and certify how close to the optimum it is.

    DATA is LIBSVM text (gz, bz2, xz too), CSV, TSV, Parquet, Arrow or .npz; - reads standard input. With more than two
    classes, one model is fitted for each class against the rest.

    Ctrl-C keeps the best model so far; a second Ctrl-C stops at once.

    With --cluster the workers read DATA, which is LIBSVM text or Parquet and may be a pattern; an epoch is a round of
    communication then. The model holds no dual vectors: its certificate is what the weights alone prove.

    \b
    Examples:
      dualfree fit train.svm --intercept --model m.safetensors
      dualfree fit train.svm.xz --loss squared_hinge --C 10 --valid test.svm --report fit.html
      dualfree fit houses.csv --target price --loss huber:1.35 --intercept --max-time 30s
      xzcat huge.svm.xz | dualfree fit - --float32 --model m.safetensors
      dualfree fit 'parts/*.svm' --cluster tcp://host:8786 --checkpoint fit.npz --model m.safetensors
    """
    output = Output("fit", as_json)
    _check_outputs(options)
    if options["cluster"] is not None:
        from .cluster_fit import fit_on_cluster

        return fit_on_cluster(output, data, quiet, options)
    if options["checkpoint"] is not None:
        raise click.UsageError("--checkpoint is for fits on a cluster; give --cluster, too.")
    training = read_training_data(data, quiet, **taken(options, READING))
    say_data_notes(output, training)
    objective = make_objective(training.X.shape[0], **taken(options, ("loss", "lam", "c", "intercept", "class_weight")))
    start = load_model(options["warm_start"]) if options["warm_start"] else None
    valid = read_valid(options, training.name, training.encoding, quiet, output)
    say_data(output, training)

    recorder = None
    if options["report"]:
        from ..report import ResidualRecorder

        recorder = ResidualRecorder()
    columns = _column_count(training, objective)
    with FitProgress(quiet, columns, options["tol"]) as progress, first_press_keeps_the_model():

        def watch(column: int, problem: Any, state: Any) -> None:
            progress.update(column, problem.at_zero, state)
            if recorder is not None:
                recorder.record(column, problem, state)

        done = fit_model(
            training,
            objective,
            solver=options["solver"],
            tol=options["tol"],
            max_epochs=options["max_epochs"],
            max_time=options["max_time"],
            seed=options["seed"],
            threads=options["threads"],
            options=dict(options["solver_option"]),
            warm_start=start,
            keep_dual=not options["no_dual"],
            skip_bad_lines=options["skip_bad_lines"],
            watch=watch,
        )
    status = say_end(output, done)
    scores = say_scores(output, done, valid)
    written = write_model_and_trace(done, options)
    if options["report"]:
        from ..report import write_report

        assert recorder is not None
        write_report(options["report"], done.model, done.results, training, recorder.densities, valid, scores)
        written["report"] = options["report"]
    say_files(output, written)
    return output.end(status)


READING = (
    "file_format",
    "no_header",
    "skip_bad_lines",
    "target",
    "categorical",
    "ignore",
    "features",
    "index_base",
    "max_features",
    "float32",
)


def taken(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of these names."""
    return {name: options[name] for name in names}


def _check_outputs(options: dict[str, Any]) -> None:
    """Refuse a file that cannot be written before hours are spent on what it would hold."""
    for option in ("model_file", "report", "trace", "checkpoint"):
        path = options[option]
        if path is not None and (Path(path).is_dir() or not Path(path).parent.is_dir()):
            raise DataError(path, "this file cannot be written: its folder does not exist, or it is a folder itself.")
    if options["trace"] is not None and Path(options["trace"]).suffix not in TRACE_SUFFIXES:
        raise DataError(
            options["trace"], f"the trace is written as {', '.join(TRACE_SUFFIXES)}; choose one by the suffix."
        )


def read_valid(options: dict[str, Any], name: str, encoding: Encoding, quiet: bool, output: Output) -> Dataset | None:
    """Read the data of --valid, if there are any, as the training data of that name were read."""
    if options["valid"] is None:
        return None
    same_format = options["file_format"] if Path(options["valid"]).suffix == Path(name).suffix else None
    valid = read_for_model(
        options["valid"], encoding, quiet, same_format, options["no_header"], options["skip_bad_lines"]
    )
    say_data_notes(output, valid)
    return valid


def _column_count(training: Dataset, objective: Any) -> int:
    classes = None if training.y is None else objective.classes(training.y)
    return 1 if classes is None or len(classes) == 2 else len(classes)


def say_data(output: Output, data: Dataset) -> None:
    """Print what was read."""
    n, d = data.X.shape
    nnz = int(getattr(data.X, "nnz", n * d))
    output.put(data={"name": data.name, "n_rows": n, "n_features": d, "nnz": nnz, "bad_lines": data.bad_lines})
    output.say(f"{data.name}: {n} rows, {d} features, {nnz} stored entries.")


def say_end(output: Output, done: Fit[Any], unit: str = "epoch") -> int:
    """Print how the fit ended, with its certificates; return the exit status. A `unit` is what `n_epochs` counts."""
    model = done.model
    status = exits.of(result.status for result in done.results)
    epochs = max(outcome.n_epochs for outcome in model.outcomes)
    output.put(
        objective=asdict(model.objective),
        solver=model.training.solver,
        tol=model.training.tol,
        seconds=done.seconds,
        n_epochs=epochs,
        status={exits.CERTIFIED: "certified", exits.STOPPED: "stopped", exits.INTERRUPTED: "interrupted"}[status],
    )
    ends = [result for result in done.results if result.status is not Status.CONVERGED]
    verdict = (
        "Certified" if status == exits.CERTIFIED else "Interrupted" if status == exits.INTERRUPTED else "Not certified"
    )
    reason = "" if not ends else " " + ends[0].message
    output.say(f"{verdict} after {epochs} {unit}{'s' if epochs != 1 else ''} and {done.seconds:.2f} s.{reason}")
    say_certificates(output, model)
    return status


def say_scores(output: Output, done: Fit[Any], valid: Dataset | None) -> dict[str, float | None] | None:
    """Print how well the model predicts the data of --valid, if there are any; return the numbers."""
    if valid is None:
        return None
    scores = scoring.score(done.model, valid)
    output.put(valid={"data": valid.name, "n_rows": valid.X.shape[0], **scores})
    output.say(f"On {valid.name}: {scoring.in_words(scores)}.")
    return scores


def write_model_and_trace(done: Fit[Any], options: dict[str, Any]) -> dict[str, str]:
    """Write what --model and --trace ask for; return the files."""
    written = {}
    if options["model_file"]:
        save_model(done.model, options["model_file"])
        written["model"] = options["model_file"]
    if options["trace"]:
        write_trace(done.model, done.results, options["trace"])
        written["trace"] = options["trace"]
    return written


def say_files(output: Output, written: dict[str, str]) -> None:
    """Print what was written."""
    for kind, path in written.items():
        output.say(f"Wrote the {kind} {path}.")
    output.put(files=written)
