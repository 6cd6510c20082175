"""Ctrl-C at awkward moments: the first keeps the best point, the second ends the run at once."""

import numpy as np
import pytest

import dualfree as df
from dualfree.solvers import driver


def _problem(fit_intercept=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    return df.Problem(X, X[:, 0] > 0, loss="logistic", lam=1e-3, fit_intercept=fit_intercept)


def _interrupting(function, presses):
    """Return `function` with a Ctrl-C before each of its first calls."""
    left = [presses]

    def wrapped(*args, **kwargs):
        if left[0]:
            left[0] -= 1
            raise KeyboardInterrupt
        return function(*args, **kwargs)

    return wrapped


def test_ctrl_c_while_the_result_is_put_together_keeps_the_point(monkeypatch):
    monkeypatch.setattr(driver, "with_intercept_bound", _interrupting(driver.with_intercept_bound, presses=1))
    result = df.solve(_problem(fit_intercept=True), tol=1e-6, random_state=0)
    assert result.status is df.Status.CONVERGED
    assert result.certificate.relative_gap <= 1e-6


def test_second_ctrl_c_ends_the_run(monkeypatch):
    monkeypatch.setattr(driver, "with_intercept_bound", _interrupting(driver.with_intercept_bound, presses=2))
    with pytest.raises(KeyboardInterrupt):
        df.solve(_problem(fit_intercept=True), tol=1e-6, random_state=0)


def test_point_kept_after_ctrl_c_has_its_own_certificate():
    def callback(state):
        if state.epoch >= 2:
            raise KeyboardInterrupt

    problem = _problem()
    result = df.solve(problem, solver="dfsdca", tol=1e-12, callback=callback, random_state=0)
    assert result.status is df.Status.INTERRUPTED
    again = df.certify(problem, result.w, alpha=result.alpha)
    assert again.primal == pytest.approx(result.certificate.primal, rel=1e-12)
    assert again.gap <= result.certificate.gap * (1 + 1e-9)
