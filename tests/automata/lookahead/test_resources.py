"""Resources against plain counts of what is left."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Lookahead
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.resources import ClassVectors, FieldPacking, assign_fields
from formal_llm.automata.lookahead.ways import find_leaves, find_ways
from formal_llm.automata.models.pda import LOOP
from tests.strategies import choices, examples, limited_grammars, tool_grammars, walk


@given(tool_grammars(), choices)
@examples(60)
def test_what_is_left_is_the_sum_over_interchangeable_terminals(cfg, picks):
    lookahead = Lookahead(cfg)
    resources = lookahead._search.demands.resources
    now, word = walk(lookahead.automaton, picks)
    begin = resources.resources_left(lookahead.automaton.start().remaining)
    left = resources.resources_left(now.remaining)
    need = lookahead._search.counters.need
    assert left == begin - sum(resources.pack_need(need.get(name, 0)) for name in word)
    assert left & resources.guard == resources.guard
    upper = [bound for bound in lookahead.bounds if bound.most is not None]
    used = sum(bound.weights.get(name, 0) for bound in upper for name in word)
    assert sum(resources.unpack_amounts(left)) == sum(bound.most for bound in upper) - used


@given(tool_grammars(), choices)
@examples(60)
def test_what_is_left_covers_just_what_it_is_enough_for(cfg, picks):
    lookahead = Lookahead(cfg)
    resources = lookahead._search.demands.resources
    now, _ = walk(lookahead.automaton, picks)
    left = resources.resources_left(now.remaining)
    for name in cfg.terminals:
        one = resources.pack_need(lookahead._search.counters.need.get(name, 0))
        taken = resources.unpack_amounts(one)
        for times in (1, 2, 3, 40, 1 << resources._width):
            amounts, total = one * times, sum(taken) * times
            enough = all(have >= take * times for have, take in zip(resources.unpack_amounts(left), taken, strict=True))
            # The field for ends is looked at too: it never has more than the others together.
            if resources.covers_least(left, amounts, total):
                assert enough
            elif enough:
                assert times > 1 or not lookahead._search.counters.affords(name, now.remaining)


@given(tool_grammars() | limited_grammars(), choices)
@examples(60)
def test_what_lower_bounds_of_terminals_need_is_added_up_by_resource(cfg, picks):
    lookahead = Lookahead(cfg)
    resources, counters = lookahead._search.demands.resources, lookahead._search.counters
    moments = [lookahead._split_configuration(walk(lookahead.automaton, some)[0]) for some in (picks, [])]
    for (_, remaining, _), (_, _, needed) in product(moments, moments):
        left = resources.resources_left(remaining)
        total = Counter()
        for bound, _, due in counters.open_bounds(needed):
            if bound.terminal is not None:
                one = resources.unpack_amounts(resources.pack_need(counters.need.get(bound.terminal, 0)))
                total.update({number: due * amount for number, amount in enumerate(one)})
        enough = all(have >= total[number] for number, have in enumerate(resources.unpack_amounts(left)))
        for _ in range(2):  # the second answer is remembered
            assert resources.covers_due(left, needed) == enough


@given(tool_grammars() | limited_grammars())
@examples(60)
def test_each_symbol_that_is_not_free_takes_an_end_and_no_more_than_any_of_its_ways(cfg):
    lookahead = Lookahead(cfg)
    resources = lookahead._search.demands.resources
    grammar = lookahead._search.grammar

    def fields(packed):
        return [packed >> place * resources._width & resources._most for place in range(resources._count + 2)]

    for index, ways in resources.ways.items():
        if index in resources.leaves or index not in resources.least:
            continue
        *_, ends, total = least = fields(resources.least[index])
        assert (ends >= 1) == (not grammar.symbols[index].is_free)
        assert total >= max(least[:-1], default=0) and total == resources.least_total[index]
        for way in ways:
            children = [fields(resources.least[child]) for child in way.children if child in resources.least]
            taken = [sum(amounts) for amounts in zip(fields(way.need), *children, strict=True)]
            assert all(one <= other for one, other in zip(least, taken, strict=True))


@given(tool_grammars(), choices)
@examples(30)
def test_what_a_packed_need_takes(cfg, picks):
    lookahead = Lookahead(cfg)
    resources, need = lookahead._search.demands.resources, lookahead._search.counters.need
    _, word = walk(lookahead.automaton, picks)
    total = resources.pack_need(0)
    for name in word:
        total += resources.pack_need(need.get(name, 0))
    for packed in (total, *(way.need for ways in resources.ways.values() for way in ways)):
        amounts = enumerate(resources.unpack_amounts(packed))
        assert [*resources.list_taken(packed)] == [(number, amount) for number, amount in amounts if amount]


@given(tool_grammars() | limited_grammars())
@examples(60)
def test_a_way_takes_what_its_terminals_take(cfg):
    lookahead = Lookahead(cfg)
    resources, need = lookahead._search.demands.resources, lookahead._search.counters.need
    dear = {
        name
        for one in lookahead.bounds
        for name, weight in one.weights.items()
        if one.most is not None and weight > one.most
    }
    for ways in resources.ways.values():
        for way in ways:
            if dear.isdisjoint(way.reads):
                assert way.need == sum(resources.pack_need(need.get(name, 0)) for name in way.reads)


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


def test_interchangeable_terminals_are_read_by_one_way():
    for more, count in (("", 2), ("%require 1 b\n", 3), ("%limit 2 b\n", 2)):
        search = Lookahead(CFG.from_string(f"%limit 1\n{more}S -> a S | b S | c"))._search
        assert max(map(len, search.demands.resources.ways.values())) == count
