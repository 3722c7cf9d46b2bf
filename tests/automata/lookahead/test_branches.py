"""Branches judged at once, against each of them looked at by itself."""

from hypothesis import assume, given

from formal_llm import CFG, Limits, Lookahead
from formal_llm.automata.lookahead.branches import Branch
from formal_llm.automata.models.automaton import EMPTY, Configuration, Stack
from tests.automata.lookahead.judging import sources
from tests.strategies import choices, examples, walk


def branches_at(lookahead, top):
    """Every single move at a (state, stack top), and to stop where that is possible."""
    pda = lookahead.pda
    alone = Configuration(top[0], EMPTY if top[1] is None else Stack(top[1], EMPTY))
    moves = pda.moves(alone)
    found = [Branch(1, () if m.read is None else (m.read,), pda.step(alone, m)) for m in moves]
    return moves, [Branch(0, (), alone), *found] if pda.accepting(alone) else found


@given(sources, choices)
@examples(150)
def test_they_are_those_after_which_a_plan_may_be_finished(source, picks):
    lookahead = Lookahead(*source)
    now, _ = walk(lookahead.automaton, picks)
    top = lookahead.top(now)
    assume(top is not None and lookahead.completable(now).possible)
    moves, found = branches_at(lookahead, top)
    branches = lookahead.branches(top, found)
    while branches.is_stale:
        branches = lookahead.branches(top, found)
    able, reach, *_ = lookahead.able(branches, now)
    stops = [bool(lookahead.automaton.accepting(now))] if len(found) > len(moves) else []
    allowed = set(lookahead.automaton.moves(now))
    after = [lookahead.automaton.step(now, move) if move in allowed else None for move in moves]
    verdicts = [None if one is None else lookahead.completable(one) for one in after]
    expected = [*stops, *(verdict is not None and verdict.possible for verdict in verdicts)]
    assert [bool(able >> number & 1) for number in range(len(found))] == expected
    _, deeper = lookahead.signature(now)
    assert reach + deeper >= max((1 + v.steps for v in verdicts if v is not None and v.steps is not None), default=0)


@given(sources, choices)
@examples(80)
def test_a_leap_leads_where_its_moves_lead(source, picks):
    lookahead = Lookahead(*source)
    now, _ = walk(lookahead.automaton, picks)
    top = lookahead.top(now)
    assume(top is not None)
    moves, found = branches_at(lookahead, top)
    leaps = lookahead.branches(top, found).leaps[len(found) - len(moves) :]
    allowed = set(lookahead.automaton.moves(now))
    for move, leap in zip(moves, leaps, strict=True):
        if leap is not None and move in allowed:
            assert lookahead.leap(now, leap) == lookahead.automaton.step(now, move)


def test_what_lies_below_counts():
    lookahead = Lookahead(CFG.from_string("S -> T a | T b\nT -> a | b"), Limits(default=1))
    now, _ = walk(lookahead.automaton, [0, 0])  # T on a
    moves, found = branches_at(lookahead, lookahead.top(now))
    assert [move.push for move in moves] == [("a",), ("b",)]
    assert lookahead.able(lookahead.branches(lookahead.top(now), found), now)[0] == 0b10
