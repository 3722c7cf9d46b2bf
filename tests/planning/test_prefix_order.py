"""Whatever a person reads of rules with ``%order prefix`` is in the order of carrying out."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from formal_llm import CFG
from formal_llm.authoring import Example, read_plan_examples, write_examples
from formal_llm.authoring.questions import find_differences, sample_plans
from formal_llm.automata.languages.nearest_words import turn_edits
from formal_llm.planning.checking.texts import verify_text
from formal_llm.planning.checking.verify import Verifier, verify
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.planning.reading import read_plan_text
from tests.automata.languages.editing import apply_edits
from tests.cli.inside import invoke

DESK = CFG.from_string("%order prefix\n%limit 2 saw\nDesk -> build Board Board | glue Board\nBoard -> saw Board | wood")


def test_a_word_is_written_as_steps_and_read_back() -> None:
    word = ("build", "saw", "wood", "saw", "wood")
    assert write_word(word, "prefix") == "wood / saw / wood / saw / build"
    assert read_plan_text(write_word(word, "prefix"), DESK) == word == read_plan_text(" ".join(word), DESK)


def test_texts_name_steps_rather_than_productions() -> None:
    made = CFG.from_string('%order prefix\nTea -> pour Water "Make tea"\nWater -> kettle water "Boil it"')
    assert read_plan_text("water / kettle / pour", made) == ("pour", "kettle", "water")


def test_places_and_edits_are_those_of_the_steps() -> None:
    draw, verifier = random.Random(1), Verifier(DESK)
    for _ in range(100):
        word = tuple(draw.choices(["build", "glue", "saw", "wood"], k=draw.randrange(6)))
        found = verifier.verify(word)
        steps = word[::-1]
        if place := re.search(r"^(\w+) cannot stand at place (\d+)", found.reason):
            assert steps[int(place[2]) - 1] == place[1] == word[found.position or 0]
        assert found.nearest is not None
        edits = turn_edits(found.edits, len(word), "prefix")
        assert apply_edits(edits, steps) == found.nearest[::-1]
        if not found.valid:
            assert str(found).splitlines()[1:] == [
                f"nearest valid plan: {write_word(found.nearest, 'prefix')}", *(f"  {edit}" for edit in edits)
            ]  # fmt: skip


def test_ends_are_beginnings() -> None:
    assert verify(["build", "wood"], DESK).reason == "it begins too late; saw or wood could come before"
    reason = verify(["glue", "wood", "wood"], DESK).reason
    assert reason == "wood cannot stand at place 1; the plan must begin after it"


def test_changes_in_lines() -> None:
    lines = ["saw on wood", *(f"saw on the result of step {n}" for n in (1, 2)), "glue on the result of step 3"]
    found = verify_text("\n".join(f"Use {line}" for line in lines), Verifier(DESK))
    problem = "no plan has this step there after line 2, because of %limit 2 saw; "
    assert found.reason.startswith(f"line 3 (Use saw on the result of step 2): {problem}")
    assert found.changes == ("take out saw",)
    cake = CFG.from_string("%order prefix\nCake -> bake Cake | ice Cake | dough\n%require 1 ice")
    found = verify_text("Use bake on dough", Verifier(cake))
    assert found.changes in [("insert ice before bake",), ("insert ice at the end",), ("replace bake by ice",)]


def test_examples_are_shown_and_kept_so() -> None:
    other = CFG.from_string("%order prefix\nDesk -> build Board Board\nBoard -> saw Board | wood")
    shown = list(find_differences(DESK, other, "the old rules"))
    assert [" ".join(one.labels) for one in shown] == ["wood glue", "wood wood saw saw saw build"]
    for one in [*shown, *sample_plans(DESK, 6)]:
        example = Example(one.plan, one.allowed, order=one.order)
        assert str(example) == " / ".join(one.labels)
        assert read_plan_examples(write_examples([example]), DESK)[0].plan == one.plan
        assert example.satisfied_by(DESK)
    forward = CFG.from_string("Desk -> wood glue")
    assert Example(("glue", "wood"), True, order="prefix").satisfied_by(forward)
    assert not list(find_differences(DESK, forward, "the old rules"))


@pytest.fixture
def desk(tmp_path: Path) -> str:
    (tmp_path / "desk.cfg").write_text(str(DESK), encoding="utf-8")
    return str(tmp_path / "desk.cfg")


def test_drawn_plans(desk: str) -> None:
    done = invoke("check", desk, "--sample", "5")
    assert sum(line.strip().startswith("wood / ") for line in done.stdout.splitlines()) == 5, done.stdout
