import pytest
from hypothesis import given

from formal_llm import CFG, Lookahead
from formal_llm.automata.languages.ambiguity import ambiguity_witness
from formal_llm.automata.lookahead import ll1
from formal_llm.automata.lookahead.ll1 import is_unambiguous
from tests.oracles import language
from tests.strategies import automata, choices, direct_automata, examples, grammars, walk


def told(cfg, picks=()):
    lookahead = Lookahead(cfg)
    state, stack = lookahead.uncounted(walk(lookahead.automaton, picks)[0])
    return is_unambiguous(lookahead._search.grammar, state, stack)


@given(grammars())
@examples(150)
def test_a_grammar_told_apart_is_unambiguous(cfg):
    if told(cfg):
        assert ambiguity_witness(cfg, 4) is None


@given(grammars(), choices)
@examples(60)
def test_what_is_told_apart_by_ll1_stays_so_on_the_way(cfg, picks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ll1, "is_lalr", lambda *_: False)
        if told(cfg):
            lookahead = Lookahead(cfg)
            # Where nothing can be completed there is no word to be ambiguous, and it need not be told apart.
            assert told(cfg, picks) or not lookahead.completable(walk(lookahead.automaton, picks)[0])


@given(grammars() | automata() | direct_automata(), choices)
@examples(100)
def test_where_it_is_told_apart_on_the_way_there_are_as_many_words_as_runs(source, picks):
    lookahead = Lookahead(source)
    now, _ = walk(lookahead.automaton, picks)
    state, stack = lookahead.uncounted(now)
    if is_unambiguous(lookahead._search.grammar, state, stack):
        sampler, begin, _ = lookahead._get_sampler(now, 4, "words")
        begin = sampler._add_length_bound(begin)
        assert sampler._count_derivations(begin) == len(sampler._list_words(begin))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S -> a S b | ε", True),
        ("S -> a S b | c", True),
        ("S -> a S | a b", True),  # both begin with a, the end tells
        ("A -> f x | f y", True),
        ("S -> a S | b S | a b S | c", False),  # a b c in two ways
        ("S -> A a\nA -> a | ε", False),  # a begins A and follows it
        ("S -> A b\nA -> a | ε", True),
        ("S -> A B\nA -> ε\nB -> ε | b", True),
        ("S -> A | B\nA -> ε\nB -> ε", False),  # two ways to the empty word
        ("S -> S a | b", True),  # left recursion
        ("S -> S S | a", False),
        ("S -> some(a, b, c)", True),
    ],
)
def test_by_hand(text, expected):
    assert told(CFG.from_string(text)) == expected


def test_an_empty_language_has_no_two_runs():
    cfg = CFG([("S", ("a", "S")), ("S", ("a", "a", "S"))])
    assert not language(cfg, 4)
    assert told(cfg)
