"""The bound on work: shared by the queries of a question, and none outside."""

import gc

import pytest

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.work import TRIES, WorkBudget, pause_garbage_collection


def test_without_a_bound_nothing_ends_it():
    work = WorkBudget()
    work.share_among(3)
    work.begin_query()
    work.left -= 10**9
    assert not work.is_over
    assert work.left == INFINITE


def test_a_query_has_its_part_and_what_it_leaves_is_for_the_others():
    work = WorkBudget()
    with work.limit_seconds(1.0):
        work.share_among(4)
        work.begin_query()
        assert work.seconds_left == 0.25
        work.left -= TRIES / 4
        assert work.is_over
        work.begin_query()
        assert not work.is_over
        work.left -= TRIES / 100
        work.share_among(1)
        work.begin_query()
        assert round(work.seconds_left, 2) == 0.74
    assert work.left == INFINITE


def test_a_bound_inside_another_is_that_other():
    work = WorkBudget()
    with work.limit_seconds(0.5):
        with work.limit_seconds(2.0):
            assert work.left == 0.5 * TRIES
        work.left -= 1
        assert work.left == 0.5 * TRIES - 1
    with work.limit_seconds(None):
        assert work.left == INFINITE


def test_a_bound_within_another_one_changes_nothing_and_the_outer_one_ends_it() -> None:
    work = WorkBudget()
    with work.limit_seconds(1.0):
        work.left -= 10
        left = work.left
        with work.limit_seconds(0.001), work.limit_seconds(1.0), work.limit_seconds(None):
            assert work.left == left
        assert work.left == left
    assert work.left == INFINITE
    with work.limit_seconds(None), work.limit_seconds(1.0):
        assert work.left == TRIES
    assert work.left == work.part == INFINITE


def test_a_bound_ends_where_something_is_raised_in_it() -> None:
    work = WorkBudget()
    with pytest.raises(KeyError), work.limit_seconds(1.0), work.limit_seconds(1.0):
        raise KeyError
    assert work.left == INFINITE
    with work.limit_seconds(2.0):
        assert work.left == 2 * TRIES


def test_the_collector_rests_while_something_is_built_and_goes_on_as_before() -> None:
    assert gc.isenabled()
    with pause_garbage_collection():
        assert not gc.isenabled()
        with pause_garbage_collection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with pause_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
