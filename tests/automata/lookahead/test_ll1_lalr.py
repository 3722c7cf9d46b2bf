from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.lookahead.ll1 import is_lalr
from tests.strategies import examples

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
def test_by_hand(rules, expected):
    assert is_lalr(rules, 0) == expected


def test_the_work_is_bounded():
    # The states of such an automaton are the sets of places among the last sixteen letters.
    place = [(number, (letter, number + 1)) for number in range(1, 16) for letter in "ab"]
    rules = [(0, ("a", 0)), (0, ("b", 0)), (0, ("a", 1)), *place, (16, ())]
    assert not is_lalr(rules, 0, max_items=1_000)
