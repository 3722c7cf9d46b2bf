import pytest
from hypothesis import assume, given

from formal_llm import CFG, Limits, Lookahead
from formal_llm.automata.lookahead.sampling import WordEnumeration
from formal_llm.errors import Undecided
from tests.automata.lookahead.judging import parts, sources
from tests.oracles import INF, Reference, keeps, language
from tests.strategies import choices, examples, limited_grammars, walk


def words_of(lookahead, now, max_words=2_000):
    (state, stack), remaining, needed = lookahead._split_configuration(now)
    return WordEnumeration(lookahead._search.grammar, max_words).enumerate_words(state, stack, remaining, needed)


@given(limited_grammars())
@examples(60)
def test_all_words_within_the_limits_once_and_sorted(cfg):
    lookahead = Lookahead(cfg)
    try:
        found = words_of(lookahead, lookahead.automaton.start())
    except Undecided:
        assume(False)
    assert found == sorted(set(found))
    assert all(keeps(word, cfg.limits, cfg.terminals, cfg.symbols) and cfg.accepts(word) for word in found)
    fitting = {word for word in language(cfg, 4) if keeps(word, cfg.limits, cfg.terminals, cfg.symbols)}
    assert {word for word in found if len(word) <= 4} == fitting


@given(sources, choices)
@examples(40)
def test_from_any_configuration(source, picks):
    lookahead = Lookahead(*source)
    now, read = walk(lookahead.automaton, picks)
    try:
        found = words_of(lookahead, now, 300)
    except Undecided:
        assume(False)
    pda = lookahead.pda
    shortest = Reference(pda, lookahead.limits).length(*parts(now), read)
    assert min(map(len, found), default=INF) == shortest
    letters = list(pda.terminals)
    assert all(keeps((*read, *word), lookahead.limits, letters, pda.symbols) for word in found)


def test_too_many_words_are_told():
    lookahead = Lookahead(CFG.from_string("S -> a S | b S | S S | c"), Limits(default=4))
    with pytest.raises(Undecided, match="more than 50 words"):
        words_of(lookahead, lookahead.automaton.start(), 50)
