"""The eight losses: the battery, their definitions, and their closed forms against arithmetic of 60 digits."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from problems import CORNERED, LOSSES, SMOOTH
from reference import conjugate, loss_terms, mp

import dualfree as df
from dualfree._jit import kernel
from dualfree.certificate import _EVALUATION
from dualfree.losses import (
    EpsilonInsensitive,
    Huber,
    Loss,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
    get_loss,
    logistic,
)
from dualfree.testing import _LossTable, check_loss

EPS = 2.0**-52
INSTANCES = [get_loss(name) for name in LOSSES] + [
    SmoothedHinge(1e-3),
    SmoothedHinge(50.0),
    Huber(0.01),
    Huber(1e3),
    SquaredEpsilonInsensitive(0.0),
    SquaredEpsilonInsensitive(2.0),
    EpsilonInsensitive(1.5),
]


@pytest.mark.parametrize("loss", INSTANCES, ids=repr)
def test_battery(loss: Loss) -> None:
    check_loss(loss)


@pytest.mark.parametrize(
    ("name", "z", "y", "value"),
    [
        ("squared", 3.0, 1.0, 2.0),
        ("logistic", 0.0, -1.0, math.log(2.0)),
        ("logistic", -1e4, 1.0, 1e4),
        ("squared_hinge", -1.0, 1.0, 2.0),
        ("squared_hinge", 1.5, 1.0, 0.0),
        ("smoothed_hinge", 1.0, 1.0, 0.0),
        ("smoothed_hinge", 0.5, 1.0, 0.125),
        ("smoothed_hinge", -2.0, 1.0, 2.5),
        ("hinge", -2.0, 1.0, 3.0),
        ("huber", 0.5, 0.0, 0.125),
        ("huber", -3.0, 0.0, 2.5),
        ("squared_epsilon_insensitive", 1.1, 0.0, 0.5),
        ("squared_epsilon_insensitive", 0.05, 0.0, 0.0),
        ("epsilon_insensitive", -2.0, 1.0, 3.0),
    ],
)
def test_definitions(name: str, z: float, y: float, value: float) -> None:
    assert get_loss(name)(z, y) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "smoothness"),
    [
        ("squared", 1.0),
        ("logistic", 0.25),
        ("squared_hinge", 1.0),
        ("smoothed_hinge", 1.0),
        ("huber", 1.0),
        ("squared_epsilon_insensitive", 1.0),
        ("hinge", math.inf),
        ("epsilon_insensitive", math.inf),
    ],
)
def test_smoothness_constants(name: str, smoothness: float) -> None:
    assert get_loss(name).smoothness == smoothness
    assert SmoothedHinge(0.25).smoothness == 4.0


def _points(loss: Loss, count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triples (z, y, a) with a in the dual domain: anywhere, near −φ'(z) to all digits, at the ends; z near every kink."""
    rng = np.random.default_rng(11)
    y = rng.choice([-1.0, 1.0], size=count)
    if loss.task == "regression":
        y = y * 10.0 ** rng.uniform(-6, 6, size=count)
    size = 10.0 ** rng.uniform(-6, 4, size=count)
    z = rng.choice([-1.0, 1.0], size=count) * size
    kinks = y if loss.task == "regression" else 1.0 / y
    parameter = loss.params[0] if loss.params else 0.0
    beside = kinks + rng.choice([-1.0, 0.0, 1.0], size=count) * parameter
    near = rng.random(count) < 0.4
    z[near] = (beside * (1 + rng.choice([0.0, 1e-15, 1e-9, -1e-12], size=count)))[near]
    table = _LossTable(loss)
    a = np.empty(count)
    for i in range(count):
        low, high = table._bounds(y[i])
        slope = -float(table("derivative", z[i], y[i]))
        choices = [slope, slope * (1 + 1e-15), slope * (1 + 1e-8), slope * 0.5, low, high, rng.random() * y[i]]
        a[i] = min(high, max(low, rng.choice([c for c in choices if math.isfinite(c)])))
    return z, y, a


@pytest.mark.parametrize("loss", INSTANCES, ids=repr)
def test_closed_forms_are_as_accurate_as_the_certificate_says(loss: Loss) -> None:
    """What certificate.py allows for: a relative error and a shift of z in proportion to 1 + |z| + |y| + |a|."""
    table, parameter = _LossTable(loss), mp.mpf(loss.params[0]) if loss.params else mp.mpf(0)
    unit = 1.0 if loss.task == "classification" else 0.0
    for z, y, a in zip(*_points(loss), strict=True):
        value, slope, _ = loss_terms(loss.name, parameter, mp.mpf(z), mp.mpf(y))
        right = value + conjugate(loss.name, parameter, mp.mpf(a), mp.mpf(y)) + mp.mpf(a) * mp.mpf(z)
        found = float(table("fenchel_young", z, y, a))
        reach = _EVALUATION * (unit + abs(z) + abs(y))
        shifted = reach if loss.name in CORNERED else abs(slope) * reach + loss.smoothness * reach**2
        assert abs(table("value", z, y) - value) <= 8 * EPS * abs(value) + shifted
        if loss.name in CORNERED:
            allowed = _EVALUATION * right + (1 + abs(a)) * reach
        else:
            slope_error = 8 * EPS * abs(slope) + loss.smoothness * (_EVALUATION * abs(z) + 8 * EPS * abs(y))
            assert abs(table("derivative", z, y) - slope) <= slope_error
            reach += _EVALUATION * abs(a)
            allowed = _EVALUATION * right + abs(slope + a) * reach + 2 * loss.smoothness * reach**2
        assert abs(found - right) <= allowed, (z, y, a, found, mp.nstr(right, 20))


