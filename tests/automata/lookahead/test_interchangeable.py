from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Lookahead
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.interchangeable import ClassVectors, FieldPacking, assign_fields
from formal_llm.automata.lookahead.ways import find_leaves, find_ways
from formal_llm.automata.models.pda import LOOP
from tests.strategies import choices, examples, tool_grammars, walk


def fields(text, *, counting=False, exchange=True):
    """The terminals that share a field, as sorted lists."""
    cfg = CFG.from_string(text)
    pda = PDA.from_cfg(cfg).with_limits(cfg.limits)
    grammar = FlowGrammar(pda, Counters(pda.bounds))
    grammar.get_symbol(LOOP, cfg.start, LOOP)
    leaves = find_leaves(grammar)
    found = assign_fields(
        Counters(pda.bounds), find_ways(grammar, leaves), leaves, exchange=exchange, counting=counting
    )
    shared = {}
    for name, field in found.uses.items():
        shared.setdefault(field, []).append(name)
    return sorted(map(sorted, shared.values())), found


class TestDivide:
    def test_members_of_a_class_share_a_field(self):
        shared, found = fields("%limit 1\nS -> A S | d\nA -> a | b | c")
        assert shared == [["a", "b", "c"], ["d"]]
        assert found.amounts_taken(["a", "b", "d", "a"]) == {found.uses["a"]: 3, found.uses["d"]: 1}
        assert len(found.parts[found.uses["a"]]) == 3

    def test_not_where_one_is_read_elsewhere_too(self):
        assert fields("%limit 1\nS -> A S | a\nA -> a | b | c")[0] == [["a"], ["b", "c"]]

    def test_not_where_another_limit_tells_them_apart(self):
        priced = fields("%limit 1\n%limit cost <= 3\nS -> A S | d\nA -> a | b | c\na cost=1")
        assert priced[0] == [["a"], ["b", "c"], ["d"]]
        assert fields("%limit 1\n%require 1 a\nS -> A S | d\nA -> a | b | c")[0] == [["a"], ["b", "c"], ["d"]]

    def test_not_where_it_is_not_allowed(self):
        assert fields("%limit 1\nS -> A S | d\nA -> a | b", exchange=False)[0] == [["a"], ["b"], ["d"]]

    def test_uses_of_more_than_one_add_up_but_are_not_counted_together(self):
        text = "%limit 2\n%limit 1 c d\nS -> A S | e\nA -> a | b | c | d"
        assert fields(text)[0] == [["a", "b", "c", "d"], ["e"]]
        assert fields(text, counting=True)[0] == [["a"], ["b"], ["c", "d"], ["e"]]
        made = vectors(Lookahead(CFG.from_string("%limit 2\nS -> A S | d\nA -> a | b")))
        assert made.class_of == {} and made.total_field == 3

    def test_unless_it_is_asked_for_ways_are_not_counted(self):
        cfg = CFG.from_string("%limit 2\nS -> A S | d\nA -> a | b")
        search = Lookahead(cfg)._search
        leaves = search.demands.resources.leaves
        assert len(assign_fields(search.counters, find_ways(search.grammar, leaves), leaves, exchange=True).parts) == 2

    def test_what_is_read_after_a_terminal_that_stands_alone(self):
        assert fields("%limit 1\nS -> L A S | d\nL -> x\nA -> B | a\nB -> b | c")[0] == [
            ["a"],
            ["b", "c"],
            ["d"],
            ["x"],
        ]
        assert fields("%limit 1\nS -> A L S | d\nL -> x\nA -> a | b | c")[0] == [["a", "b", "c"], ["d"], ["x"]]

    def test_when_counting_it_matters_in_how_many_ways_a_terminal_is_read(self):
        text = "%limit 1\nS -> b T | T b | a T\nT -> c"
        assert ["a", "b"] in fields(text)[0]
        assert ["a", "b"] not in fields(text, counting=True)[0]


