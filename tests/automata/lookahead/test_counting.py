"""Counting derivations, against deriving them one by one."""

from itertools import pairwise

import pytest
from hypothesis import assume, given

from formal_llm import CFG, Limits, Lookahead
from formal_llm.automata.languages.ambiguity import derivations
from formal_llm.automata.lookahead.counting import DerivationCounter
from formal_llm.errors import InfiniteLanguage, Undecided
from tests.oracles import keeps, language
from tests.strategies import choices, examples, limited_grammars, tool_grammars, walk


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
