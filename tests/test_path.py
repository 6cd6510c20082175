"""λ-paths: an order that is kept, a certificate per λ, and warm starts that pay."""

import numpy as np
import pytest

import dualfree as df
from dualfree.path import best_scaling


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8))
    return df.Problem(X, X[:, 0] + 0.5 * rng.normal(size=200) > 0, fit_intercept=True)


def test_results_are_those_of_single_solves_in_the_order_given(problem):
    lams = [0.01, 1.0, 0.1]
    path = df.path(problem, lams, tol=1e-12, random_state=0)
    assert path.complete
    assert path.lams.tolist() == lams
    for lam, result in zip(lams, path, strict=True):
        alone = df.solve(problem.with_lam(lam), tol=1e-12, random_state=1)
        assert result.certificate.relative_gap <= 1e-12
        far = result.certificate.distance_bound + alone.certificate.distance_bound
        assert np.linalg.norm(result.w - alone.w) <= far
        assert df.certify(problem.with_lam(lam), result.w, result.intercept).gap < 1e-6


def test_warm_starts_save_epochs(problem):
    lams = np.geomspace(1.0, 1e-3, 7)
    path = df.path(problem, lams, solver="prox-sdca", random_state=0)
    cold = [df.solve(problem.with_lam(lam), "prox-sdca", random_state=0).n_epochs for lam in lams]
    assert sum(result.n_epochs for result in path) < 0.8 * sum(cold)


def test_scaling_is_the_best_on_its_ray(problem):
    alpha = df.solve(problem.with_lam(1.0), random_state=0).alpha
    t = best_scaling(problem.with_lam(1.0), alpha, 0.1)
    after = problem.with_lam(0.1)
    others = max(after.dual(s * alpha) for s in np.linspace(0, 1, 101))
    assert after.dual(t * alpha) >= others - 1e-6


def test_an_interrupted_path_keeps_what_it_has(problem):
    def stop_in_the_second(state):
        return (state.epoch > 0 and len(seen) > 0) or seen.extend([1] if state.certificate.relative_gap < 1e-6 else [])

    seen = []
    path = df.path(problem, [0.1, 1.0, 0.01], solver="prox-sdca", random_state=0, callback=stop_in_the_second)
    assert not path.complete
    assert path.lams.tolist() == [0.1, 1.0]
    assert path[0].status is df.Status.INTERRUPTED


@pytest.mark.parametrize("lams", [[], [0.0], [-1.0], [np.nan]])
def test_bad_lams(problem, lams):
    with pytest.raises(ValueError, match="lams"):
        df.path(problem, lams)
