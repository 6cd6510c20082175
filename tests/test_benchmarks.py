"""The benchmark measures what it says: suboptimality, the choice of tolerances, resuming, and every peer's scaling."""

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

pytest.importorskip("pyarrow")

from benchmarks import compare, other_data, summary, threads, versions
from benchmarks.datasets import NotComparedError, files_in, load, looks_multiclass
from benchmarks.grid import LEVELS, Cell
from benchmarks.ladder import Attempt, choose
from benchmarks.peers import FILES, Answer, Task, installed
from benchmarks.peers.base import TOLERANCES
from benchmarks.profiles import profile, share_within
from benchmarks.reference import reference_for
from benchmarks.results import Results
from benchmarks.worker import Failure, Fit, Job, Worker

LAM = 0.5  # so large that a wrong factor changes much


def task(loss, intercept=False, sparse=False, dtype=np.float64, lam=LAM):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)) + 0.5
    score = X @ np.array([1.0, -2.0, 0.5, 0.0, 1.0]) + rng.normal(size=120) + 1.0
    y = score if loss == "squared" else np.where(score > 0.5, 1.0, -1.0)
    X = X.astype(dtype)
    return Task(scipy.sparse.csr_matrix(X) if sparse else X, y, loss, lam, intercept)


# --- suboptimality ----------------------------------------------------------------------------------------------------


def test_suboptimality_of_ridge_is_the_quadratic_form():
    problem = task("squared")
    n, d = problem.X.shape
    hessian = problem.X.T @ problem.X / n + problem.lam * np.eye(d)
    best = np.linalg.solve(hessian, problem.X.T @ problem.y / n)
    reference = reference_for(problem)
    assert reference.gap <= 1e-10
    for step in (1.0, 1e-2, 1e-4):
        off = step * np.arange(1.0, d + 1)
        excess, at_zero = off @ hessian @ off / 2, best @ hessian @ best / 2
        assert reference.suboptimality(Answer(best + off)) == pytest.approx(excess / at_zero, rel=1e-5)


def test_suboptimality_is_one_at_zero_and_counts_the_intercept():
    problem = task("logistic", intercept=True)
    reference = reference_for(problem)
    positive = (problem.y > 0).mean()
    alone = math.log(positive / (1 - positive))  # the best intercept at w = 0
    assert reference.suboptimality(Answer(np.zeros(5), alone)) == pytest.approx(1.0)
    assert reference.suboptimality(Answer(np.zeros(5), alone + 1.0)) > 1.1


def test_a_loose_reference_judges_only_coarse_levels():
    reference = reference_for(task("squared"))
    loose = type(reference)(reference.problem, reference.optimum, reference.at_zero, gap=1e-7, computed=1e-8)
    assert [loose.can_judge(level) for level in LEVELS] == [True, True, False]


def test_the_allowance_for_rounding_does_not_move_the_optimum():
    problem = task("squared", lam=1e-6)
    n, d = problem.X.shape
    X = problem.X * np.array([1e4, 1.0, 1e-2, 1.0, 1e3]) + 1e4  # raw: all columns nearly the same
    raw = Task(X, problem.y, "squared", problem.lam)
    reference = reference_for(raw)
    wide = X.astype(np.longdouble)
    hessian, slope = wide.T @ wide / n + raw.lam * np.eye(d), wide.T @ raw.y / n
    best = np.zeros(d, dtype=np.longdouble)
    for _ in range(10):  # iterative refinement
        best += np.linalg.solve(hessian.astype(float), (slope - hessian @ best).astype(float))
    assert reference.gap > 10 * reference.computed, "the case that this is about"
    assert abs(reference.suboptimality(Answer(best.astype(float)))) < 1e-10


# --- the choice of tolerances -----------------------------------------------------------------------------------------

STEPS = tuple(10.0**-k for k in range(9))


def solver_with(reached_at, seconds_at=lambda tol: 0.01):
    asked = []

    def attempt(tol, limit):
        asked.append(tol)
        seconds = seconds_at(tol)
        return Attempt(seconds, math.nan, failed="too slow") if seconds > limit else Attempt(seconds, reached_at(tol))

    return attempt, asked


