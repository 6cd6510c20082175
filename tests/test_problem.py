"""`Problem`: what it accepts, that it copies nothing, and its formulas against plain numpy."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
from problems import FORMS, LOSSES, dense, formed, make_problem
from reference import Reference

import dualfree as df
from dualfree import rows as _rows
from dualfree.multinomial import MultinomialProblem
from dualfree.problem import class_numbers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3))
Y = np.where(X[:, 0] > 0, 1.0, -1.0)


# --- the data are not copied ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dense64", "dense32"])
def test_dense_data_are_not_copied(form: str) -> None:
    matrix = formed(X, form)
    problem = df.Problem(matrix, Y)
    assert np.shares_memory(problem.X, matrix)
    assert np.shares_memory(problem.rows[0], matrix)


@pytest.mark.parametrize("values", [np.float32, np.float64])
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize("container", [scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_csr_data_are_not_copied(values: Any, indices: Any, container: Any) -> None:
    matrix = container(X * (X > -0.5), dtype=values)
    matrix.indices, matrix.indptr = matrix.indices.astype(indices), matrix.indptr.astype(indices)
    problem = df.Problem(matrix, Y)
    for shown, given in zip(problem.rows, (matrix.data, matrix.indices, matrix.indptr), strict=True):
        assert np.shares_memory(shown, given)


def random_csr(n: int, d: int, share: float) -> scipy.sparse.csr_matrix:
    return scipy.sparse.random(n, d, share, format="csr", random_state=0)


@pytest.mark.parametrize(
    ("n", "d", "share", "dense"),
    [
        (500, 20, 0.41, True),
        (500, 20, 0.39, False),  # too many zeros
        (500, 101, 0.59, False),  # with many columns
        (500, 101, 0.61, True),
        (400, 20, 1.0, False),  # too small to be worth it
    ],
)
def test_csr_matrices_with_few_zeros_are_kept_dense(n: int, d: int, share: float, dense: bool) -> None:
    matrix, y = random_csr(n, d, share), np.arange(n) % 2
    for kind in (df.Problem, MultinomialProblem):
        problem = kind(matrix, y, lam=1e-3)
        assert isinstance(problem.X, np.ndarray) == dense
        assert _rows.kind_of(problem.rows) is (_rows.Kind.DENSE if dense else _rows.Kind.VALUES)
        assert abs(problem.X - matrix).max() == 0.0


def test_a_large_csr_matrix_stays_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take too much memory."""
    monkeypatch.setattr(_rows, "_LARGE", 9_999)
    assert df.Problem(random_csr(500, 20, 0.9), np.arange(500) % 2).nnz == 9_000
    monkeypatch.setattr(_rows, "_LARGE", 10_000)
    assert df.Problem(random_csr(500, 20, 0.9), np.arange(500) % 2).is_dense


@pytest.mark.parametrize("values", [np.float32, np.float64])
def test_few_zeros_make_no_difference(values: Any) -> None:
    """The same optimum as of the dense matrix, to the last bit."""
    matrix = random_csr(500, 20, 0.6).astype(values)
    y = np.arange(500) % 2
    filled, given = (df.solve(df.Problem(kind, y, lam=1e-3), tol=1e-9) for kind in (matrix, matrix.toarray()))
    assert np.array_equal(filled.w, given.w)
    assert filled.certificate == given.certificate


@pytest.mark.parametrize("form", FORMS)
def test_read_only_memory_maps(form: str, tmp_path: Path) -> None:
    matrix = formed(X, form)
    parts = [matrix] if isinstance(matrix, np.ndarray) else [matrix.data, matrix.indices, matrix.indptr]
    maps = []
    for k, part in enumerate(parts):
        np.save(tmp_path / f"{k}.npy", part)
        maps.append(np.load(tmp_path / f"{k}.npy", mmap_mode="r"))
    mapped = maps[0]
    if len(maps) == 3:
        mapped = scipy.sparse.csr_matrix(matrix.shape, dtype=matrix.dtype)
        mapped.data, mapped.indices, mapped.indptr = maps
    problem = df.Problem(mapped, Y, lam=0.1)
    assert np.shares_memory(problem.rows[0], maps[0])
    result = df.solve(problem, "prox-sdca", random_state=0)
    assert np.array_equal(result.w, df.solve(df.Problem(matrix, Y, lam=0.1), "prox-sdca", random_state=0).w)


