"""The search behind verdicts: whatever it remembers and wherever it pauses, it is never wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata.lookahead import program, search
from formal_llm.automata.lookahead.cheapest import INFINITE, UNKNOWN
from formal_llm.automata.lookahead.verdicts import BUDGET, FILTER, LINEAR, PROGRAM, SEARCH, TIME
from tests.automata.lookahead.judging import parts, pieces, reference, search_of, sources
from tests.oracles import INF, Reference
from tests.strategies import choices, examples, limited_automata, walk


def decide(made: search.CompletionSearch, lookahead: Lookahead, now: Any, *most: float) -> tuple[float, str]:
    inner, remaining, needed = pieces(lookahead, now)
    return made.decide(made.demands.for_configuration(*inner), remaining, needed, *most)


@given(sources, choices, st.sampled_from([0, 1, 3, 20_000]), st.sampled_from([0, 1, 2, 5, 30]), st.booleans())
@examples(250)
def test_verdicts_with_any_budget_and_any_tier(source, picks, max_states, patience, alone):
    """Without the program, and with it after any number of states; the second answer is remembered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "PATIENCE", patience)
        if alone:
            patch.setattr(program, "_LARGEST", 0)
        lookahead = Lookahead(*source)
        made = search_of(lookahead, max_states)
        for some in (picks[:2], picks, picks[:1], picks):
            now, word = walk(lookahead.automaton, some)
            least = reference(lookahead).moves(*parts(now), word)
            found, how = decide(made, lookahead, now)
            assert (found == UNKNOWN) == (how == BUDGET)
            assert found == UNKNOWN or (found == INFINITE) == (least == INF)
            assert found in (UNKNOWN, INFINITE) or found >= least
            assert max_states < 20_000 or found != UNKNOWN


@given(sources, choices, st.sampled_from([1, 8, 40]))
@examples(60)
def test_a_search_that_is_paused_again_and_again_ends_as_one_that_is_not(source, picks, tries):
    lookahead = Lookahead(*source)
    now, word = walk(lookahead.automaton, picks)
    made, found, how = search_of(lookahead), UNKNOWN, TIME
    for _ in range(2_000):
        made.work.left = made.work.part = tries
        found, how = decide(made, lookahead, now)
        assert (found == UNKNOWN) == (how == TIME)
        if found != UNKNOWN:
            break
        assert made.work.left <= 0
    least = reference(lookahead).moves(*parts(now), word)
    assert (found == INFINITE) == (least == INF)
    assert found >= least
    assert how in (FILTER, LINEAR, SEARCH, PROGRAM)


@given(sources, choices)
@examples(60)
def test_what_a_stack_asks_for_at_least(source, picks):
    lookahead = Lookahead(*source)
    now, word = walk(lookahead.automaton, picks)
    assert lookahead.least_steps(now) <= reference(lookahead).moves(*parts(now), word)
    bare = Lookahead(lookahead.pda.without_limits)
    inner = lookahead.uncounted(now)
    assert bare.least_steps(inner) == Reference(bare.pda, Limits()).moves(inner.state, tuple(inner.stack))


@given(limited_automata(), choices)
@examples(40)
def test_what_is_learned_is_believed_and_a_second_look_believes_nothing(source, picks):
    lookahead = Lookahead(*source)
    now, word = walk(lookahead.automaton, picks)
    alone = lookahead.second_look(now, None)
    assert (alone.value == "no") == (reference(lookahead).moves(*parts(now), word) == INF)
    if alone.value == "no":
        other = Lookahead(*source, max_states=0)
        other.learn(now, alone)
        assert other.completable(now).value == "no"
    assert lookahead.second_look(now, 0.0).value in (alone.value, "unknown")


@pytest.mark.parametrize("most", [0, 1, 2])
@pytest.mark.parametrize("turn", [1, -1])
def test_open_stacks(most, turn):
    """From p the X is popped into q or r: by way of q ``abdb`` is read, by way of r ``cdb``."""
    ways = [("p", "a", "X", "q"), ("p", None, "X", "r")][::turn]
    ways += [("q", "b", "Y", "s"), ("r", "c", "Y", "s"), ("s", "d", "Z", "s"), ("s", "b", "W", "t")]
    pda = PDA(ways, start="p", accepting="t", stack="XYZW")
    for least, words in (({}, ["cdb", "abdb"]), ({"a": 1}, ["abdb"]), ({"c": 1}, ["cdb"]), ({"c": 2}, [])):
        lookahead = Lookahead(pda, Limits({"a": 2, "b": most}, at_least=least))
        fitting = [word for word in words if word.count("b") <= most]
        assert lookahead.completable().value == ("yes" if fitting else "no")
        assert lookahead.shortest() == min(map(len, fitting), default=None)


def test_a_budget_of_states_is_used_up_and_no_more(monkeypatch):
    """Three days of two parts with four things in all, each once: none fits, and only visiting all states shows it."""
    monkeypatch.setattr(program, "_LARGEST", 0)
    lookahead = Lookahead(CFG.from_string("%limit 1\nS -> D D D | e E\nD -> a E | b E | a b\nE -> c | d c"))
    now, _ = walk(lookahead.automaton, [0, 0])
    verdicts = [decide(search_of(lookahead, most), lookahead, now)[0] for most in range(30)]
    assert verdicts == sorted(verdicts, key=(UNKNOWN, INFINITE).index)
    assert verdicts[-1] == INFINITE
