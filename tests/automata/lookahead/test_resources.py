"""Resources against plain counts of what is left."""

from hypothesis import given

from formal_llm import CFG, Limits, Lookahead
from tests.strategies import choices, examples, tool_grammars, walk


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
        for times in (1, 2, 3):
            amounts = resources.pack_need(lookahead._search.counters.need.get(name, 0)) * times
            total = sum(resources.unpack_amounts(amounts))
            enough = all(
                have >= take
                for have, take in zip(resources.unpack_amounts(left), resources.unpack_amounts(amounts), strict=True)
            )
            # The field for ends is looked at too: it never has more than the others together.
            if resources.covers_least(left, amounts, total):
                assert enough
            elif enough:
                assert times > 1 or not lookahead._search.counters.affords(name, now.remaining)


def test_lower_bounds_need_their_terminals():
    lookahead = Lookahead(CFG.from_string("S -> a S | b S | c"), Limits({"a": 1, "b": 0}, {"a": 1, "b": 1}))
    resources, start = lookahead._search.demands.resources, lookahead.automaton.start()
    assert not resources.covers_due(resources.resources_left(start.remaining), start.needed)
    without_b = lookahead._search.counters.pay_for("b", start.needed)
    assert resources.covers_due(resources.resources_left(start.remaining), without_b)


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


def test_each_upper_bound_has_the_place_where_it_is_counted():
    cfg = CFG.from_string("%limit a 1\n%limit b 2\n%limit c 3\n%require 2 b\nS -> a S | b S | c S | d")
    lookahead = Lookahead(cfg)
    resources, counters = lookahead._search.demands.resources, lookahead._search.counters
    places = []
    for number, (bound, (shift, _)) in enumerate(zip(counters.bounds, counters.fields, strict=True)):
        if bound.most is not None:
            places.append(resources.resource_of_bound(number))
            amounts = resources.unpack_amounts(resources.pack_need(1 << shift))
            assert [place for place, amount in enumerate(amounts) if amount] == [resources.resource_of_bound(number)]
    assert len(places) == 3 and len(set(places)) == resources._count > 1


def test_each_symbol_that_is_not_free_has_an_end_of_its_own():
    """Two days, each any number of ``a`` and then ``b`` or ``c``; the free symbol comes before them."""
    cfg = CFG.from_string(
        "%limit b 1\n%limit c 1\n%limit a 3\nS -> Free Day Day\nFree -> x | x Free\nDay -> a Day | b | c"
    )
    resources = Lookahead(cfg)._search.demands.resources
    least = {max(dict(resources.list_taken(packed)).values(), default=0) for packed in resources.least.values()}
    assert least == {0, 1, 2}
    ends = {packed >> resources._top - resources._width & resources._most for packed in resources.least.values()}
    assert ends == {0, 1, 2}
