"""Rules in other notations as machines, against what their words say."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

from formal_llm.control.machines import ConfigurationMachine, Machine, TableMachine
from formal_llm.errors import NotationError
from formal_llm.guard import GuardRules
from formal_llm.guard.rules.notations import list_letter_sets


def machine(rule: str) -> Machine:
    (part,) = GuardRules.from_string(f"tools a, b\nrule r: {rule}\n").parts
    return part.machine


def keeps(one: Machine, word: tuple[str, ...]) -> bool:
    state = one.start
    for letter in word:
        state = one.step(state, frozenset((letter,)), None)
        if state is None:
            return False
    return one.is_accepting(state)


@pytest.mark.parametrize(
    ("rule", "kind", "forbidden"),
    [
        ('formula "(not (eventually (next a b)))"', TableMachine, "ab"),
        (
            'grammar """\n%order forward\nS -> A | B S | B\nA -> a | a B | a B S\nB -> b\n"""',
            ConfigurationMachine,
            "aa",
        ),
    ],
)
def test_what_may_not_follow(rule: str, kind: type[Machine], forbidden: str) -> None:
    found = machine(rule)
    assert isinstance(found, kind)
    for length in range(1, 6):
        for word in itertools.product("ab", repeat=length):
            assert keeps(found, word) is (forbidden not in "".join(word))


def test_lines_of_limits() -> None:
    rules = GuardRules.from_string("a: a with cost = n\n%limit 2 a\n%require 1 a\n%limit cost <= 5\n")
    assert [type(part.machine).__name__ for part in rules.parts] == ["AtMostMachine", "TableMachine", "BudgetMachine"]


@pytest.mark.parametrize(
    ("rule", "said"),
    [('grammar "S -> a c"', "c is no letter"), ('formula "(and a b)"', "nothing keeps this formula"),
     ('file "missing.cfg"', "missing.cfg")],
)  # fmt: skip
def test_what_cannot_be_used(rule: str, said: str) -> None:
    with pytest.raises(NotationError, match=said):
        machine(rule)


def test_rules_in_words_load_none_of_this() -> None:
    program = (
        "import sys; from formal_llm.guard.hooks import hook; from formal_llm.guard import Guard, GuardRules; "
        "Guard(GuardRules.from_string('tools a, b\\nrule r: a before b')); "
        "print([name for name in sys.modules if name in ('asyncio', 'formal_llm.guard.rules.notations', "
        "'formal_llm.automata.models.cfg', 'formal_llm.llms', 'formal_llm.agents.compiled')])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_sets_of_letters() -> None:
    found = list_letter_sets(["a", "b", "c"], [("a", "b")], 10)
    assert found is not None
    assert set(found) == {frozenset("a"), frozenset("b"), frozenset("c"), frozenset("ab")}
    assert list_letter_sets(["a", "b", "c"], [("a", "b")], 3) is None
