"""How closely the estimators agree with scikit-learn's most exact solvers, on data that scikit-learn bundles.

    python benchmarks/estimator_agreement.py [--raw]

Prints, for each data set and estimator, the largest difference of a coefficient (relative to the largest coefficient where
that exceeds 1) over dense and sparse X, with and without intercept, sample weights and class weights. Columns are scaled
unless --raw is given. LIBLINEAR penalises the intercept, so it is asked without one; the hinge and the ε-insensitive loss
with an intercept are compared with LIBSVM, which does not penalise it, but keeps its kernel in float32: agreement ends at
about 1e-6 there (and on raw data it hardly ever ends, so it is left out). LIBLINEAR's dual solver is asked for tol=1e-9;
at 1e-12 it stops working. Fits of scikit-learn that end at max_iter are counted in the last column and not compared.
"""

from __future__ import annotations

import argparse
import itertools
import warnings

import numpy as np
import scipy.sparse
from sklearn import linear_model, svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.preprocessing import scale

import dualfree as df

DATA = {
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
    "wine": load_wine,
    "diabetes": load_diabetes,
}
EXACT = {"tol": 0, "random_state": 0, "max_iter": 20000}


def weights_for(y):
    """Weights from 0 to 3, every class kept."""
    weights = np.random.default_rng(0).integers(0, 4, y.size).astype(float)
    weights[np.unique(y, return_index=True)[1]] = 1.0
    return weights


def gap_between(ours, theirs):
    """The largest difference of coefficients and (centred) intercepts."""
    coef, reference = np.atleast_2d(ours.coef_), np.atleast_2d(theirs.coef_)
    difference = np.abs(coef - reference).max() / max(1.0, np.abs(reference).max())
    if ours.fit_intercept:
        b, c = np.ravel(ours.intercept_).astype(float), np.ravel(theirs.intercept_).astype(float)
        if b.size > 1:
            b, c = b - b.mean(), c - c.mean()  # softmax: a common constant means nothing
        if isinstance(ours, (df.LogisticRegression, df.Ridge)):  # the best intercept of a hinge need not be unique
            difference = max(difference, np.abs(b - c).max() / max(1.0, np.abs(c).max()))
    return float(difference)


def balanced_weights(y, weights):
    """As a dictionary, for LIBSVM's wrapper does not count rows by their weights."""
    counts = np.bincount(y, weights=weights)
    return dict(enumerate(counts.sum() / (counts.size * counts)))


def classification_pairs(n_classes, intercept, class_weight, raw):
    """Yield (name, ours, scikit-learn's)."""
    common = {"fit_intercept": intercept, "class_weight": class_weight}
    yield (
        "LogisticRegression",
        df.LogisticRegression(**common, **EXACT),
        linear_model.LogisticRegression(solver="newton-cholesky", tol=1e-14, max_iter=10000, **common),
    )
    if not intercept:
        yield (
            "LinearSVC squared hinge",
            df.LinearSVC(**common, **EXACT),
            svm.LinearSVC(dual=False, tol=1e-14, max_iter=20000, **common),
        )
        yield (
            "LinearSVC hinge",
            df.LinearSVC(loss="hinge", **common, **EXACT),
            svm.LinearSVC(loss="hinge", tol=1e-9, max_iter=20000, random_state=0, **common),
        )
    elif n_classes == 2 and not raw:
        yield (
            "LinearSVC hinge",
            df.LinearSVC(loss="hinge", **common, **EXACT),
            svm.SVC(kernel="linear", tol=1e-11, class_weight=class_weight),
        )


def regression_pairs(intercept):
    """Yield (name, ours, scikit-learn's)."""
    yield "Ridge", df.Ridge(alpha=0.1, fit_intercept=intercept, **EXACT), "ridge"
    svr = {"epsilon": 10.0, "C": 10.0}
    if intercept:
        theirs = svm.SVR(kernel="linear", tol=1e-10, **svr)
    else:
        theirs = svm.LinearSVR(tol=1e-9, max_iter=20000, fit_intercept=False, random_state=0, **svr)
    yield "LinearSVR", df.LinearSVR(fit_intercept=intercept, **svr, **EXACT), theirs
    if not intercept:
        svr["loss"] = "squared_epsilon_insensitive"
        yield (
            "LinearSVR squared",
            df.LinearSVR(fit_intercept=False, **svr, **EXACT),
            svm.LinearSVR(dual=False, tol=1e-14, max_iter=20000, fit_intercept=False, **svr),
        )


def compare(name, load, raw):
    """Yield (estimator, largest difference, largest certified gap of ours, fits that scikit-learn did not finish)."""
    X, y = load(return_X_y=True)
    X = X if raw else scale(X)
    classification = name != "diabetes"
    worst = {}
    balanced = (None, "balanced") if classification else (None,)
    for intercept, class_weight, weighted, sparse in itertools.product(
        (False, True), balanced, (False, True), (False, True)
    ):
        weights = weights_for(y) if weighted else None
        pairs = (
            classification_pairs(np.unique(y).size, intercept, class_weight, raw)
            if classification
            else regression_pairs(intercept)
        )
        for estimator, ours, theirs in pairs:
            if theirs == "ridge":
                theirs = linear_model.Ridge(alpha=0.1, fit_intercept=intercept, solver="svd")
            ours.fit(scipy.sparse.csr_matrix(X) if sparse else X, y, sample_weight=weights)
            if isinstance(theirs, svm.SVC) and class_weight == "balanced":
                theirs.set_params(class_weight=balanced_weights(y, weights))
            theirs.fit(X, y, sample_weight=weights)
            certificates = ours.certificate_ if isinstance(ours.certificate_, list) else [ours.certificate_]
            gap = max(certificate.relative_gap for certificate in certificates)
            difference, largest_gap, unfinished = worst.get(estimator, (0.0, 0.0, 0))
            if isinstance(theirs, (svm.LinearSVC, svm.LinearSVR)) and theirs.n_iter_ >= theirs.max_iter:
                unfinished += 1
            else:
                difference = max(difference, gap_between(ours, theirs))
            worst[estimator] = difference, max(largest_gap, gap), unfinished
    for estimator, row in worst.items():
        yield estimator, *row


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raw", action="store_true", help="do not scale the columns")
    parser.add_argument("--data", choices=list(DATA), help="only this data set")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'data set':15} {'estimator':25} {'largest difference':>18} {'our certified gap':>18} {'not finished':>13}")
    for name, load in DATA.items():
        if options.data in (None, name):
            for estimator, difference, gap, unfinished in compare(name, load, options.raw):
                print(f"{name:15} {estimator:25} {difference:18.1e} {gap:18.1e} {unfinished:13d}", flush=True)


if __name__ == "__main__":
    main()
