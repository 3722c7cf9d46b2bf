"""What can happen."""

from typing import NamedTuple

import pytest

from formal_llm.control.component import Position
from formal_llm.control.machines import AtLeastMachine, BeforeMachine, Machine
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.control.supervisor import Supervisor


@pytest.mark.parametrize(
    ("kind", "controllable"), [("call", True), ("assistant", True), ("result", False), ("user", False)]
)
def test_the_agent_decides_its_calls_and_texts(kind: str, controllable: bool) -> None:
    assert PlantSymbol(kind, "t", frozenset(), {}).is_controllable is controllable


class Rule(NamedTuple):
    name: str
    machine: Machine
    keys: tuple[str, ...] = ()
    keyed: frozenset[str] = frozenset()


def test_a_plant_needs_no_guard() -> None:
    """Rules are supervised over any symbols, whoever lists them."""
    rules = (
        Rule("a before b", BeforeMachine(("a", "b"), frozenset("a"), frozenset("b"), 1, each=False)),
        Rule("at least 1 b", AtLeastMachine(("b",), 1)),
    )
    start = Position(tuple(rule.machine.start for rule in rules), {}, (), ())
    a, b = (PlantSymbol("call", name, frozenset({name}), {}) for name in "ab")
    for symbols, viable in (((a, b), True), ((b,), False), ((a,), False)):
        supervisor = Supervisor(range(2), rules, Plant(symbols, ("a", "b"), frozenset()), "some", 100)
        assert supervisor.is_viable(start) is viable
