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
settings.register_profile("default", deadline=None, max_examples=20, suppress_health_check=_SLOW)
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.register_profile("all", parent=settings.get_profile("default"), max_examples=500)
settings.register_profile("fuzz", parent=settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "default"))


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


# A test without the mark ``slow`` takes little of the processor, by its own time and that of processes it waited for:
# the clock would fail tests on a busy machine. Machines differ, so there is room between a warning and a failure.
WARNED, REFUSED = 2.0, 6.0
#: The profiles with so many examples that a property may take longer.
MANY = ("all", "fuzz")
_long: list[str] = []


def _processor_time() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    before = _processor_time()
    result = yield
    taken = _processor_time() - before
    if taken > WARNED and item.get_closest_marker("slow") is None and settings.get_current_profile_name() not in MANY:
        item.user_properties.append(("processor_time", round(taken, 1)))
        if taken > REFUSED:
            pytest.fail(f"took {taken:.1f} s of processor time: make it quicker, or mark it slow", pytrace=False)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    taken = dict(report.user_properties).get("processor_time")
    if report.when == "call" and taken is not None:
        _long.append(f"{taken:6.1f} s  {report.nodeid}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _long:
        terminalreporter.section(f"more than {WARNED:.0f} s of processor time, without the mark slow")
        for line in sorted(_long, reverse=True):
            terminalreporter.line(line)


@pytest.fixture(autouse=True)
def _plans_of_a_test_are_counted() -> None:
    certifying.counted.update(test=0, words=0)
