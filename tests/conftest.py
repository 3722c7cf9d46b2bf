"""Settings for the whole test suite. Helpers are imported by their full names: ``tests.strategies``."""

import gc
import os
import sys
from collections.abc import Iterator

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

# The collector of garbage would go over all that is imported and all tests again and again, half a second each time.
# It rests while tests are read, then leaves alone what stands, and looks at new things only; so again after large
# libraries were imported.
MODULES = 300
_modules = [0]


def _leave_alone() -> None:
    gc.collect()
    gc.freeze()
    _modules[0] = len(sys.modules)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    gc.disable()
    try:
        return (yield)
    finally:
        _leave_alone()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


@pytest.fixture(autouse=True)
def _what_is_imported_is_left_alone() -> None:
    if len(sys.modules) > _modules[0] + MODULES:
        _leave_alone()


@pytest.fixture(autouse=True)
def _plans_of_a_test_are_counted() -> None:
    certifying.counted.update(test=0, words=0)
