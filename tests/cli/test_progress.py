"""The arithmetic behind the live line."""

import math

import pytest

from dualfree.cli.options import duration, name_and_value
from dualfree.cli.progress import seconds_left, share_done


@pytest.mark.parametrize(
    ("first", "gap", "target", "share"),
    [
        (1.0, 1.0, 1e-6, 0.0),
        (1.0, 1e-3, 1e-6, 0.5),
        (1.0, 1e-9, 1e-6, 1.0),
        (1.0, 2.0, 1e-6, 0.0),
        (math.inf, 1.0, 1e-6, 0.0),
    ],
)
def test_share_done_is_on_a_log_scale(first, gap, target, share):
    assert share_done(first, gap, target) == pytest.approx(share)


def test_time_left_is_a_straight_line_on_a_log_scale():
    gaps = [10.0**-k for k in range(4)]
    assert seconds_left(gaps, [0.0, 1.0, 2.0, 3.0], 1e-6) == pytest.approx(3.0)


@pytest.mark.parametrize("gaps", [[1.0], [1.0, 1.0], [1.0, 2.0], [1.0, 0.0], [math.inf, 1.0]])
def test_time_left_is_unknown(gaps):
    assert seconds_left(gaps, [0.0, 1.0][: len(gaps)], 1e-6) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60", 60), ("60s", 60), ("1.5m", 90), ("1h30m", 5400), ("500ms", 0.5), ("2 min", 120), (".5h", 1800)],
)
def test_durations(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(("text", "value"), [("shrink=10", 10), ("gamma=0.5", 0.5), ("step=safe", "safe")])
def test_solver_options(text, value):
    assert name_and_value(text) == (text.split("=")[0], value)
