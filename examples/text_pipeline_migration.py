"""From scikit-learn's LogisticRegression to dualfree's in a text pipeline: only the import changes.

Run it: ``python examples/text_pipeline_migration.py``. The corpus is made here, two topics that share most of their words.
"""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression as ScikitLogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from dualfree import LogisticRegression

SHARED = "the a of and in to is for with on as by at from this that which one more results work new time".split()
TOPICS = {
    "optimisation": "gradient descent convex dual primal gap step epoch residual norm solver bound loss".split(),
    "gardening": "soil seed water plant leaf root flower bed spring frost garden shade prune compost".split(),
}


def corpus(size=600, seed=0):
    """Return texts and their topics."""
    rng = np.random.default_rng(seed)
    topics = rng.choice(list(TOPICS), size)
    texts = [
        " ".join(rng.choice(SHARED + TOPICS[topic] * (1 + rng.integers(2)), rng.integers(8, 40))) for topic in topics
    ]
    return texts, topics


def main():
    """Fit both, print how far apart they are, and return the largest difference of a coefficient."""
    texts, topics = corpus()
    train, test, y_train, y_test = train_test_split(texts, topics, random_state=0)
    largest = 0.0
    ours = make_pipeline(TfidfVectorizer(), LogisticRegression(C=1.0, tol=1e-12, random_state=0)).fit(train, y_train)
    for solver in ("lbfgs", "saga", "newton-cholesky"):
        settings = {"C": 1.0, "solver": solver, "tol": 1e-8, "max_iter": 10_000, "random_state": 0}
        theirs = make_pipeline(TfidfVectorizer(), ScikitLogisticRegression(**settings)).fit(train, y_train)
        difference = np.abs(ours[-1].coef_ - theirs[-1].coef_).max()
        largest = max(largest, float(difference))
        print(
            f"sklearn {solver:<16} accuracy {theirs.score(test, y_test):.3f}   largest difference {difference:.1e}   "
            "how far from the optimum: not said"
        )
    predicted, certain = ours[-1].certified_predict(ours[:-1].transform(test))
    print(f"dualfree                 accuracy {np.mean(predicted == y_test):.3f}   {ours[-1].certificate_}")
    print(f"{np.mean(certain):.0%} of the predictions cannot be changed by any better optimisation.")
    return largest


if __name__ == "__main__":
    main()