@pytest.mark.parametrize("factor", [1e-4, 0.1, 1.0, 20.0])
def test_the_loosest_tolerance_that_reaches_the_level_is_chosen(factor):
    attempt, asked = solver_with(lambda tol: factor * tol)
    choice = choose(attempt, STEPS, (1e-1, 1e-3, 1e-6), lambda level: 1.0)
    for level in (1e-1, 1e-3, 1e-6):
        expected = max(tol for tol in STEPS if factor * tol <= level)
        assert choice.chosen[level][0] == expected
        assert choice.chosen[level][1].reached == factor * expected
    assert len(asked) == len(set(asked)), "no tolerance is tried twice"


def test_a_level_that_no_tolerance_reaches_is_missed():
    attempt, asked = solver_with(lambda tol: max(tol, 1e-4))
    choice = choose(attempt, STEPS[:8], (1e-3, 1e-6), lambda level: 1.0)
    assert choice.chosen.keys() == {1e-3}
    assert "1.0e-04" in choice.missed[1e-6]
    assert STEPS[7] in asked, "the tightest tolerance has its chance"


def test_a_slow_solver_is_not_followed_further():
    attempt, asked = solver_with(lambda tol: tol, lambda tol: 0.1 / tol)
    choice = choose(attempt, STEPS, (1e-2, 1e-4, 1e-6), lambda level: {1e-2: 11.0, 1e-4: 900.0, 1e-6: 800.0}[level])
    assert choice.chosen.keys() == {1e-2}
    assert choice.missed.keys() == {1e-4, 1e-6}
    assert min(asked) == 1e-4


def test_a_failure_is_told():
    broken = Attempt(math.nan, math.nan, failed="ValueError: no", broken=True)
    choice = choose(lambda tol, limit: broken, STEPS, (1e-3,), lambda level: 1.0)
    assert choice.missed == {1e-3: "ValueError: no"}
    assert choice.error == "ValueError: no"


def test_one_tolerance_is_enough():
    attempt, _ = solver_with(lambda tol: 1e-12)
    choice = choose(attempt, (1e-12,), (1e-3, 1e-9), lambda level: 1.0)
    assert {level: tol for level, (tol, _) in choice.chosen.items()} == {1e-3: 1e-12, 1e-9: 1e-12}


# --- every peer solves our problem ------------------------------------------------------------------------------------

