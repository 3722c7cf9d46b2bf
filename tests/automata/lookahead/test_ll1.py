"""Grammars with one derivation for each word."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead
from formal_llm.automata.languages.ambiguity import ambiguity_witness
from formal_llm.automata.lookahead import ll1
from formal_llm.automata.lookahead.ll1 import is_lalr, is_unambiguous
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


bodies = st.lists(st.sampled_from([0, 1, 2, "a", "b"]), max_size=3).map(tuple)
rules = st.lists(st.tuples(st.integers(0, 2), bodies), min_size=1, max_size=7, unique=True)


def derivations(rules, up_to, rounds):
    """For each word the trees of at most so many levels that derive it from 0: by brute force, bottom up."""
    trees = {head: Counter() for head in range(3)}
    for _ in range(rounds):
        new = {head: Counter() for head in range(3)}
        for head, body in rules:
            found = Counter({(): 1})
            for name in body:
                parts = Counter({(name,): 1}) if isinstance(name, str) else trees[name]
                found = Counter() if not parts else sum_of(found, parts, up_to)
            new[head].update(found)
        trees = new
    return trees[0]


def sum_of(left, right, up_to):
    joined = Counter()
    for one, times in left.items():
        for other, more in right.items():
            if len(one) + len(other) <= up_to:
                joined[one + other] += times * more
    return joined


@given(rules)
@examples(300)
def test_no_word_of_such_a_grammar_has_two_derivations(rules):
    if is_lalr(rules, 0):
        assert max(derivations(rules, 6, 6).values(), default=0) <= 1


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([(0, ("f", "x")), (0, ("f", "y"))], True),  # they begin alike
        ([(0, ("f", 1, "x")), (0, ("f", 1, "y")), (1, (0,)), (1, ())], True),
        ([(0, (0, "a")), (0, ("b",))], True),  # left recursion
        ([(0, (1, "x")), (0, (2, "y")), (1, ("a",)), (2, ("a",))], True),  # what follows tells
        ([(0, (1, "x")), (0, (2, "x")), (1, ("a",)), (2, ("a",))], False),
        ([(0, (0, 0)), (0, ("a",))], False),
        ([(0, (0,)), (0, ("a",))], False),  # a cycle
        ([(0, (1,)), (0, (2,)), (1, ()), (2, ())], False),
        ([(0, (1, "a")), (1, ("a",)), (1, ())], False),  # two letters would tell
        ([], True),
    ],
)  # fmt: skip
def test_lalr_by_hand(rules, expected):
    assert is_lalr(rules, 0) == expected


def test_the_work_is_bounded():
    # The states of such an automaton are the sets of places among the last sixteen letters.
    place = [(number, (letter, number + 1)) for number in range(1, 16) for letter in "ab"]
    rules = [(0, ("a", 0)), (0, ("b", 0)), (0, ("a", 1)), *place, (16, ())]
    assert not is_lalr(rules, 0, max_items=1_000)