def test_read_only_targets_and_weights() -> None:
    y, weights = RNG.normal(size=20), RNG.random(20)
    y.flags.writeable = weights.flags.writeable = False
    problem = df.Problem(X, y, "squared", sample_weight=weights)
    assert np.shares_memory(problem.y, y)
    assert np.shares_memory(problem.sample_weight, weights)
    df.solve(problem, "prox-sdca", random_state=0)


def test_other_forms_are_converted() -> None:
    right = df.Problem(X, Y).margins(np.ones(3))
    for matrix in (
        np.asfortranarray(X),
        X.tolist(),
        pandas.DataFrame(X),
        np.repeat(X, 2, axis=0)[::2],
        scipy.sparse.csc_matrix(X),
        scipy.sparse.coo_array(X),
        X.astype(np.longdouble),
    ):
        assert np.allclose(df.Problem(matrix, Y).margins(np.ones(3)), right, rtol=1e-14)
    whole = np.arange(60).reshape(20, 3)
    assert np.array_equal(df.Problem(whole, Y).margins(np.ones(3)), whole.sum(axis=1))
    assert np.array_equal(df.Problem(whole > 7, Y).margins(np.ones(3)), (whole > 7).sum(axis=1))
    assert np.allclose(df.Problem(X.astype(np.float16), Y).margins(np.ones(3)), right, atol=1e-2)


