"""Class vectors against plain counts of what is left."""

from hypothesis import given

from formal_llm import CFG, Lookahead
from formal_llm.automata.lookahead.class_vectors import ClassVectors
from formal_llm.automata.lookahead.ways import find_ways
from tests.strategies import choices, examples, tool_grammars, walk


def vectors(lookahead):
    grammar = lookahead._search.grammar
    leaves = lookahead._search.demands.resources.leaves
    return ClassVectors(grammar.counters, find_ways(grammar, leaves), leaves, exchange=not grammar.open)


@given(tool_grammars(), choices)
@examples(60)
def test_what_is_left_after_some_moves(cfg, picks):
    lookahead = Lookahead(cfg)
    made = vectors(lookahead)
    now, word = walk(lookahead.automaton, picks)
    begin, left = (made.vector(one.remaining) for one in (lookahead.automaton.start(), now))
    # Each terminal that was read has taken what it takes, and nothing else has changed.
    assert left == begin - sum(made.taken((name,)) for name in word)
    assert left & made.guard == made.guard
    # A number of the counters with this vector; which members of a class are left does not matter.
    assert made.vector(made.some_remaining(left)) == left


def test_members_of_a_class_are_counted():
    lookahead = Lookahead(CFG.from_string("%limit 1\n%limit 3 d\nS -> A S | d\nA -> a | b | c"))
    made = vectors(lookahead)
    full = made.vector(lookahead.automaton.start().remaining)
    assert set(made.class_of) == {"a", "b", "c"}
    assert made.left(full, made.class_of["a"]) == 3
    assert made.left(full - made.taken(("a",)), made.class_of["b"]) == 2
    assert made.total(full) == 6
    assert made.with_total(("a", "d")) == {made.class_of["a"]: 1, made.total_field: 2, 1 - made.class_of["a"]: 1}
