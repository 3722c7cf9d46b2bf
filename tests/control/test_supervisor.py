"""The rules to blame are as few as can be."""

from __future__ import annotations

from typing import NamedTuple

from formal_llm.control.component import Position
from formal_llm.control.machines import Machine, build_at_least, build_before
from formal_llm.control.plant import Plant, PlantSymbol
from formal_llm.control.supervisor import Supervisor, describe_way
from formal_llm.guard import Call, Guard, GuardRules


def groups(text: str) -> list[list[int]]:
    ((_, supervisor),) = Guard(GuardRules.from_string(text)).list_supervisors(frozenset())
    return [list(search.component.parts) for search in supervisor.searches]


def test_rules_that_share_what_can_happen_are_looked_at_together() -> None:
    four = "tools a, b, c, d\n"
    assert groups(f"{four}rule r: d before c\nrule s: a before b\nrule t: never c after d\n") == [[0, 2], [1]]
    assert groups(f"{four}rule r: a before b\nrule s: c before d\nrule t: b before c\n") == [[0, 1, 2]]
    # A call and its result are together; a result and a text are not, nor are two users of different rules apart.
    assert groups("a: a\nb: b\nc: a.result\nd: d\nrule r: a before b\nrule s: at least 1 c\nrule t: never d\n") == [
        [0, 1],
        [2],
    ]
    assert groups('a: a\nu: user\nv: user[text contains "x"]\nrule r: never a\nrule s: never u\nrule t: never v\n') == [
        [0],
        [1, 2],
    ]


def test_of_rules_that_are_to_blame_alike_the_first_are_named() -> None:
    text = "tools a, b\nrule r: never a after b\nrule s: at least 1 a\nrule t: at least 2 a\n"
    assert Guard(GuardRules.from_string(text)).start().check(Call("b")).rules == ("r", "s")


def test_what_is_not_known_of_one_group_is_not_known_of_all() -> None:
    sums = "a: a with cost = amount\nrule n: at least 2 a\nrule s: budget cost <= 5\n"  # nothing says the least of a
    for others in (f"c: c\nd: d\nrule m: c before d\n{sums}", f"{sums}c: c\nd: d\nrule m: c before d\n"):
        guard = Guard(GuardRules.from_string(others))
        ((_, supervisor),) = guard.list_supervisors(frozenset())
        position = guard.start().position
        assert supervisor.is_viable(position) is None
        assert {supervisor.is_viable(position, [one]) for one in supervisor.searches} == {None, True}


def test_a_way_in_words() -> None:
    def symbol(kind: str, tool: str, *letters: str) -> PlantSymbol:
        return PlantSymbol(kind, tool, frozenset(letters), {})

    way = [symbol("call", "pay", "z", "p"), symbol("call", "log"), symbol("result", "pay", "y", "ok"),
           symbol("result", "pay"), symbol("user", "", "u", "yes"), symbol("assistant", "")]  # fmt: skip
    assert describe_way(way) == ("p", "log", "ok", "pay.result", "u", "assistant")
    shown = {"p": "pay.large", "u": "agreement"}
    assert describe_way(way, lambda symbol, name: shown.get(name, symbol.tool)) == (
        "pay.large", "log", "pay", "pay.result", "agreement", "assistant",
    )  # fmt: skip


class Rule(NamedTuple):
    machine: Machine
    keys: tuple[str, ...] = ()
    keyed: frozenset[str] = frozenset()


def test_a_plant_needs_no_guard() -> None:
    """Rules are supervised over any symbols, whoever lists them."""
    rules = (
        Rule(build_before(("a", "b"), frozenset("a"), frozenset("b"), 1, each=False)),
        Rule(build_at_least(("b",), 1)),
    )
    start = Position(tuple(rule.machine.start for rule in rules), {}, (), ())
    a, b = (PlantSymbol("call", name, frozenset({name}), {}) for name in "ab")
    for symbols, viable in (((a, b), True), ((b,), False), ((a,), False)):
        supervisor = Supervisor(range(2), rules, Plant(symbols, ("a", "b"), frozenset()), "some", 100)
        assert supervisor.is_viable(start) is viable