def test_logistic_step_for_any_ratio() -> None:
    """b = σ(−(m + q (b − b₀))) for q up to 1e12 and margins up to ±1e4: every digit of b."""
    rng = np.random.default_rng(5)
    table = _LossTable(get_loss("logistic"))
    for _ in range(150):
        q, y = 10.0 ** rng.uniform(-6, 12), rng.choice([-1.0, 1.0])
        m = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-3, 4)
        b = rng.choice([0.0, 1.0, rng.random(), 10.0 ** rng.uniform(-20, 0), 1 - 10.0 ** rng.uniform(-16, 0)])
        low, high = mp.mpf(m) - q * mp.mpf(b) - 1, mp.mpf(m) - q * mp.mpf(b) + q + 1
        for _ in range(150):
            middle = (low + high) / 2
            if middle - q / (1 + mp.exp(middle)) > mp.mpf(m) - q * mp.mpf(b):
                high = middle
            else:
                low = middle
        right = 1 / (1 + mp.exp(low))
        found = float(table("dual_step", m * y, y, b * y, q)) * y
        assert abs(found - right) <= 1e-15, (q, m, b)


def test_logistic_slopes_in_bulk() -> None:
    """The vectorised derivative that solvers use for all rows agrees with the exact one, tails included."""
    z = np.concatenate([np.linspace(-40, 40, 801), [-1e4, -700.0, 700.0]])
    problem = df.Problem(z[:, None], np.where(np.arange(z.size) % 2, 1.0, -1.0), "logistic", 1.0)
    found = problem.residuals(np.ones(1), np.zeros(z.size))
    for margin, y, slope in zip(z, problem.y, found, strict=True):
        right = loss_terms("logistic", None, mp.mpf(margin), mp.mpf(y))[1]
        assert abs(slope - right) <= 8 * EPS * abs(right) + 1e-300


# --- the objects ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", INSTANCES, ids=repr)
def test_equality_hash_and_pickle(loss: Loss) -> None:
    copy = pickle.loads(pickle.dumps(loss))
    assert copy == loss
    assert hash(copy) == hash(loss)
    assert repr(copy) == repr(loss)
    assert copy.smoothness == loss.smoothness


def test_parameters_tell_losses_apart() -> None:
    assert Huber(1.0) == get_loss("huber")
    assert Huber(2.0) != Huber(1.0)
    assert get_loss("hinge") != get_loss("smoothed_hinge")
    assert len({get_loss(name) for name in SMOOTH}) == len(SMOOTH)


def test_smoothed_hinge_tends_to_the_hinge() -> None:
    smoothed, hinge = SmoothedHinge(1e-9), get_loss("hinge")
    for z in (-3.0, 0.5, 1.5):
        assert smoothed(z, 1.0) == pytest.approx(hinge(z, 1.0), abs=1e-9)


@kernel
def _logistic_terms(z: Any, shift: float, y: Any, a: Any, out: Any, scratch: Any) -> None:
    logistic.terms_into(z, shift, y, a, out[0], out[1], out[2], scratch)
    logistic.values_into(z, shift, y, out[3])


@pytest.mark.parametrize("all_near", [True, False])
def test_logistic_terms_of_many_rows_are_those_of_each(all_near: bool) -> None:
    """Near the optimum and far from it, in the tails, at the ends of the domain and outside."""
    margins = np.concatenate([np.linspace(-3.0, 3.0, 41), [-0.881373, 0.881374, -1e-9, 30.0, -40.0]])
    if not all_near:
        margins = np.concatenate([margins, [300.0, -700.0, 720.0, -1e4, 1e6]])
    z, y = (part.ravel() for part in np.meshgrid(margins, [1.0, -1.0]))
    probability = 1.0 / (1.0 + np.exp(np.clip(y * z, -700, 700)))
    for factor in (1.0, 1.0 - 1e-7, 0.8) if all_near else (0.0, 1e-3, 0.5, 0.71, 1.5, 7.0, -0.1):
        a = y * probability * factor
        if not all_near:
            a[::7], a[1::7] = y[::7], 0.0
        z, shift = z.astype(float), 0.25
        out, scratch = np.full((4, z.size), np.nan), np.full((6, z.size), np.nan)
        _logistic_terms(z - shift, shift, y, a, out, scratch)
        expected = np.array([logistic.terms(*row) for row in zip(z - shift + shift, y, a, strict=True)]).T
        np.testing.assert_allclose(out[0], expected[0], rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(out[3], expected[0], rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(out[1], expected[1], rtol=1e-14, atol=1e-300)
        finite = np.isfinite(expected[2])
        np.testing.assert_array_equal(np.isfinite(out[2]), finite)
        np.testing.assert_allclose(out[2][finite], expected[2][finite], rtol=1e-9, atol=1e-16)
        exact = [float(mp.log1p(mp.exp(-mp.mpf(m)))) for m in y * (z - shift + shift)]
        np.testing.assert_allclose(out[0], exact, rtol=4e-15, atol=1e-300)
