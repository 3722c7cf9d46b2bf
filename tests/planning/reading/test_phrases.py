"""What lines may say."""

from __future__ import annotations

import pytest

from formal_llm import CFG, PDA
from formal_llm.errors import NotationError
from formal_llm.planning.plans.vocabulary import Vocabulary
from formal_llm.planning.reading.phrases import MovePhrases, Naming, ProductionPhrases
from formal_llm.planning.reading.prose import StepLine

PDA_ = PDA.from_string(
    '%start p\n%accept r\n%decide p "Wet?"\np, yes, ε -> q, ε\np, no, ε -> r, ε\nq, dry, ε -> r, ε "9:00: Dry it."\n'
    'q, wait, ε -> q, ε "9:00: dry it"\nyes "Yes"\ndry "Dry"'
)


def told(text: str, *, strict: bool = False) -> set[str | None]:
    return {move.read for move in MovePhrases(PDA_).find_transitions(text, strict=strict)}


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("9:00: Dry it.", {"dry"}), ("9:00: dry it", {"wait"}), ("9:00:  DRY it", {"dry", "wait"}),
        ("Use dry", {"dry"}), ("wait", {"wait"}), ("Wet? Yes", {"yes"}), ("wet: no", {"no"}), ("yes", {"yes"}),
        ("10:00: Dry it.", set()),
    ],
)  # fmt: skip
def test_to_the_letter_before_all_else(text: str, reads: set[str]) -> None:
    assert told(text) == reads


def test_a_machine_says_what_is_printed() -> None:
    assert told("9:00: Dry it.", strict=True) == {"dry"}
    assert told("dry", strict=True) == told("Wet? Yes", strict=True) == set()


def test_a_label_goes_before_a_name_but_is_not_mistaken_for_one() -> None:
    cfg = CFG.from_string('S -> a b\na "b"\nb "c"')
    naming = Naming(Vocabulary(PDA.from_cfg(cfg)), cfg.terminals)
    assert naming.find_terminals("Use b") == ("a",)
    naming.check_line(StepLine(1, 1, "Step 1: Use b", "Use b", 1, printed=True))
    with pytest.raises(NotationError, match="'b' is the label of a and the name of b"):
        naming.check_line(StepLine(1, 1, "b", "b"))


def test_whole_steps_of_a_grammar() -> None:
    says = ProductionPhrases(
        CFG.from_string('S -> pan some(salt, oil) "Fry it" | join S S | x\nx "salt and oil"')
    ).collect_phrases()
    for text in ("Fry it: salt, oil", "fry it.", "Use join on the result of step 1 and salt and oil", "join", "x"):
        assert says.whole(text), text
    for text in ("Fry it: sugar", "Use join on sugar", "Use join on", "Fry", "Use join on x and", "join x"):
        assert not says.whole(text), text
