"""Every question about a language, asked of random rules of every kind under limits of every kind.

The rules come with all their words (:mod:`tests.automata.rule_cases`), so that every answer is known.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Limits, Lookahead, Planner, RandomLLM
from formal_llm.agents import Monitor
from formal_llm.automata import Word
from formal_llm.automata.languages.comparison import differences
from formal_llm.automata.languages.emptiness import WhyEmpty, find_unused_terminals, why_empty
from formal_llm.automata.languages.nearest_words import EditWeights, nearest
from formal_llm.automata.languages.prefixes import ConfigurationSets
from formal_llm.automata.languages.word_lists import count_plans, words
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.automata.lookahead.limited import LimitedAutomaton, as_automaton
from formal_llm.errors import BudgetExceeded, InfiniteLanguage, NotationError, NoValidPlan
from tests.automata.languages.editing import distance, in_order
from tests.automata.messages import quiet
from tests.automata.rule_cases import KINDS, LONGEST, RuleCase, rule_cases
from tests.strategies import examples

kinds = pytest.mark.parametrize("kind", KINDS)


def following(case: RuleCase, prefix: Word) -> set[str]:
    """The terminals with which some word goes on."""
    size = len(prefix)
    return {word[size] for word in case.words if len(word) > size and word[:size] == prefix}


def rest(case: RuleCase, prefix: Word) -> int:
    """How many terminals follow at least."""
    return min(len(word) for word in case.words if word[: len(prefix)] == prefix) - len(prefix)


@kinds
@given(data=st.data())
@examples(8)
def test_which_words_there_are(kind: str, data: st.DataObject) -> None:
    case = data.draw(rule_cases(kind))
    automaton = as_automaton(case.rules)
    assert isinstance(automaton, PDA)
    asked = [case.plain, automaton, LimitedAutomaton(automaton, automaton.limits)]
    asked += [case.rules] if isinstance(case.rules, (PDA, Behaviour)) else []
    for word in case.probes:
        assert [one.accepts(word) for one in asked] == [word in case.words] * len(asked)
    for one in (case.plain, automaton):
        assert list(words(one, LONGEST)) == in_order(case.words, one.terminals)
    for bound in case.plain.bounds:
        kept = {word for word in case.free if bound.holds(word)}
        assert kept >= case.words
    if isinstance(case.rules, CFG):  # these are asked of what it derives, its limits aside
        assert list(words(case.plain.without_limits, LONGEST)) == in_order(case.free, case.plain.terminals)
        for word in case.probes:
            assert bool(derivations(case.rules, word, 1).found) == (word in case.free)


@kinds
@given(data=st.data())
@examples(8)
def test_how_many_and_how_long(kind: str, data: st.DataObject) -> None:
    case = data.draw(rule_cases(kind))
    lookahead, solved = Lookahead(case.rules), Lookahead(case.rules, max_states=1)
    lengths = sorted(map(len, case.words))
    assert lookahead.completable().value == ("yes" if lengths else "no")
    assert solved.completable().value in (lookahead.completable().value, "unknown")
    assert lookahead.shortest() == (lengths[0] if lengths else None)
    assert (lookahead.fewest_moves() is None) == (not lengths)
    assert not lengths or lookahead.least_length(lookahead.automaton.start()) <= lengths[0]
    word = lookahead.shortest_word()
    assert word in case.words if lengths else word is None
    assert word is None or len(word) == lengths[0]
    assert lookahead.count() == count_plans(lookahead).number == len(lengths)
    for most in range(LONGEST + 1):
        assert lookahead.count(max_length=most) == sum(length <= most for length in lengths)
    sampled = [lookahead.sample(random.Random(seed)) for seed in range(5)]
    try:
        assert lookahead.count(of="derivations") >= len(lengths)
        sampled += [lookahead.sample(random.Random(seed), of="derivations") for seed in range(5)]
    except InfiniteLanguage:  # in circles that read nothing
        pass
    assert set(sampled) <= case.words if lengths else set(sampled) == {None}


@kinds
@given(data=st.data())
@examples(8)
def test_what_words_use(kind: str, data: st.DataObject) -> None:
    case = data.draw(rule_cases(kind))
    lookahead, used = Lookahead(case.rules), {name for word in case.words for name in word}
    never = [name for name in lookahead.automaton.terminals if name not in used]
    assert find_unused_terminals(lookahead) == (never, [])
    assert set(lookahead.detours(lookahead.automaton.start())) >= used


@kinds
@given(data=st.data())
@examples(8)
def test_how_words_begin(kind: str, data: st.DataObject) -> None:
    case = data.draw(rule_cases(kind))
    few = data.draw(st.sampled_from((None, 1)))
    prefixes = ConfigurationSets(Lookahead(case.rules), max_configurations=few)
    for word in case.probes[:: 1 + len(case.probes) // 25]:
        viable = [any(one[:end] == word[:end] for one in case.words) for end in range(len(word) + 1)]
        assert prefixes.is_viable(word) == viable[-1]
        assert prefixes.longest_viable(word) == (sum(viable) - 1, True)
        names, ends, certain = prefixes.next_terminals(word)
        assert (set(names), ends, certain) == (following(case, word), word in case.words, True)


@kinds
@given(data=st.data())
@examples(8)
def test_what_may_come_next(kind: str, data: st.DataObject) -> None:
    case = data.draw(rule_cases(kind))
    monitor = Monitor(case.rules)
    for word in case.probes[:: 1 + len(case.probes) // 10]:
        found = monitor.verify(word, repair=False)
        assert found.valid == (word in case.words)
        here = monitor
        for place, name in enumerate((*word, None)):
            allowed = {one: known.shortest for one, known in here.allowed().items()}
            prefix = word[:place]
            assert allowed == {one: rest(case, (*prefix, one)) for one in following(case, prefix)}
            assert here.may_stop() == (prefix in case.words)
            if name is None or name not in allowed:
                assert found.position is None or found.position == place
                break
            here = here.after(name)


@kinds
@given(data=st.data())
@examples(8)
def test_what_is_nearest(kind: str, data: st.DataObject) -> None:
    case = data.draw(rule_cases(kind))
    weights = EditWeights(*data.draw(st.sampled_from(((1, 1, 1), (1, 2, 3)))))
    lookahead = Lookahead(case.rules)
    for word in data.draw(st.lists(st.sampled_from(case.probes), min_size=1, max_size=3)):
        found = nearest(lookahead, word, weights)
        assert found.decided
        assert found.distance == min((distance(word, one, weights) for one in case.words), default=float("inf"))
        assert found.word in case.words if case.words else found.word is None


@kinds
@given(data=st.data())
@examples(8)
def test_how_two_differ(kind: str, data: st.DataObject) -> None:
    one, other = data.draw(rule_cases(kind)), data.draw(rule_cases(data.draw(st.sampled_from(KINDS))))
    for sides in ((one, other), (one, one), (one, _changed(one))):
        ours, theirs = (side.words for side in sides)
        found = differences(sides[0].rules, sides[1].rules)
        for mine, but in ((found.only_one, ours - theirs), (found.only_other, theirs - ours)):
            assert mine in but if but else mine is None
            assert mine is None or len(mine) == min(map(len, but))
        for length, *counts in found.counts:
            assert counts == [sum(len(word) == length for word in side) for side in (ours, theirs)]


def _changed(case: RuleCase) -> RuleCase:
    """The same language as an automaton that has the timetable worked into its states."""
    automaton = as_automaton(case.rules)
    assert isinstance(automaton, PDA)
    return replace(case, rules=automaton)


@kinds
@given(data=st.data())
@examples(8)
def test_texts_are_read_just_where_there_is_a_plan(kind: str, data: st.DataObject) -> None:
    case = data.draw(rule_cases(kind))
    if not case.words:
        why = why_empty(as_automaton(case.rules))
        assert why.decided
        assert not case.kept(_only(case.plain, why))
        with pytest.raises(NoValidPlan):
            Planner(case.rules, RandomLLM(1)).plan("t")
    else:
        with suppress(BudgetExceeded):  # a random walk in circles that read nothing
            assert Planner(case.rules, RandomLLM(1)).plan("t").word in case.words
    if kind != "product":
        with quiet():
            if case.words:
                assert type(case.rules).from_string(str(case.rules)) == case.rules
            else:
                with pytest.raises(NotationError):
                    type(case.rules).from_string(str(case.rules))


def _only(plain: PDA, why: WhyEmpty) -> Limits:
    """The limits of an automaton that a clash names."""
    bounds = plain.limits
    for bound in plain.bounds:
        if bound.line not in why.limits:
            bounds = bounds.without(bound.line)
    if not any(line in why.constraints for line in bounds.times.lines()):
        return bounds.without_times
    windows, gaps = (
        tuple(one for one in ones if str(one) in why.constraints) for ones in (bounds.times.windows, bounds.times.gaps)
    )
    return replace(bounds, times=replace(bounds.times, windows=windows, gaps=gaps))
