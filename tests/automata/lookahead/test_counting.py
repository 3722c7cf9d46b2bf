"""Counting derivations, against deriving them one by one."""

from itertools import pairwise

import pytest
from hypothesis import assume, given

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata.languages.ambiguity import derivations
from formal_llm.automata.languages.word_lists import is_finite, words
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counting import DerivationCounter, find_cycles, fixed_counts
from formal_llm.automata.lookahead.ways import find_ways
from formal_llm.automata.models.pda import LOOP
from formal_llm.errors import InfiniteLanguage, Undecided
from tests.oracles import keeps, language
from tests.strategies import choices, examples, grammars, limited_grammars, tool_grammars, walk


def counter(lookahead, max_states=100_000):
    return DerivationCounter(lookahead.pda, lookahead.bounds, max_states)


def count(lookahead, now, max_states=100_000):
    (state, stack), remaining, needed = lookahead._split_configuration(now)
    return counter(lookahead, max_states).count_derivations(state, stack, remaining, needed)


@given(limited_grammars() | tool_grammars())
@examples(60)
def test_as_many_as_the_words_within_the_limits_have(cfg):
    lookahead = Lookahead(cfg)
    try:
        number = count(lookahead, lookahead.automaton.start())
    except (InfiniteLanguage, Undecided):
        assume(False)
    fitting = [word for word in language(cfg, 6) if keeps(word, cfg.limits, cfg.terminals, cfg.symbols)]
    assume(max(map(len, fitting), default=0) < 6)
    longest = lookahead.count(max_length=6, of="derivations")
    assume(longest == number)  # else there are longer words, which are not written out
    assert number == sum(len(derivations(cfg, word, 2_000).found) for word in fitting)


@given(tool_grammars(), choices)
@examples(60)
def test_the_moves_share_them_out(cfg, picks):
    lookahead = Lookahead(cfg)
    now, _ = walk(lookahead.automaton, picks)
    automaton = lookahead.automaton
    try:
        whole = count(lookahead, now)
        parts = [count(lookahead, automaton.step(now, move)) for move in automaton.moves(now)]
    except (InfiniteLanguage, Undecided):
        assume(False)
    assert whole == sum(parts) + automaton.accepting(now)


def test_runs_that_look_alike_are_several():
    """Two moves do the same: one does not look at the stack, the other takes Y and puts it back."""
    pda = PDA([("q", "a", None, "q"), ("q", "a", "Y", "q", ("Y",))], start="q", stack=("Y",), accepting={"q"})
    assert Lookahead(pda).count(of="derivations", max_length=3) == 1 + 2 + 4 + 8


def test_what_is_infinite_is_told_by_what_grows():
    for text, grows in (("S -> a S | b", True), ("S -> S | b", False)):
        lookahead = Lookahead(CFG.from_string(text))
        (state, stack), *_ = lookahead._split_configuration(lookahead.automaton.start())
        with pytest.raises(InfiniteLanguage, match="max_length" if grows else "count words instead"):
            counter(lookahead).count_derivations(state, stack, 0, 0)
        if grows:
            with pytest.raises(InfiniteLanguage):
                counter(lookahead).check_words(state, stack, 0, 0)
        else:
            counter(lookahead).check_words(state, stack, 0, 0)


def test_the_budget_ends_it():
    names = [f"t{number}" for number in range(12)]
    cfg = CFG([("S", (name, "S", other)) for name, other in pairwise(names)] + [("S", ())])
    lookahead = Lookahead(cfg, Limits(default=2))
    with pytest.raises(Undecided, match="raise max_states"):
        count(lookahead, lookahead.automaton.start(), max_states=5)


def known(cfg, limits=None):
    search = Lookahead(cfg, limits)._search
    leaves = search.demands.resources.leaves
    start = search.grammar.get_symbol(LOOP, cfg.start, LOOP)
    return search.grammar.symbols, find_ways(search.grammar, leaves), start.index


