"""Settings for the whole test suite. Helpers are imported by their full names: ``tests.strategies``."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tests import certifying

# Random grammars are filtered (only some have a word under their limits) and the machine may be slow or shared.
_SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
settings.register_profile(
    "default", deadline=None, max_examples=60 * int(os.environ.get("FUZZ", "1")), suppress_health_check=_SLOW
)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


# Every plan that a test looks at is proved to the checker that imports nothing of ours.
certifying.watch()


@pytest.fixture(autouse=True)
def _plans_of_a_test_are_counted() -> None:
    certifying.counted["test"] = 0
