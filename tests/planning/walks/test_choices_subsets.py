"""Finding the sets that can be chosen of a selection; that they are the right ones is tested with the choices."""

from __future__ import annotations

import math

from formal_llm import CFG
from formal_llm.planning.walks.choices import _TRIES, ChoiceTable, iter_subsets


def test_each_set_comes_once_with_moves_that_lead_where_it_says() -> None:
    table = ChoiceTable.of(CFG.from_string("S -> some(a, b, c)\n%require 1 b"))
    start = table.after(table.automaton.start(), table.at(table.automaton.start(), math.inf).choices[0])
    while table.lookahead.selection(start) is None:
        start = table.automaton.step(start, table.automaton.moves(start)[0])
    found = list(iter_subsets(table.lookahead, table._can_finish, start, frozenset("a"), frozenset("abc"), math.inf))
    assert [sorted(one.names) for one in found if one] == [["a", "b"], ["a", "b", "c"]]
    for one in found:
        assert one is not None
        now = start
        for move in one.moves:
            now = table.automaton.step(now, move)
        assert now == one.after


def test_who_waits_long_for_one_more_set_is_told() -> None:
    # The lookahead that knows nothing lets all ways through: only at their ends they turn out to lead nowhere.
    names = ", ".join(f"t{number}" for number in range(14))
    costs = "\n".join(f"t{number} cost={2**number}" for number in range(14))  # no two ways leave the same
    table = ChoiceTable.of(CFG.from_string(f"%limit cost <= 99999\nS -> some({names}) x\n{costs}"), lookahead="off")
    start = table.automaton.start()
    while table.lookahead.selection(start) is None:
        start = table.automaton.step(start, table.automaton.moves(start)[0])
    counted = 0

    def finishes(configuration: object, steps: float) -> bool:
        nonlocal counted
        counted += 1
        return configuration.inner.stack.top != "x"  # type: ignore[attr-defined]

    found = iter_subsets(table.lookahead, finishes, start, frozenset(), frozenset(names.split(", ")), math.inf)
    assert next(found) is None
    assert counted <= _TRIES + 8 * 14