def named(cfg, found):
    symbols, _, _ = known(cfg)
    return {symbols[index].key[1] for index in found}


def reached(ways, start):
    found, todo = {start}, [start]
    while todo:
        for _, children, _ in ways[todo.pop()]:
            todo += set(children) - found
            found |= set(children)
    return found


class TestCycles:
    def test_which_grow_words(self):
        cfg = CFG.from_string("S -> S | A\nA -> a A | b")
        symbols, ways, _ = known(cfg)
        cyclic, growing = find_cycles(symbols, ways, ())
        assert named(cfg, cyclic) == {"S", "A"}
        assert named(cfg, growing) == {"A"}

    def test_what_takes_from_a_limit_is_no_cycle(self):
        cfg = CFG.from_string("S -> a S | b")
        symbols, ways, _ = known(cfg)
        assert find_cycles(symbols, ways, {"a"}) == (set(), set())
        assert find_cycles(symbols, ways, {"b"})[0]

    def test_the_next_production_may_be_a_cycle(self):
        cfg = CFG.from_string("S -> a S | b S | c")
        symbols, ways, _ = known(cfg)
        assert [named(cfg, found) for found in find_cycles(symbols, ways, {"a"})] == [{"S"}, {"S"}]

    def test_what_stands_beside_a_cycle_must_take_nothing_and_makes_it_grow(self):
        for text, limited, cycles, grows in (
            ("S -> S X | c\nX -> a", "a", 0, 0),
            ("S -> X S | c\nX -> a", "a", 0, 0),
            ("S -> S X | c\nX -> a | ε", "a", 1, 0),
            ("S -> S X | c\nX -> a | ε", "", 1, 1),
            ("S -> X S | c\nX -> Y Y\nY -> a | ε", "", 1, 1),
            ("S -> X S | c\nX -> Y Y\nY -> a | ε", "a", 1, 0),
            ("S -> X S | c\nX -> Y Z\nY -> b\nZ -> a", "a", 0, 0),
            ("S -> X S | c\nX -> Y Z\nY -> b | ε\nZ -> a | ε", "a", 1, 1),
        ):
            cfg = CFG.from_string(text)
            # What a symbol can do without taking anything is known of the limits.
            symbols, ways, _ = known(cfg, Limits(dict.fromkeys(limited, 1)))
            found = find_cycles(symbols, ways, set(limited))
            assert [("S" in named(cfg, one)) for one in found] == [bool(cycles), bool(grows)], text

    @given(grammars())
    @examples(80)
    def test_without_limits_a_language_is_infinite_where_a_cycle_grows_that_is_of_use(self, cfg):
        symbols, ways, start = known(cfg)
        assume(symbols[start].least_steps < INFINITE)
        _, growing = find_cycles(symbols, ways, ())
        assert bool(growing & reached(ways, start)) == (not is_finite(cfg))


class TestFixedCounts:
    @given(grammars(selections=False))
    @examples(60)
    def test_as_many_as_the_words_have_together(self, cfg):
        symbols, ways, start = known(cfg)
        count = fixed_counts(ways, ())[start]
        assert (count == INFINITE) == bool(find_cycles(symbols, ways, ())[0] & reached(ways, start))
        assume(count < 200)
        found = [derivations(cfg, word, 300) for word in words(cfg, 30)]
        assert all(one.complete for one in found)
        assert count == sum(len(one.found) for one in found)

    def test_what_a_limit_touches_has_none(self):
        cfg = CFG.from_string("S -> A B\nA -> a | b\nB -> c | d | e")
        symbols, ways, start = known(cfg, Limits(at_most={"a": 1}))
        counts = {symbols[index].key[1]: count for index, count in fixed_counts(ways, {"a"}).items()}
        assert counts["B"] == 3
        assert start not in fixed_counts(ways, {"a"})
        assert "A" not in counts
