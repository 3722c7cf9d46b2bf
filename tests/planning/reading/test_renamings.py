"""What a symbol only renames."""

from __future__ import annotations

from formal_llm import CFG
from formal_llm.automata.models.repetition import Repetition
from formal_llm.planning.reading.renamings import Renamings


def test_terminals_selections_repetitions_and_nothing() -> None:
    cfg = CFG.from_string("S -> tool A\nA -> B | some(x, y) | ε\nB -> b | c+ | b c")
    found = Renamings(cfg)
    assert found.plain("A") == [("x", "y"), (), ("b",)]
    assert found.repetitions("A") == [Repetition("c", 1, None)]
    assert found.plain("b") == [("b",)]
    assert found.plain("c+") == found.repetitions("c+") == []
