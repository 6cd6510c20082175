"""The report without a browser: self-contained, complete, safe; and the pictures."""

import io
import re

import numpy as np
import pytest

import dualfree as df
from dualfree.cli import scoring
from dualfree.cli.fitting import fit_model
from dualfree.io import Objective, read_data
from dualfree.report import ResidualRecorder, draw_convergence, write_report
from dualfree.report.plots import convergence, residual_density


def make_report(tmp_path, text, objective, target="t", **options):
    data = read_data(io.BytesIO(text.encode()), format="csv", target=target)
    recorder = ResidualRecorder()
    done = fit_model(data, objective, seed=0, watch=recorder.record, **options)
    path = tmp_path / "report.html"
    write_report(path, done.model, done.results, data, recorder.densities, data, scoring.score(done.model, data))
    return done, recorder, path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(0)
    rows = [
        f"{a!r},{b!r},{'xyz'[k % 3]},{int(a + b > 0)}" for k, (a, b) in enumerate(rng.normal(size=(120, 2)).tolist())
    ]
    return "a,b,c,t\n" + "\n".join(rows)


class TestPage:
    def test_parts(self, tmp_path, text):
        done, _, page = make_report(tmp_path, text, Objective("logistic", lam=0.01, fit_intercept=True))
        headings = re.findall(r"<h2>(.*?)</h2>", page)
        wanted = ["Certificate", "Convergence", "Dual residuals", "Largest coefficients", "Validation: the stream"]
        assert headings == [*wanted, "Data and settings"]
        assert f"at most {done.results[0].certificate.gap:.1e} above the optimum" in page
        assert ">certified<" in page
        assert "accuracy" in page
        assert page.count('class="plotly-graph-div"') == 5

    def test_nothing_is_loaded_from_elsewhere(self, tmp_path, text):
        _, _, page = make_report(tmp_path, text, Objective("logistic", lam=0.01))
        body = re.sub(r"<script>/\*\*.*?</script>", "", page, flags=re.DOTALL)
        assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=\"(?!data:)", body)

    def test_names_from_a_file_cannot_become_markup(self, tmp_path):
        evil = "<script>alert(1)</script>"
        text = f'"{evil}",b,t\n' + "\n".join(f"{i % 7},{i % 5},{evil if i % 2 else 'no'}" for i in range(40))
        _, _, page = make_report(tmp_path, text, Objective("logistic", lam=0.1))
        assert evil not in page
        assert "alert(1)" in page

    def test_fit_that_stopped(self, tmp_path, text):
        _, _, page = make_report(tmp_path, text, Objective("logistic", lam=1e-4), max_epochs=1, tol=1e-12)
        assert "not certified to tol" in page
        assert "max_epochs was reached before tol" in page

    def test_fit_without_an_epoch(self, tmp_path, text):
        _, recorder, page = make_report(tmp_path, text, Objective("logistic", lam=0.01), max_epochs=0)
        assert recorder.densities == []
        assert "Dual residuals" not in page

    def test_numbers(self, tmp_path, text):
        _, _, page = make_report(tmp_path, text, Objective("squared", lam=0.01), target="b")
        assert r"target \u2212 prediction" in page  # the title of an axis, as JSON writes it
        assert "mean absolute error" in page


class TestFigures:
    def test_curves_hold_the_trace(self):
        problem = df.Problem(np.eye(6), np.arange(6.0), loss="squared", lam=0.01)
        result = df.solve(problem, solver="dfsdca", random_state=0)
        figure = convergence(["x"], [result], [1e-6 * problem.at_zero], "passes")
        curve = figure.data[0]
        assert np.array_equal(curve.x, result.trace.passes)
        assert np.array_equal(curve.y, np.minimum.accumulate(result.trace.gap))
        assert figure.layout.yaxis.type == "log"

    def test_densities_are_densities(self):
        problem = df.Problem(np.eye(50), np.arange(50.0), loss="squared", lam=0.01)
        recorder = ResidualRecorder()
        df.solve(
            problem,
            solver="dfsdca",
            callback=lambda state: recorder.record(0, problem, state),
            random_state=0,
            evaluate_every=1,
        )
        epochs = [density.epoch for density in recorder.densities]
        assert epochs[:5] == [1, 2, 3, 4, 5]
        assert len(epochs) == 6
        figure = residual_density(["x"], recorder.densities)
        for curve in figure.data[:6]:
            widths = np.diff(np.array(curve.x, dtype=float))
            assert np.nansum(np.array(curve.y[:-1], dtype=float) * widths) == pytest.approx(1.0)
        shown = [curve.visible for curve in figure.data]
        assert shown == [True] * 6 + [False] * 6


def test_picture_formats(tmp_path):
    problem = df.Problem(np.eye(4), np.arange(4.0), loss="squared", lam=0.1)
    results = {"auto": df.solve(problem, random_state=0)}
    for suffix, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        draw_convergence(results, 1e-6, tmp_path / f"p{suffix}")
        assert (tmp_path / f"p{suffix}").read_bytes().startswith(magic)
    with pytest.raises(ValueError, match=r"a picture is written as \.png, \.svg, \.pdf"):
        draw_convergence(results, 1e-6, tmp_path / "p.gif")
