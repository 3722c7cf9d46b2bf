"""Verdicts and their counts."""

import pytest

from formal_llm import Verdict
from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.verdicts import BUDGET, KINDS, SEARCH, TALLY, TIME


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


def test_counts_of_billions_do_not_run_into_each_other():
    assert [TALLY[kind] for kind in KINDS] == [2 ** (32 * place) for place in range(5)]
