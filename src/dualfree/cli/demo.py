"""``dualfree demo``: every solver on a small data set, its certificate, a picture and a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from ..io import Dataset, Encoding, Objective, read_data, save_model, written_in_place
from ..report.words import in_words
from ..result import Result
from ..solvers import SOLVERS, solve
from . import exits, scoring
from .fitting import fit_model
from .options import json_option
from .output import Output

_TOL = 1e-8
_LAM = 1e-2
_EVERY = 5  # every fifth row is kept for the test
_HEADER = f"{'solver':<12} {'epochs':>6} {'passes':>7} {'seconds':>8} {'primal':>13} {'gap':>8}  status"


@click.command(short_help="Fit a bundled data set with every solver.")
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    default="demo_output",
    show_default=True,
    help="Write picture, report, model and data here.",
)
@json_option
def demo(out: str, as_json: bool) -> int:
    r"""Fit scikit-learn's breast-cancer data with every solver and certify each answer.

    Writes the data as LIBSVM text (train.svm, test.svm), a picture of the convergence (convergence.png), the report of the
    fit with auto (report.html) and its model (model.safetensors) into a folder. Needs no network.
    """
    from ..report import ResidualRecorder, draw_convergence, write_report

    output = Output("demo", as_json)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    training, test = write_data(folder)
    objective = Objective("logistic", lam=_LAM, fit_intercept=True)
    problem = next(objective.problems(training.X, np.asarray(training.y)))
    output.say(
        f"Breast cancer, standardised: {problem.n} rows, {problem.d} features; logistic loss, λ = {_LAM:g}, tol {_TOL:g}."
    )
    output.say(_HEADER)
    results = {name: _run(output, name, problem) for name in SOLVERS}

    recorder = ResidualRecorder()
    done = fit_model(training, objective, tol=_TOL, seed=0, watch=recorder.record)
    scores = scoring.score(done.model, test)
    output.say()
    output.say(in_words(done.model.outcomes[0].certificate))
    output.say(f"On {test.X.shape[0]} other rows: {scoring.in_words(scores)}.")
    save_model(done.model, folder / "model.safetensors")
    draw_convergence(results, _TOL * problem.at_zero, folder / "convergence.png")
    write_report(folder / "report.html", done.model, done.results, training, recorder.densities, test, scores)
    files = sorted(file.name for file in folder.iterdir() if file.is_file())
    output.say(f"Wrote {', '.join(files)} into {folder}.")
    output.say(
        f"Next: dualfree fit {folder / 'train.svm'} --intercept --valid {folder / 'test.svm'} --model my.safetensors"
    )
    output.put(scores=scores, files=[str(folder / name) for name in files])
    output.put(solvers={name: _row(result) for name, result in results.items()})
    return output.end(exits.of(result.status for result in results.values()))


def _run(output: Output, name: str, problem: Any) -> Result:
    solve(problem, solver=name, max_epochs=1, random_state=0)  # compiles the kernels, which should not be timed
    result = solve(problem, solver=name, tol=_TOL, random_state=0)
    row = _row(result)
    output.say(
        f"{name:<12} {row['n_epochs']:>6} {row['passes']:>7.1f} {row['seconds']:>8.4f} {row['primal']:>13.9f} "
        f"{row['gap']:>8.1e}  {row['status']}"
    )
    return result


def _row(result: Result) -> dict[str, Any]:
    last = result.trace[-1]
    return {
        "n_epochs": result.n_epochs,
        "passes": last.passes,
        "seconds": last.seconds,
        "primal": result.certificate.primal,
        "gap": result.certificate.gap,
        "status": str(result.status),
    }


def write_data(folder: Path) -> tuple[Dataset, Dataset]:
    """Write the breast-cancer data as LIBSVM text, four fifths to train and one to test; return both as they were read."""
    from sklearn.datasets import dump_svmlight_file, load_breast_cancer
    from sklearn.preprocessing import scale

    X, y = load_breast_cancer(return_X_y=True)
    X = np.round(scale(X), 6)
    test = np.arange(y.size) % _EVERY == 0
    sets: list[Dataset] = []
    for name, rows in (("train.svm", ~test), ("test.svm", test)):
        with written_in_place(folder / name) as temporary:
            dump_svmlight_file(X[rows], np.where(y[rows] == 1, 1, -1), str(temporary), zero_based=False)
        encoding: Encoding | None = sets[0].encoding if sets else None
        sets.append(read_data(folder / name, encoding=encoding))
    return sets[0], sets[1]
