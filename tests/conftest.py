"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

os.environ["DUALFREE_QUIET"] = "1"

# The same examples in every run, so that a run says something about the code and not about the day.
settings.register_profile(
    "dualfree", deadline=None, derandomize=True, print_blob=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("dualfree")
