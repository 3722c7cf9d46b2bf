"""What symbols are called, of whatever automaton."""

from __future__ import annotations

import pytest

from formal_llm import CFG, PDA, Limits, Lookahead, Symbol
from formal_llm.errors import AutomatonError
from formal_llm.planning.plans.vocabulary import Vocabulary, fingerprint_of

LAUNDRY = CFG.from_string('S "the laundry" -> wash S | hang_up\nwash "Wash" "in the machine, at 40 degrees"')


class Bare:
    """An automaton that tells nothing but what it must."""

    def start(self) -> int:
        return 0

    def moves(self, configuration: int) -> list[object]:
        return []

    def step(self, configuration: int, move: object) -> int:
        return 0

    def accepting(self, configuration: int) -> bool:
        return True


@pytest.mark.parametrize("limits", [None, Limits({"wash": 2})])
def test_of_a_grammar(limits: Limits | None) -> None:
    words = Vocabulary(Lookahead(LAUNDRY, limits).automaton)
    assert words.grammar is LAUNDRY
    assert words.start == "S"
    assert (words.label("wash"), words.label("hang_up"), words.label("S")) == ("Wash", "hang up", "the laundry")
    assert words.describe_terminal("wash") == "in the machine, at 40 degrees"
    assert words.describe_terminal("hang_up") == words.describe_terminal("S") == ""
    assert list(words.terminals) == ["wash", "hang_up"]


def test_of_an_automaton_by_hand() -> None:
    words = Vocabulary(PDA([("q", "go_on", None, "r")], start="q", accepting=["r"]))
    assert (words.grammar, words.start, words.label("go_on"), list(words.terminals)) == (None, None, "go on", ["go_on"])


def test_of_an_automaton_of_ones_own() -> None:
    class Labelled(Bare):
        terminals = ("tick_tock",)
        fingerprint = "clock"

        def label(self, name: str) -> str:
            return f"<{name}>"

    assert Vocabulary(Bare()).label("tick_tock") == "tick tock"
    assert list(Vocabulary(Bare()).terminals) == []
    assert Vocabulary(Labelled()).label("tick_tock") == "<tick_tock>"
    assert list(Vocabulary(Labelled()).terminals) == ["tick_tock"]
    assert fingerprint_of(Labelled()) == "clock"
    with pytest.raises(AutomatonError, match="give it an attribute 'fingerprint'"):
        fingerprint_of(Bare())


class Described(Bare):
    """An automaton that tells what is known of its terminals, and their texts by itself."""

    terminals = ("bed", "table")

    def __init__(self) -> None:
        self.symbols = {"bed": Symbol(description="for a night", numbers={"cost": 50})}

    def label(self, name: str) -> str:
        return name.title()


def test_of_an_automaton_of_ones_own_that_knows_its_terminals() -> None:
    words = Vocabulary(Lookahead(Described()).automaton)
    assert (words.label("bed"), words.describe_terminal("bed"), words.describe_terminal("table")) == (
        "Bed",
        "for a night",
        "",
    )
    assert words.symbols["bed"].numbers == {"cost": 50}