LOSSES = ("logistic", "squared_hinge", "squared")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("intercept", [False, True], ids=["no intercept", "intercept"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("file", FILES)
def test_peers_reach_the_optimum(file, loss, intercept, sparse):
    module = pytest.importorskip(f"benchmarks.peers.{file}", exc_type=ImportError)
    for dtype, tol, most in ((np.float64, 1e-10, 1e-7), (np.float32, 1e-5, 1e-4)):
        problem = task(loss, intercept, sparse, dtype)
        reference = reference_for(problem)
        for peer in module.PEERS:
            if peer.takes(problem):
                closest = min(peer.tolerances, key=lambda candidate: abs(math.log(candidate / tol)))
                answer = peer.fit(problem, closest)
                assert -1e-9 < reference.suboptimality(answer) < most, f"{peer.name}, {dtype.__name__}"
                assert answer.converged is not False


@pytest.mark.parametrize("factor", [0.5, 2.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_wrong_scaling_would_be_seen(loss, factor):
    problem, other = task(loss), task(loss, lam=LAM * factor)
    ours = installed()[0][0]
    assert reference_for(problem).suboptimality(ours.fit(other, 1e-10)) > 1e-3


def test_scikit_learn_takes_part_everywhere():
    for loss in LOSSES:
        assert any(peer.package == "scikit-learn" and peer.takes(task(loss)) for peer in installed()[0])


def test_tolerances_go_from_loose_to_tight():
    for peer in installed()[0]:
        assert list(peer.tolerances) == sorted(peer.tolerances, reverse=True)
    assert math.isclose(TOLERANCES[0] / TOLERANCES[1], math.sqrt(10))


# --- data sets --------------------------------------------------------------------------------------------------------


def write_npz(path, X, y):
    X = scipy.sparse.csr_matrix(X)
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)


def test_a_folder_of_archives_and_text(tmp_path):
    X = np.eye(4)
    write_npz(tmp_path / "both.npz", X, np.array([1.0, 2.0, 1.0, 2.0]))
    (tmp_path / "both.svm").write_text("7 1:1\n")
    (tmp_path / "text.svm").write_text("0 1:1\n1 2:1\n0 2:1 3:1\n")
    write_npz(tmp_path / "classes.npz", X, np.arange(4.0))
    write_npz(tmp_path / "numbers.npz", X, np.array([0.5, 1.0, 7.0, 7.5]))
    (tmp_path / "README.md").write_text("not data")
    files = files_in(tmp_path)
    assert files.keys() == {"both", "text", "classes", "numbers"}
    both = load("both", files["both"], "float32")
    assert (both.task, both.y.tolist(), both.X.dtype) == ("binary", [-1.0, 1.0, -1.0, 1.0], np.float32)
    assert isinstance(both.X, scipy.sparse.csr_matrix)
    assert load("text", files["text"], "float64").task == "binary"
    assert load("numbers", files["numbers"], "float64").task == "regression"
    with pytest.raises(NotComparedError, match=r"classes is left out: its targets 0 … 3"):
        load("classes", files["classes"], "float64")


def test_counts_and_percentages_are_not_classes():
    assert looks_multiclass(np.arange(1.0, 11.0))
    assert not looks_multiclass(np.array([0.0, 1.0, 2.0, 46.0, 47.0]))
    assert not looks_multiclass(np.arange(5.0, 9.0))
    assert not looks_multiclass(np.arange(0.0, 500.0))


# --- results ----------------------------------------------------------------------------------------------------------

CELL = Cell("a9a", "float64", "logistic", 1.0, False, 1)


def rows(**seconds):
    return [
        {"solver": solver, "level": level, "seconds": value, "note": "", "converged": None}
        for solver, values in seconds.items()
        for level, value in zip(LEVELS, values, strict=False)
    ]


def put(results, cell, **seconds):
    results.put(
        cell, rows(**seconds), reference_gap=1e-13, reference_gap_computed=1e-14, machine="m", versions="v", commit="c"
    )


def test_what_is_measured_is_not_measured_again(tmp_path):
    path = tmp_path / "new" / "results.parquet"
    results = Results(path)
    assert not results.has(CELL, ["dualfree"], LEVELS)
    put(results, CELL, dualfree=(1.0, 2.0, math.nan), cyanure=(1.0, 1.0))
    again = Results(path)
    assert again.has(CELL, ["dualfree"], LEVELS), "a level that was not reached is measured, too"
    assert not again.has(CELL, ["dualfree", "cyanure"], LEVELS)
    assert again.has(CELL, ["dualfree", "cyanure"], LEVELS[:2])
    for other in ({"lam_n": 0.1}, {"dtype": "float32"}, {"intercept": True}, {"threads": 2}, {"data": "w8a"}):
        assert not again.has(Cell(**{**vars(CELL), **other}), ["dualfree"], LEVELS)


def test_new_rows_replace_those_of_the_same_solver_only(tmp_path):
    results = Results(tmp_path / "results.parquet")
    put(results, CELL, dualfree=(1.0, 2.0, 3.0), cyanure=(4.0, 5.0, 6.0))
    put(results, Cell(**{**vars(CELL), "data": "w8a"}), dualfree=(7.0,))
    put(results, CELL, dualfree=(0.5, 0.6, 0.7))
    frame = Results(tmp_path / "results.parquet").frame
    assert len(frame) == 7
    a9a = frame[frame.data == "a9a"].set_index(["solver", "level"]).seconds
    assert a9a["dualfree"].tolist() == [0.5, 0.6, 0.7]
    assert a9a["cyanure"].tolist() == [4.0, 5.0, 6.0]


def test_another_file_is_refused(tmp_path):
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="holds no results of this benchmark"):
        Results(tmp_path / "other.parquet")


def test_ratios_and_totals(tmp_path):
    results = Results(tmp_path / "results.parquet")
    put(results, CELL, dualfree=(1.0, 2.0, math.nan), cyanure=(4.0, math.nan, 3.0), liblinear=(5.0, 1.0, math.nan))
    put(results, Cell(**{**vars(CELL), "lam_n": 0.1}), dualfree=(1.0, 1.0, 1.0), cyanure=(9.0, 8.0, math.nan))
    cells = summary.ratios(results.frame)
    assert cells.ratio.tolist() == [4.0, 0.5, 0.0, 9.0, 8.0, math.inf]
    assert cells.peer.tolist() == ["cyanure", "liblinear", "cyanure", "cyanure", "cyanure", ""]
    totals = summary.totals(cells).set_index("level")
    assert totals.geometric_mean.tolist()[:2] == pytest.approx([6.0, 2.0])
    assert totals.worst.tolist() == [4.0, 0.5, 0.0]
    assert totals.won.tolist() == [2, 1, 1]
    assert (totals.only_ours[1e-9], totals.only_peers[1e-9], totals.compared[1e-9]) == (1, 1, 0)


def test_performance_profile(tmp_path):
    results = Results(tmp_path / "results.parquet")
    put(results, CELL, dualfree=(1.0,), cyanure=(4.0,))
    put(results, Cell(**{**vars(CELL), "lam_n": 0.1}), dualfree=(3.0,), cyanure=(1.0,))
    put(results, Cell(**{**vars(CELL), "lam_n": 0.01}), dualfree=(2.0,), cyanure=(math.nan,))
    factors = profile(results.frame[results.frame.level == 1e-3])
    tau = np.array([1.0, 2.9, 3.0, 100.0])
    assert share_within(factors["dualfree"], tau) == pytest.approx([2 / 3, 2 / 3, 1.0, 1.0])
    assert share_within(factors["cyanure"], tau) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3])


