"""What follows a state: what is free is left out, and what cannot be paid is no state."""

from hypothesis import given

from formal_llm import CFG, Limits, Lookahead
from formal_llm.automata.lookahead.cheapest import INFINITE
from tests.automata.lookahead.judging import parts, reference, sources
from tests.strategies import choices, examples, walk


def begin(lookahead, now=None):
    """(the successors' maker, the normal form of a configuration; None where a filter rules it out)."""
    (state, stack), remaining, needed = lookahead._parts(now or lookahead.automaton.start())
    search = lookahead._search
    demand = search.demands.of(state, stack)
    search._forget()
    if demand.least_steps == INFINITE:
        return search._after, None
    left = search.demands.resources.of(remaining - demand.promised) if remaining >= demand.promised else None
    if left is None or (remaining - demand.promised) & search.counters.guard != search.counters.guard:
        return search._after, None
    needed = search.counters.less(needed, demand.paid)
    return search._after, search._after.normal(demand.pending, demand.unresolved, left, needed)


def done(state):
    """Whether nothing is left to do."""
    return not state.pending and state.unresolved is None and not state.needed


def test_what_is_free_is_left_out() -> None:
    lookahead = Lookahead(CFG.from_string("%limit b 2\nS -> Dear Free\nFree -> a | a Free\nDear -> b | b b"))
    after, normal = begin(lookahead)
    assert normal is not None
    pending = [symbol for symbol, _, _ in after.multisets.items(normal[1].pending)]
    assert len(pending) == 1 and not pending[0].free


def test_what_bounds_cannot_pay_is_no_state() -> None:
    cfg = CFG.from_string("S -> a D D\nD -> b | b b")
    assert begin(Lookahead(cfg, Limits(at_most={"b": 1})))[1] is None
    assert begin(Lookahead(cfg, Limits(at_most={"b": 2})))[1] is not None


@given(sources, choices)
@examples(60)
def test_a_state_can_be_completed_where_one_that_follows_can(source, picks) -> None:
    lookahead = Lookahead(*source)
    now, word = walk(lookahead.automaton, picks)
    after, normal = begin(lookahead, now)
    least = reference(lookahead).moves(*parts(now), word)
    if normal is None:
        assert least == INFINITE
        return
    _, state = normal
    search = lookahead._search
    if not done(state):
        found = [0 if done(following) else search._search(following, 5_000) for _, following in after.of(state)]
        assert (least == INFINITE) == all(one == INFINITE for one in found)


def test_of_what_is_free_as_much_is_kept_as_bounds_may_still_need() -> None:
    for needs in (1, 2, 3, 9):
        lookahead = Lookahead(CFG.from_string(f"%require {needs} a\n%order forward\nS -> F F F F\nF -> a F | a | b"))
        now, _ = walk(lookahead.automaton, [0, 0])
        after, normal = begin(lookahead, now)
        assert normal is not None
        steps, state = normal
        ((symbol, count, _),) = after.multisets.items(state.pending)
        assert symbol.free
        assert count == min(needs, 4)
        assert steps == (4 - count) * symbol.free_steps
