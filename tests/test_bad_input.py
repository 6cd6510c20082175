"""Bad input: an error of the right type, in a sentence that names the argument and the value."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse
from problems import make_problem

import dualfree as df
from dualfree.losses import EpsilonInsensitive, Huber, SmoothedHinge, Squared

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3))
LABELS = np.array([1, 1, 1, -1, -1, -1])
NUMBERS = np.arange(6.0)
ONES = np.ones(6)


def changed(array: np.ndarray, index: Any, value: Any) -> np.ndarray:
    copy = np.array(array, dtype=np.float64)
    copy[index] = value
    return copy


def sparse_with(value: float) -> Any:
    matrix = scipy.sparse.csr_matrix(X)
    matrix.data[4] = value  # row 1, column 1
    return matrix


BAD_PROBLEMS: list[tuple[dict[str, Any], type[Exception], list[str]]] = [
    # X
    ({"X": changed(X, (4, 2), np.nan)}, ValueError, ["X", "NaN", "row 4, column 2"]),
    ({"X": changed(X, (4, 2), np.inf)}, ValueError, ["X", "infinity", "row 4, column 2"]),
    ({"X": changed(X, (4, 2), -np.inf).astype(np.float32)}, ValueError, ["X", "infinity", "row 4, column 2"]),
    ({"X": sparse_with(np.nan)}, ValueError, ["X", "NaN", "row 1, column 1"]),
    ({"X": sparse_with(np.inf)}, ValueError, ["X", "infinity", "row 1, column 1"]),
    ({"X": X[0]}, ValueError, ["X", "two dimensions", r"\(3,\)"]),
    ({"X": X[None]}, ValueError, ["X", "two dimensions", r"\(1, 6, 3\)"]),
    ({"X": np.empty((0, 3))}, ValueError, ["X", "at least one row", r"\(0, 3\)"]),
    ({"X": np.empty((6, 0))}, ValueError, ["X", "one column", r"\(6, 0\)"]),
    ({"X": scipy.sparse.csr_matrix((6, 0))}, ValueError, ["X", "one column", r"\(6, 0\)"]),
    ({"X": X.astype(complex)}, TypeError, ["X", "real", "complex128"]),
    ({"X": scipy.sparse.csr_matrix(X.astype(complex))}, TypeError, ["X", "real", "complex128"]),
    ({"X": np.full((6, 3), "a")}, TypeError, ["X", "real"]),
    ({"X": np.full((6, 3), np.datetime64("2020-01-01"))}, TypeError, ["X", "real", "datetime"]),
    ({"X": pandas.DataFrame({"a": list("uvwxyz")})}, TypeError, ["X", "real"]),
    ({"X": np.ma.masked_greater(X, 0.5)}, ValueError, ["X", "masked"]),
    ({"X": changed(X, (2, 0), 1e200)}, ValueError, ["X", "row 2", "overflow"]),
    ({"X": None}, ValueError, ["X", "two dimensions"]),
    # y
    ({"y": changed(NUMBERS, 2, np.nan), "loss": "squared"}, ValueError, ["y", "NaN", "row 2"]),
    ({"y": changed(NUMBERS, 2, np.inf), "loss": "squared"}, ValueError, ["y", "infinity", "row 2"]),
    ({"y": changed(LABELS, 2, np.nan)}, ValueError, ["y", "NaN", "row 2"]),
    ({"y": NUMBERS[:5], "loss": "squared"}, ValueError, ["y", r"\(6\)", "5"]),
    ({"y": LABELS[:5]}, ValueError, ["y", r"\(6\)", "5"]),
    ({"y": NUMBERS[:, None], "loss": "squared"}, ValueError, ["y", "one dimension", r"\(6, 1\)"]),
    ({"y": LABELS[:, None]}, ValueError, ["y", "one dimension", r"\(6, 1\)"]),
    ({"y": list("abcdef"), "loss": "squared"}, TypeError, ["y", "real"]),
    ({"y": NUMBERS * 1j, "loss": "squared"}, TypeError, ["y", "real", "complex"]),
    ({"y": [0, 1, 2, 0, 1, 2]}, ValueError, ["y", "exactly two classes", "3: 0, 1, 2"]),
    ({"y": NUMBERS}, ValueError, ["y", "exactly two classes", "6: "]),
    ({"y": np.ones(6)}, ValueError, ["y", "exactly two classes", "1: 1.0"]),
    ({"y": [1, "a", 1, 1, "a", 1.5]}, (TypeError, ValueError), ["y", "class"]),
    ({"y": [None, 1, 1, 0, 0, 1]}, TypeError, ["y", "missing", "NoneType"]),
    ({"y": pandas.Series([True, None, False, True, False, True], dtype="boolean")}, TypeError, ["y", "missing", "NA"]),
    ({"y": np.array(["a", None, "b", "a", "b", "a"], dtype=object)}, TypeError, ["y", "missing"]),
    ({"y": np.array([1.0, np.nan, 1.0, 1.0, 1.0, 1.0], dtype=object)}, ValueError, ["y", "missing"]),
    ({"y": np.ma.masked_greater(LABELS, 0)}, ValueError, ["y", "masked"]),
    ({"y": None}, (TypeError, ValueError), ["y"]),
    # weights
    ({"sample_weight": changed(ONES, 3, -0.5)}, ValueError, ["sample_weight", "-0.5", "row 3"]),
    ({"sample_weight": changed(ONES, 3, np.nan)}, ValueError, ["sample_weight", "NaN", "row 3"]),
    ({"sample_weight": changed(ONES, 3, np.inf)}, ValueError, ["sample_weight", "infinity", "row 3"]),
    ({"sample_weight": ONES[:4]}, ValueError, ["sample_weight", r"\(6\)", "4"]),
    ({"sample_weight": 1.0}, ValueError, ["sample_weight", "one dimension"]),
    ({"sample_weight": 0 * ONES}, ValueError, ["sample_weight", "positive", "all are zero"]),
    ({"sample_weight": list("abcdef")}, TypeError, ["sample_weight", "real"]),
    (
        {"sample_weight": (LABELS > 0).astype(float), "fit_intercept": True},
        ValueError,
        ["sample_weight", "only class 1", "intercept"],
    ),
    # λ
    ({"lam": 0.0}, ValueError, ["lam", "> 0", "0.0"]),
    ({"lam": -1}, ValueError, ["lam", "> 0", "-1"]),
    ({"lam": np.nan}, ValueError, ["lam", "nan"]),
    ({"lam": np.inf}, ValueError, ["lam", "finite", "inf"]),
    ({"lam": "1e-3"}, TypeError, ["lam", "number", "'1e-3'", "str"]),
    ({"lam": None}, TypeError, ["lam", "None"]),
    ({"lam": True}, TypeError, ["lam", "True"]),
    ({"lam": 1e-320}, ValueError, ["lam", "1e-320"]),
    # the rest
    ({"loss": "logistc"}, ValueError, ["loss", "'logistc'", "Did you mean 'logistic'"]),
    ({"loss": "quantile"}, ValueError, ["loss", "'quantile'", "Known: 'squared'"]),
    ({"loss": 3}, TypeError, ["loss", "3"]),
    ({"loss": Squared}, TypeError, ["loss", r"Squared\(\)"]),
    ({"fit_intercept": 1}, TypeError, ["fit_intercept", "True or False", "1"]),
    ({"fit_intercept": "yes"}, TypeError, ["fit_intercept", "'yes'"]),
]


def assert_sentence(error: BaseException, words: list[str]) -> None:
    message = str(error)
    for word in words:
        assert re.search(word, message), f"{word!r} is not in: {message}"
    assert message.rstrip().endswith((".", "?", "!")), message
    assert message.count("\n") == 0, message


@pytest.mark.parametrize(("arguments", "kind", "words"), BAD_PROBLEMS)
def test_bad_problems(arguments: dict[str, Any], kind: Any, words: list[str]) -> None:
    good = {"X": X, "y": LABELS, "loss": "logistic", "lam": 0.1}
    with pytest.raises(kind) as caught:
        df.Problem(**{**good, **arguments})
    assert_sentence(caught.value, words)


BAD_SOLVES: list[tuple[dict[str, Any], type[Exception], list[str]]] = [
    ({"solver": "prox-scda"}, ValueError, ["solver", "'prox-scda'", "Did you mean 'prox-sdca'"]),
    ({"solver": "newton"}, ValueError, ["solver", "'newton'", "Known: 'auto'"]),
    ({"solver": None}, TypeError, ["solver", "None"]),
    ({"tol": -1e-3}, ValueError, ["tol", "-0.001"]),
    ({"tol": np.nan}, ValueError, ["tol", "nan"]),
    ({"tol": "small"}, TypeError, ["tol", "'small'"]),
    ({"max_epochs": -1}, ValueError, ["max_epochs", "-1"]),
    ({"max_epochs": 1.5}, TypeError, ["max_epochs", "whole number", "1.5"]),
    ({"max_epochs": True}, TypeError, ["max_epochs", "True"]),
    ({"max_time": -2.0}, ValueError, ["max_time", "-2.0"]),
    ({"max_time": "1s"}, TypeError, ["max_time", "'1s'"]),
    ({"random_state": -1}, ValueError, ["random_state", "-1"]),
    ({"random_state": "seed"}, TypeError, ["random_state", "'seed'"]),
    ({"random_state": np.random.RandomState(0)}, TypeError, ["random_state"]),
    ({"callback": 3}, TypeError, ["callback", "3"]),
    ({"n_threads": 0}, ValueError, ["n_threads", "0"]),
    ({"n_threads": 1.5}, TypeError, ["n_threads", "1.5"]),
    ({"evaluate_every": 0}, ValueError, ["evaluate_every", "0"]),
    # options
    ({"solver": "dfsdca", "shrink": 10}, TypeError, ["'dfsdca'", "no option 'shrink'", "no options"]),
    ({"solver": "adfsdca+", "shrnk": 10}, TypeError, ["'adfsdca\\+'", "'shrnk'", "Did you mean 'shrink'"]),
    ({"solver": "adfsdca+", "shrink": 0.5}, ValueError, ["shrink", "0.5"]),
    ({"solver": "adfsdca+", "step": "sfe"}, ValueError, ["step", "'sfe'", "Did you mean 'safe'"]),
    ({"solver": "prox-sdca", "order": "cyclic"}, ValueError, ["order", "'cyclic'", "'permutation'"]),
    ({"momentum": 0.9}, TypeError, ["'auto'", "'momentum'"]),
    # warm starts
    ({"warm_start": np.zeros(5)}, ValueError, ["warm_start", "30 entries", "4 entries", "got 5"]),
    ({"warm_start": np.full(30, np.nan)}, ValueError, ["warm_start", "NaN", "row 0"]),
    ({"warm_start": {"beta": 1}}, ValueError, ["warm_start", "'alpha' or 'w'", "beta"]),
    ({"warm_start": {"intercept": 1.0}}, ValueError, ["warm_start", "'alpha' or 'w'"]),
    ({"warm_start": {"w": np.zeros(4), "intercept": "x"}}, TypeError, ["warm_start", "intercept", "'x'"]),
    ({"warm_start": {"w": np.zeros(3)}}, ValueError, ["warm_start", r"\(4\)", "3"]),
    ({"warm_start": {"alpha": np.zeros(3)}}, ValueError, ["warm_start", r"\(30\)", "3"]),
    ({"warm_start": "last"}, (TypeError, ValueError), ["warm_start"]),
]


@pytest.mark.parametrize(("arguments", "kind", "words"), BAD_SOLVES)
def test_bad_solves(arguments: dict[str, Any], kind: Any, words: list[str]) -> None:
    with pytest.raises(kind) as caught:
        df.solve(make_problem("logistic"), **arguments)
    assert_sentence(caught.value, words)


OTHERS: list[tuple[Callable[[], Any], Any, list[str]]] = [
    (lambda: df.solve((X, LABELS)), TypeError, ["problem", "dualfree.Problem", "tuple"]),
    (
        lambda: df.solve(df.Problem(np.eye(3), NUMBERS[:3], "squared"), warm_start=np.ones(3)),
        ValueError,
        ["warm_start", "both", "'alpha'"],
    ),
    # losses that a solver cannot take
    (lambda: df.solve(make_problem("hinge"), "dfsdca"), ValueError, ["'dfsdca'", "smooth", "'prox-sdca'"]),
    (lambda: df.solve(make_problem("hinge"), "adfsdca"), ValueError, ["'adfsdca'", "smooth"]),
    (lambda: df.solve(make_problem("hinge"), "importance"), ValueError, ["'importance'", "smooth"]),
    (lambda: df.solve(make_problem("hinge"), "adfsdca+", step="safe"), ValueError, ["step", "'safe'", "'exact'"]),
    # certify
    (lambda: df.certify(make_problem(), np.zeros(3)), ValueError, ["w", r"\(4\)", r"\(3,\)"]),
    (lambda: df.certify(make_problem(), np.full(4, np.nan)), ValueError, ["w", "finite"]),
    (lambda: df.certify(make_problem(), np.zeros(4), alpha=np.zeros(3)), ValueError, ["alpha", r"\(30\)"]),
    (lambda: df.certify(make_problem(), np.zeros(4), alpha=np.full(30, np.inf)), ValueError, ["alpha", "finite"]),
    (lambda: df.certify(make_problem(), np.zeros(4), intercept=1.0), ValueError, ["intercept", "1.0"]),
    (lambda: df.certify(make_problem(), np.zeros(4), intercept=np.nan), ValueError, ["intercept", "nan"]),
    # the problem's own functions
    (lambda: make_problem().primal(np.zeros(3)), ValueError, ["w", r"\(4\)", r"\(3,\)"]),
    (lambda: make_problem().weights_of(np.zeros(3)), ValueError, ["alpha", r"\(30\)", r"\(3,\)"]),
    (lambda: make_problem().with_lam(-1.0), ValueError, ["lam", "-1.0"]),
    # parameters of losses
    (lambda: SmoothedHinge(0.0), ValueError, ["gamma", "> 0", "0.0"]),
    (lambda: SmoothedHinge("wide"), TypeError, ["gamma", "'wide'"]),
    (lambda: Huber(-1.0), ValueError, ["delta", "-1.0"]),
    (lambda: EpsilonInsensitive(-0.1), ValueError, ["epsilon", "-0.1"]),
    (lambda: EpsilonInsensitive(np.inf), ValueError, ["epsilon", "inf"]),
]


@pytest.mark.parametrize(("call", "kind", "words"), OTHERS)
def test_other_bad_calls(call: Callable[[], Any], kind: Any, words: list[str]) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert_sentence(caught.value, words)


def test_score_bound_checks_its_matrix() -> None:
    certificate = df.certify(make_problem(), np.zeros(4))
    with pytest.raises(ValueError, match="NaN"):
        certificate.score_bound(np.full((2, 4), np.nan))