# --- the whole program ------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")  # the program sets them; this puts them back
    problem = task("logistic")
    write_npz(tmp_path / "small.npz", problem.X, problem.y)
    return tmp_path


def test_a_fit_can_fail_or_be_ended_and_the_next_one_runs(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 40))
    write_npz(folder / "large.npz", X, np.sign(X[:, 0] + rng.normal(size=20_000)))
    cell = Cell("large", "float64", "logistic", 1e-6, False, 1)
    worker = Worker("large", folder / "large.npz", "float64", 1)
    try:
        slow = worker.fit(Job(cell, "sklearn saga", 1e-14), limit=0.05)
        assert isinstance(slow, Failure)
        assert slow.note.startswith("more than 0.05 s")
        unknown = worker.fit(Job(cell, "nobody", 1.0), limit=60)
        assert isinstance(unknown, Failure)
        assert "ended with code" in unknown.note
        fine = worker.fit(Job(cell, "sklearn lbfgs", 1e-2), limit=60)
        assert isinstance(fine, Fit)
        assert fine.seconds > 0
    finally:
        worker.close()


def test_the_program_measures_resumes_and_sums_up(folder, capsys):
    out = folder / "out" / "results.parquet"
    arguments = ["--data-dir", str(folder), "--out", str(out), "--losses", "logistic", "--lam-n", "1", "--repeats", "1"]
    arguments += ["--solvers", "dualfree,sklearn lbfgs,sklearn newton-cg", "--levels", "1e-3,1e-6"]
    arguments += ["--give-up", "10000"]  # on a busy machine a peer's millisecond may be fifty
    compare.main(arguments)
    assert "small logistic λn=1 to 1e-06" in capsys.readouterr().out
    first = pd.read_parquet(out)
    assert set(first.solver) == {"dualfree", "sklearn lbfgs", "sklearn newton-cg"}
    assert first.seconds.notna().all()
    assert (first.reached <= first.level).all()
    assert (first.seconds_min <= first.seconds).all()
    assert (first.seconds <= first.seconds_max).all()
    assert (first.reference_gap <= 1e-10).all()
    compare.main([*arguments, "--markdown", str(folder / "table.md"), "--plots"])
    assert "small logistic" not in capsys.readouterr().out.split("Best peer")[0], "nothing is measured twice"
    pd.testing.assert_frame_equal(first, pd.read_parquet(out))
    table = (folder / "table.md").read_text(encoding="utf-8")
    assert "| one thread, float64, no intercept | 1e-06 |" in table
    assert "| small | logistic | 1 |" in table
    for format in ("png", "svg"):
        assert (out.parent / f"results_profile_1_float64.{format}").stat().st_size > 1000
    compare.main([*arguments, "--fresh", "--lam-n", "1,0.1"])
    assert set(pd.read_parquet(out).lam_n) == {1.0, 0.1}


def test_parts_are_rows_of_other_sets(tmp_path):
    rng = np.random.default_rng(0)
    dense, sparse = rng.normal(size=(50, 3)), scipy.sparse.random(60, 200, density=0.02, format="csr", random_state=0)
    whole = tmp_path / "whole"
    whole.mkdir()
    other_data.write(whole, "dense", dense, rng.normal(size=50))
    other_data.write(whole, "sparse", sparse, np.where(rng.random(60) < 0.5, 1.0, -1.0))
    other_data.write(whole, "classes", dense, np.arange(50.0) % 4)  # not compared
    found = {name: (X, y) for name, X, y in other_data.parts(whole, 20)}
    assert set(found) == {"dense_20", "sparse_20"}
    X, y = found["dense_20"]
    chosen = [int(np.flatnonzero((dense == row).all(axis=1))[0]) for row in X.toarray()]
    assert chosen == sorted(set(chosen))
    assert y.size == X.shape[0] == 20
    X, y = found["sparse_20"]
    assert X.shape[1] < 200
    assert np.diff(X.tocsc().indptr).min() > 0
    assert set(y) == {-1.0, 1.0}


