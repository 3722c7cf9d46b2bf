"""Verdicts and their counts."""

import gc

import pytest

from formal_llm import Verdict
from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.verdicts import (
    BUDGET,
    KINDS,
    SEARCH,
    TALLY,
    TIME,
    TRIES,
    WorkBudget,
    pause_garbage_collection,
)


def test_of_a_search():
    assert Verdict.of(INFINITE, SEARCH) == Verdict("no", SEARCH)
    assert Verdict.of(UNKNOWN, TIME) == Verdict("unknown", TIME)
    assert Verdict.of(4.0, SEARCH) == Verdict("yes", SEARCH, 4)
    assert str(Verdict.of(UNKNOWN, TIME)) == "unknown (time)"


def test_possible_is_what_is_not_ruled_out():
    assert [Verdict.of(found, SEARCH).possible for found in (INFINITE, UNKNOWN, 0.0)] == [False, True, True]
    with pytest.raises(TypeError, match="three values"):
        bool(Verdict("yes", SEARCH))


def test_each_kind_has_a_count_of_its_own():
    assert len({TALLY[kind] for kind in KINDS}) == len(KINDS)
    assert TALLY[BUDGET] == TALLY[TIME] == TALLY["unknown"]


def test_a_query_has_its_part_and_what_it_leaves_is_for_the_others():
    work = WorkBudget()
    work.share_among(3)
    work.begin_query()
    work.left -= 10**9
    assert not work.is_over and work.left == INFINITE  # without a bound nothing ends it
    with work.limit_seconds(1.0):
        work.share_among(4)
        work.begin_query()
        assert work.left - work.floor == TRIES / 4
        work.left -= TRIES / 4
        assert work.is_over
        work.begin_query()
        assert not work.is_over
        work.left -= TRIES / 100
        work.share_among(1)
        work.begin_query()
        assert work.left - work.floor == TRIES * 0.74
    assert work.left == INFINITE


def test_what_is_left_is_shared_among_up_to_four_queries():
    work = WorkBudget()
    for left, whole in ((120.0, 120), (0.5, 0.5), (0.0, 0), (-3.0, 0)):
        work.left = left
        shares = []
        for queries in (0, 1, 2, 3, 4, 5, 100):
            work.share_among(queries)
            shares.append(work.part)
        assert shares == [whole, whole, whole / 2, whole / 3, whole / 4, whole / 4, whole / 4]


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
    with pytest.raises(KeyError), work.limit_seconds(1.0), work.limit_seconds(1.0):
        raise KeyError
    assert work.left == INFINITE


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