def test_duplicate_entries_are_summed_in_a_copy() -> None:
    """‖x_i‖² of a row (1, 2) at the same place is 9, not 5."""
    matrix = scipy.sparse.csr_matrix(
        (np.array([1.0, 2.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    problem = df.Problem(matrix, [1.0, 2.0], "squared")
    assert np.array_equal(problem.row_norms_squared, [9.0, 1.0])
    assert matrix.nnz == 3


# --- targets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (Y, [-1.0, 1.0]),
        (Y > 0, [False, True]),
        ((Y > 0).astype(np.int8) + 3, [3, 4]),
        (np.where(Y > 0, "spam", "ham"), ["ham", "spam"]),
        (np.where(Y > 0, "spam", "ham").astype(object), ["ham", "spam"]),
        (pandas.Series(np.where(Y > 0, "spam", "ham"), dtype="category"), ["ham", "spam"]),
        (pandas.Series(Y > 0, dtype="boolean"), [False, True]),
        (np.where(Y > 0, "spam", "ham").tolist(), ["ham", "spam"]),
        (np.where(Y > 0, np.datetime64("2021-01-01"), np.datetime64("2020-01-01")), None),
    ],
)
def test_labels_of_any_type(labels: Any, classes: list[Any] | None) -> None:
    problem = df.Problem(X, labels)
    assert np.array_equal(problem.y, Y)
    assert problem.classes is not None
    if classes is not None:
        assert problem.classes.tolist() == classes


def test_regression_targets() -> None:
    for y in (np.arange(20), np.arange(20.0).tolist(), pandas.Series(np.arange(20), index=np.arange(20) + 5)):
        problem = df.Problem(X, y, "squared")
        assert np.array_equal(problem.y, np.arange(20.0))
        assert problem.classes is None


# --- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_formulas(loss: str, form: str) -> None:
    """P, D, w(α), κ and ∇P against arithmetic of 60 digits."""
    problem = make_problem(loss, n=9, d=3, weights="random", form=form, fit_intercept=True)
    reference, rng = Reference(problem), np.random.default_rng(1)
    w, b = rng.normal(size=3), 0.3
    alpha = 0.5 * problem.sample_weight * (problem.y if problem.classes is not None else rng.uniform(-1, 1, size=9))
    alpha -= alpha.sum() / problem.sample_weight.sum() * problem.sample_weight
    if problem.classes is not None:
        alpha = np.where(alpha * problem.y > 0, alpha, 0.0)
    assert problem.primal(w, b) == pytest.approx(float(reference.primal(w, b)), rel=1e-13)
    assert np.allclose(problem.weights_of(alpha), [float(v) for v in reference.weights_of(alpha)], rtol=1e-12)
    without = make_problem(loss, n=9, d=3, weights="random", form=form)
    assert without.dual(alpha) == pytest.approx(float(Reference(without).dual(alpha)), rel=1e-12)
    assert problem.residuals(w, alpha, b) == pytest.approx(problem.residuals(w, 0 * alpha, b) + alpha, rel=1e-14)
    if loss not in ("hinge", "epsilon_insensitive"):
        h = 1e-6 * np.eye(3)
        numeric = [(problem.primal(w + step, b) - problem.primal(w - step, b)) / 2e-6 for step in h]
        assert np.allclose(problem.gradient(w, b), numeric, rtol=1e-4, atol=1e-6)


def test_the_dual_asks_for_a_balanced_alpha() -> None:
    problem = make_problem("squared", fit_intercept=True)
    alpha = np.random.default_rng(0).normal(size=problem.n)
    assert problem.dual(alpha) == -math.inf
    assert math.isfinite(problem.dual(alpha - alpha.mean()))
    assert make_problem("logistic").dual(np.full(30, 2.0)) == -math.inf


@pytest.mark.parametrize("loss", LOSSES)
def test_best_intercept(loss: str) -> None:
    problem = make_problem(loss, weights="random", fit_intercept=True)
    z = problem.margins(np.random.default_rng(3).normal(size=problem.d))
    for start in (0.0, 50.0, -1e4):
        b = problem.best_intercept(z, start)
        here = sum(s * problem.loss(m + b, y) for s, m, y in zip(problem.sample_weight, z, problem.y, strict=True))
        for other in (b - 1e-3, b + 1e-3):
            there = sum(
                s * problem.loss(m + other, y) for s, m, y in zip(problem.sample_weight, z, problem.y, strict=True)
            )
            assert here <= there + 1e-12 * abs(there)


def test_at_zero_uses_the_best_intercept() -> None:
    y = np.arange(20.0)
    assert df.Problem(X, y, "squared").at_zero == pytest.approx(0.5 * np.mean(y**2))
    assert df.Problem(X, y, "squared", fit_intercept=True).at_zero == pytest.approx(0.5 * np.var(y))


def test_weak_duality_everywhere() -> None:
    rng = np.random.default_rng(2)
    for loss in LOSSES:
        problem = make_problem(loss, weights="zeros")
        alpha = 0.9 * problem.sample_weight * (problem.y if problem.classes is not None else np.sign(problem.y))
        for _ in range(5):
            assert problem.dual(alpha) <= problem.primal(rng.normal(size=problem.d))


def test_with_lam_shares_the_data() -> None:
    problem = make_problem("logistic", fit_intercept=True)
    before = problem.at_zero
    other = problem.with_lam(0.5)
    assert other.lam == 0.5
    assert problem.lam != 0.5
    assert other.X is problem.X
    assert other.at_zero == before


def test_repr_and_pickle() -> None:
    problem = make_problem("huber", form="csr64", fit_intercept=True)
    assert repr(problem) == "Problem(30×4 CSR, Huber(1), lam=0.02, fit_intercept=True)"
    copy = pickle.loads(pickle.dumps(problem))
    assert np.array_equal(dense(copy), dense(problem))
    assert (
        df.solve(copy, "prox-sdca", random_state=0).certificate
        == df.solve(problem, "prox-sdca", random_state=0).certificate
    )


def test_constants() -> None:
    problem = make_problem("smoothed_hinge", form="csr64", weights="random", empty_row=True)
    assert np.allclose(problem.row_norms_squared, (dense(problem) ** 2).sum(axis=1), rtol=1e-15)
    assert np.array_equal(problem.smoothness, problem.sample_weight)
    assert problem.nnz == problem.X.nnz
    assert problem.nnz_per_row_max == (dense(problem) != 0).sum(axis=1).max()


@pytest.mark.parametrize("weights", ["none", "random", "zeros"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber"])
def test_at_zero_is_the_objective_there(loss: str, weights: str) -> None:
    problem = make_problem(loss, weights=weights)
    assert problem.at_zero == pytest.approx(problem.primal(np.zeros(problem.d)), rel=1e-12)


# --- entries that are all 1 -------------------------------------------------------------------------------------------


def _one_hot(n: int = 300, d: int = 12) -> scipy.sparse.csr_matrix:
    X = scipy.sparse.random(n, d, density=0.3, format="csr", random_state=0)
    X.data[:] = 1.0
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_values_that_are_all_one_are_not_read(dtype: type, index: type) -> None:
    X = _one_hot().astype(dtype)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    y = np.where(np.arange(300) % 3 > 0, 1.0, -1.0)
    problem = df.Problem(X, y, lam=0.01)
    dense = df.Problem(X.toarray(), y, lam=0.01)
    assert problem.kind is _rows.Kind.ONES
    assert problem.nnz == X.nnz
    assert problem.nnz_per_row_max == int(np.diff(X.indptr).max())
    np.testing.assert_allclose(problem.row_norms_squared, dense.row_norms_squared, rtol=1e-6)
    w, alpha = np.random.default_rng(0).normal(size=(2, 300))
    np.testing.assert_allclose(problem.margins(w[:12]), dense.margins(w[:12]), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(problem.weights_of(alpha), dense.weights_of(alpha), rtol=1e-12)
    part = problem.subset(np.arange(0, 300, 7))
    assert part.kind is _rows.Kind.ONES
    np.testing.assert_allclose(part.margins(w[:12]), problem.margins(w[:12])[::7], rtol=1e-12, atol=1e-12)


def test_one_other_value_is_read() -> None:
    for position in (0, -1):
        for value in (2.0, -1.0, 1.0 + 2e-16, 0.0):
            X = _one_hot()
            X.data[position] = value
            assert df.Problem(X, np.arange(300.0), loss="squared", lam=1.0).kind is _rows.Kind.VALUES


@pytest.mark.parametrize("solver", ["auto", "adfsdca", "adfsdca+", "dfsdca", "importance", "prox-sdca"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_solvers_on_values_that_are_all_one(solver: str, loss: str) -> None:
    X = _one_hot()
    y = np.where(np.arange(300) % 3 > 0, 1.0, -1.0)
    ones, dense = (df.Problem(A, y, loss=loss, lam=0.05, fit_intercept=True) for A in (X, X.toarray()))
    found = df.solve(ones, solver, tol=1e-9, max_epochs=20_000, random_state=0)
    assert found.status is df.Status.CONVERGED
    best = df.solve(dense, "prox-sdca", tol=1e-11, max_epochs=20_000, random_state=1)
    assert 0.0 <= dense.primal(found.w, found.intercept) - best.certificate.dual <= 2e-9 * dense.at_zero


@pytest.mark.parametrize("weights", ["none", "random", "zeros", "wide"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_intercept_at_zero_is_the_best_one(loss: str, weights: str) -> None:
    problem = make_problem(loss, n=101, weights=weights, fit_intercept=True)
    b, nothing = problem.intercept_at_zero, np.zeros(problem.d)
    here = problem.primal(nothing, b)
    assert problem.at_zero == pytest.approx(here, rel=1e-12)
    for other in (b - 0.1, b + 0.1, b - 1e-4, b + 1e-4, problem.best_intercept(np.zeros(problem.n))):
        assert here <= problem.primal(nothing, other) * (1 + 1e-12)


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("values", [np.float32, np.float64])
def test_products_with_rows_of_every_length(values: Any, ones: bool) -> None:
    """Short sparse rows are gone through one by one, four at a time; longer ones are gathered."""
    rng = np.random.default_rng(0)
    lengths = rng.permutation(100)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    columns = np.concatenate([np.sort(rng.choice(300, size=length, replace=False)) for length in lengths])
    entries = np.ones(columns.size) if ones else rng.normal(size=columns.size)
    matrix = scipy.sparse.csr_matrix((entries.astype(values), columns, starts), shape=(100, 300))
    problem = df.Problem(matrix, rng.normal(size=100), "squared")
    assert problem.kind is (_rows.Kind.ONES if ones else _rows.Kind.VALUES)
    w, z = rng.normal(size=300), np.empty(100)
    _rows.margins_into(problem.rows, w, z)
    assert z == pytest.approx(matrix.astype(np.float64) @ w, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(
    "labels",
    [
        [3, 1, 3, 3],
        [-1.0, 1.0, 1.0],
        [2.5, -7.0, 2.5, 0.0],
        [True, False, True],
        [5, 5],
        np.array([200, 7, 7], dtype=np.uint8),
        ["b", "a", "c", "a"],
        np.array(["no", "yes", "no"], dtype=object),
        [],
    ],
)
def test_classes_and_their_numbers(labels: Any) -> None:
    labels = np.asarray(labels)
    classes, numbers = class_numbers(labels)
    expected = np.unique(labels, return_inverse=True)
    assert np.array_equal(classes, expected[0])
    assert classes.dtype == expected[0].dtype
    assert np.array_equal(numbers, expected[1])


def test_weights_of_one_are_no_weights() -> None:
    X, y = np.arange(6.0).reshape(3, 2), [1.0, 2.0, 4.0]
    for weights, unit in ((None, True), (np.ones(3), True), ([1, 1, 1], True), ([1.0, 1.0, 2.0], False)):
        problem = df.Problem(X, y, loss="squared", lam=1.0, sample_weight=weights)
        assert problem.unit_weights is unit
        assert problem.with_targets(y, [1.0, 0.5, 1.0]).unit_weights is False
