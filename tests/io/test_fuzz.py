"""A taste of the fuzzing that ``make fuzz`` does at length."""

import pytest
from fuzz import SHARES, campaigns, fuzz


@pytest.fixture(scope="module")
def all_campaigns():
    return campaigns()


@pytest.mark.parametrize("kind", list(SHARES))
def test_some_inputs(kind, all_campaigns):
    assert fuzz(kind, 150, *all_campaigns[kind]) > 50