class TestPacking:
    @given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=6))
    def test_all_fields_are_compared_at_once(self, pairs):
        packing = FieldPacking(len(pairs), 50)
        have = packing.pack_amounts({number: have for number, (have, _) in enumerate(pairs)}) | packing.guard
        take = packing.pack_amounts({number: take for number, (_, take) in enumerate(pairs)})
        assert packing.unpack_amounts(have) == [one for one, _ in pairs]
        assert [packing.unpack_amount(have, number) for number in range(len(pairs))] == [one for one, _ in pairs]
        enough = all(one >= other for one, other in pairs)
        assert ((have - take) & packing.guard == packing.guard) == enough
        if enough:
            assert packing.unpack_amounts(have - take) == [one - other for one, other in pairs]

    def test_more_than_a_field_holds_is_cut(self):
        packing = FieldPacking(2, 5)
        assert (packing.width, packing.most) == (4, 7)
        assert packing.unpack_amounts(packing.pack_amounts({0: 1_000, 1: 2})) == [7, 2]


def vectors(lookahead):
    grammar = lookahead._search.grammar
    leaves = lookahead._search.demands.resources.leaves
    return ClassVectors(grammar.counters, find_ways(grammar, leaves), leaves, exchange=not grammar.has_open_symbols)


@given(tool_grammars(), choices)
@examples(60)
def test_what_is_left_after_some_moves(cfg, picks):
    lookahead = Lookahead(cfg)
    made = vectors(lookahead)
    now, word = walk(lookahead.automaton, picks)
    begin, left = (made.vector_of(one.remaining) for one in (lookahead.automaton.start(), now))
    # Each terminal that was read has taken what it takes, and nothing else has changed.
    assert left == begin - sum(made.pack_reads((name,)) for name in word)
    assert left & made.guard == made.guard
    # A number of the counters with this vector; which members of a class are left does not matter.
    assert made.vector_of(made.some_remaining(left)) == left


def test_a_weight_above_a_bound_is_never_left():
    for most, weight in ((1, 2), (3, 4), (3, 5), (7, 90)):
        lookahead = Lookahead(CFG.from_string(f"%limit cost <= {most}\nS -> a | b\na cost={weight}\nb cost=1"))
        made = vectors(lookahead)
        full = made.vector_of(lookahead.automaton.start().remaining)
        assert (full - made.pack_reads(("b",))) & made.guard == made.guard
        assert (full - made.pack_reads(("a",))) & made.guard != made.guard


def test_the_first_members_of_a_class_are_those_left():
    lookahead = Lookahead(CFG.from_string("%limit 1\n%limit 3 d\nS -> A S | d\nA -> a | b | c"))
    made, counters = vectors(lookahead), lookahead._search.counters
    full = made.vector_of(lookahead.automaton.start().remaining)
    two = made.some_remaining(full - made.pack_reads(("c", "d")))
    assert [counters.can_afford(name, two) for name in "abcd"] == [True, True, False, True]
    once = two - counters.need["a"] - counters.need["d"] - counters.need["d"]
    assert [counters.can_afford(name, once) for name in "abcd"] == [False, True, False, False]
    lookahead = Lookahead(CFG.from_string("%limit 1\nS -> A S | d\nA -> a | b"))
    made, counters = vectors(lookahead), lookahead._search.counters
    both = made.some_remaining(made.vector_of(lookahead.automaton.start().remaining))
    assert counters.can_afford("b", both) and not counters.can_afford("a", both - counters.need["a"])


def test_members_of_a_class_are_counted():
    lookahead = Lookahead(CFG.from_string("%limit 1\n%limit 3 d\nS -> A S | d\nA -> a | b | c"))
    made = vectors(lookahead)
    full = made.vector_of(lookahead.automaton.start().remaining)
    assert set(made.class_of) == {"a", "b", "c"}
    assert made.left(full, made.class_of["a"]) == 3
    assert made.left(full - made.pack_reads(("a",)), made.class_of["b"]) == 2
    assert made.total_left(full) == 6
    assert made.with_total(("a", "d")) == {made.class_of["a"]: 1, made.total_field: 2, 1 - made.class_of["a"]: 1}
