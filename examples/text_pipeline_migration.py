"""Move a text pipeline from scikit-learn to dualfree by changing one import.

    -from sklearn.linear_model import LogisticRegression
    +from dualfree import LogisticRegression

Everything else stays as it is, `solver=` included: the optimum does not depend on the solver, so scikit-learn's names stand
for dualfree's "auto". What one gains is visible below: a certificate of how far the fit is from the optimum, and the share of
predictions that no better optimisation can change.

The texts are the descriptions of the data sets that come with scikit-learn, cut into pieces of a dozen words. The task:
which data set does a piece describe?
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_linnerud, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from dualfree import LogisticRegression

PIECE = 12


def texts():
    """Return pieces of text and the data set that each one is about."""
    pieces, labels = [], []
    for load in (load_breast_cancer, load_diabetes, load_digits, load_iris, load_linnerud, load_wine):
        words = load().DESCR.split()
        for first in range(0, len(words) - PIECE, PIECE):
            pieces.append(" ".join(words[first : first + PIECE]))
            labels.append(load.__name__.removeprefix("load_"))
    return pieces, np.array(labels)


def pipeline(LogisticRegression, solver):
    """The pipeline as it was written for scikit-learn."""
    return make_pipeline(
        TfidfVectorizer(sublinear_tf=True),
        LogisticRegression(solver=solver, C=10.0, max_iter=2000, tol=1e-6, random_state=0),
    )


def compare(solver, pieces, labels):
    """Fit both pipelines; return how far apart they are and what the certificate says."""
    train_texts, test_texts, train_labels, test_labels = train_test_split(pieces, labels, test_size=0.3, random_state=0)
    before = pipeline(SklearnLogisticRegression, solver).fit(train_texts, train_labels)
    after = pipeline(LogisticRegression, solver).fit(train_texts, train_labels)
    predictions, certain = after[-1].certified_predict(after[:-1].transform(test_texts))
    return {
        "solver": solver,
        "classes": len(after.classes_),
        "accuracy before": before.score(test_texts, test_labels),
        "accuracy after": after.score(test_texts, test_labels),
        "same predictions": float(np.mean(predictions == before.predict(test_texts))),
        "probabilities differ by": float(
            np.abs(after.predict_proba(test_texts) - before.predict_proba(test_texts)).max()
        ),
        "relative gap": after[-1].certificate_.relative_gap,
        "certain": float(certain.mean()),
    }


def main():
    """Print a line for each of scikit-learn's solvers, and return what they say."""
    pieces, labels = texts()
    about_cancer = np.where(labels == "breast_cancer", "cancer", "other")  # scikit-learn's liblinear takes two classes
    rows = []
    for solver in ("lbfgs", "saga", "liblinear"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's solvers, where they stop early
            row = compare(solver, pieces, about_cancer if solver == "liblinear" else labels)
        rows.append(row)
    names = list(rows[0])
    print("  ".join(name.rjust(9) for name in names))
    for row in rows:
        print("  ".join((row[n] if n == "solver" else f"{row[n]:.3g}").rjust(max(9, len(n))) for n in names))
    print("\nliblinear's probabilities differ a little more: it penalises the intercept, dualfree never does.")
    return rows


if __name__ == "__main__":
    main()
