"""The cost model finds the constants that made the measurements, and predicts with them."""

import itertools

import pytest

from benchmarks.scale_model import Cluster, Constants, Rounds, fit, growth, predict

TRUE = Constants(per_entry=4e-9, per_far_entry=9e-9, per_round=8e-3, per_partition=2e-3, per_byte=1.5e-9)


def rounds(partitions, entries, d, constants=TRUE, noise=0.0):
    blank = Rounds("made up", partitions, 2, entries, d, 0.0)
    return Rounds("made up", partitions, 2, entries, d, constants.seconds(blank) * (1.0 + noise))


GRID = list(itertools.product((2, 4, 8), (1e6, 1e8), (1e4, 2e5, 5e5, 5e6)))


def test_the_fit_recovers_constants_of_ten_orders_of_magnitude():
    found = fit([rounds(*case) for case in GRID])
    for name in ("per_entry", "per_far_entry", "per_round", "per_partition", "per_byte"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=1e-6)


def test_noise_moves_the_prediction_by_about_as_much():
    measured = [rounds(*case, noise=0.05 * (-1) ** i) for i, case in enumerate(GRID)]
    found = fit(measured)
    assert all(abs(found.residual(one)) < 0.12 for one in measured)
    there = Cluster(rows=1e9, entries_per_row=50, d=10**6, workers=100, visits=2)
    assert predict(found, there).worst == pytest.approx(predict(TRUE, there).worst, rel=0.15)


def test_no_constant_is_negative():
    fewer_with_more = Constants(4e-9, 4e-9, per_round=5e-2, per_partition=-1e-3, per_byte=1e-9)
    found = fit([rounds(*case, constants=fewer_with_more) for case in GRID])
    assert found.per_partition == 0.0
    assert found.per_entry == pytest.approx(4e-9, rel=0.1)


def test_what_no_round_had_costs_nothing():
    """All data near the processor: nothing is known of those that are far."""
    found = fit([rounds(*case) for case in itertools.product((2, 4, 8), (1e6, 1e8), (1e3, 1e4))])
    assert found.per_far_entry == 0.0
    assert found.per_entry == pytest.approx(TRUE.per_entry, rel=1e-6)


def test_cores_are_shared():
    """Eight partitions on two cores take four times as long as on eight."""
    assert rounds(8, 1e9, 0.0).parts[0] == 5e8
    assert Rounds("", 8, 8, 1e9, 0.0, 0.0).parts[0] == 1.25e8


def test_too_few_rounds_are_a_sentence():
    with pytest.raises(ValueError, match="5 constants need as many different rounds, got 1"):
        fit([rounds(2, 1e6, 1e5)])


def test_growth_is_the_exponent():
    assert growth([1, 2, 4, 8], [10, 20, 40, 80]) == pytest.approx(1.0)
    assert growth([2, 4, 8], [7, 7, 7]) == pytest.approx(0.0)
    with pytest.raises(ValueError, match="at least two"):
        growth([4], [7])


def test_a_prediction_adds_up_by_hand():
    made = predict(TRUE, Cluster(rows=1e6, entries_per_row=10, d=1000, workers=10, visits=3))
    assert made.computation == pytest.approx(4e-9 * 3e6)
    assert made.latency == pytest.approx(8e-3 + 2e-2)
    assert made.one_wire == pytest.approx(1.5e-9 * 2 * 10 * 8000)
    assert made.tree == pytest.approx(1.5e-9 * 2 * 10 * 8000)  # no more than all
    far = predict(TRUE, Cluster(rows=1e6, entries_per_row=10, d=10**6, workers=10, visits=3))
    assert far.computation == pytest.approx(9e-9 * 3e6)  # w does not fit the cache
    many = predict(TRUE, Cluster(rows=1e6, entries_per_row=10, d=1000, workers=100, visits=3))
    assert many.tree == pytest.approx(1.5e-9 * 2 * 8 * 3 * 8000)
    assert many.best < many.worst
