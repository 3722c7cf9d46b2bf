"""Rules apart where they share nothing."""

from __future__ import annotations

from formal_llm.agents.guard import Guard, GuardRules


def test_component() -> None:
    rules = GuardRules.from_string(
        "tools a, b, c, d\nrule r: a before b\nrule s: c before d\nrule t: never b after a\n"
    )
    ((_, supervisor),) = Guard(rules).tiers(frozenset())
    assert [list(one.component.parts) for one in supervisor.lookouts] == [[0, 2], [1]]