def test_other_data_are_sets_that_can_be_compared(tmp_path):
    some = itertools.chain(itertools.islice(other_data.sets(), 4), itertools.islice(other_data.more_sets(), 3))
    for name, X, y in some:
        other_data.write(tmp_path, name, X, y)
    found = files_in(tmp_path)
    expected = {"cancer_raw", "cancer_scaled", "digits_odd", "diabetes_raw", "wine_scaled", "mixed", "sensors"}
    assert set(found) == expected
    for name, path in found.items():
        data = load(name, path, "float64")
        assert data.task == ("regression" if name == "diabetes_raw" else "binary")
        assert data.X.shape[0] == data.y.size


def test_drawn_sets_follow_from_their_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(other_data, "_DRAWN_ENTRIES", 300_000)
    drawn = {name: (X, y) for name, X, y in other_data.drawn_sets(3)}
    for name, _, y in itertools.islice(other_data.drawn_sets(3), 3):
        assert np.array_equal(y, drawn[name][1])
    assert len(drawn) == 12
    assert {name.rsplit("_", 2)[0] for name in drawn} == set(other_data._KINDS)
    assert set(drawn).isdisjoint(name for name, _, _ in itertools.islice(other_data.drawn_sets(4), 2))
    for k, (name, (X, y)) in enumerate(drawn.items()):
        other_data.write(tmp_path, name, X, y)
        data = load(name, tmp_path / f"{name}.npz", "float64")
        assert data.task == ("regression" if k % 3 == 0 else "binary")
        assert data.X.shape == X.shape
        assert data.X.shape[0] * data.X.shape[1] <= 2_000_000 or data.X.nnz <= 400_000


def test_words_and_categories_are_as_they_say():
    rng = np.random.default_rng(0)
    words = other_data._words(50, 300, 20, rng)
    assert np.allclose(np.sqrt(words.multiply(words).sum(axis=1)), 1.0)
    categories = other_data._one_hot(40, [2, 5, 9], rng)
    assert categories.shape == (40, 16)
    assert np.array_equal(np.asarray(categories[:, :2].sum(axis=1)).ravel(), np.ones(40))
    assert np.array_equal(np.asarray(categories[:, 7:].sum(axis=1)).ravel(), np.ones(40))


def test_a_number_is_handed_over_and_back() -> None:
    """As often as was asked for, by two threads in turn."""
    places = np.zeros((2, 64), dtype=np.int64)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(threads._to_and_fro, 1, places, 50)
        threads._to_and_fro(0, places, 50)
        running.result()
    assert places[:, 0].tolist() == [50, 50]
    assert 1.0 < threads.hand_over(50) < 1e9


def test_two_versions_fit_in_turn(folder, monkeypatch, capsys):
    """The same code twice: the same passes, and a ratio for each fit that was asked for."""
    monkeypatch.setattr(versions, "_REPEATS", 2)
    monkeypatch.setattr(versions, "_SECONDS", 0.0)
    here = str(Path(versions.__file__).resolve().parents[1])
    chosen = ["--losses", "logistic", "--lam-n", "1", "--tols", "1e-3,1e-6"]
    monkeypatch.setattr("sys.argv", ["versions", "--data-dir", str(folder), "--before", here, *chosen])
    versions.main()
    lines = capsys.readouterr().out.splitlines()
    fits = [line for line in lines if "logistic" in line]
    assert [line.split(" to ")[1].split()[0] for line in fits] == ["0.001", "1e-06"] * (len(fits) // 2)
    for line in fits:
        before, now = line.split("passes ")[1].split(" → ")
        assert before == now
    assert [line.split(",")[0] for line in lines[-2:]] == ["to 0.001", "to 1e-06"]


def test_a_checkout_without_code_is_refused(folder, tmp_path):
    name, path = next(iter(files_in(folder).items()))
    with pytest.raises(SystemExit, match="holds no dualfree in src"):
        versions.Version(tmp_path, name, path)
