"""What people and models write around steps, and that none of it hides a step."""

from __future__ import annotations

import pytest

from formal_llm import PDA
from formal_llm.errors import NotationError
from formal_llm.planning.reading.prose import StepPhrases, read_plan_lines

STEPS = ("Wash the beef", "Boil the water", "Fry it", "10:00: Eat", "wash_up")
SAYS = StepPhrases(lambda text: text.rstrip(".;,").casefold() in {step.casefold() for step in STEPS}, STEPS)


def read(text: str) -> tuple[list[tuple[int | None, str]], list[str]]:
    lines, skipped = read_plan_lines(text, SAYS, strict=False)
    return [(line.given, line.text) for line in lines], [one.text for one in skipped]


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("Step 2: Wash the beef", 2, "Wash the beef"),
        ("step 2) wash the beef.", 2, "wash the beef."),
        ("**Step 2:** Wash the beef", 2, "Wash the beef"),
        ("2. **Wash the beef**", 2, "Wash the beef"),
        ("(2) *Wash the beef*", 2, "Wash the beef"),
        ("- [x] Wash the beef", None, "Wash the beef"),
        ("2. [ ] `wash_up`", 2, "wash_up"),
        ("• __Boil the water__", None, "Boil the water"),
        ("☐ Boil the water", None, "Boil the water"),
        ("10:00: Eat", None, "10:00: Eat"),
        ("3. 10:00: Eat", 3, "10:00: Eat"),
        ("> 1. Fry it", 1, "Fry it"),
    ],
)
def test_a_step_in_its_dress(text: str, given: int | None, said: str) -> None:
    assert read(text) == ([(given, said)], [])


def test_what_is_left_out_is_told() -> None:
    text = """Sure! Here is my plan:

    ## Dinner
    1. **Wash the beef** (cold is best)
       - be careful
    2. Boil the water — for a minute
    ---
    3. Fry it # at last

    Let me know what you think!"""
    steps, skipped = read("\n".join(line.strip() if "careful" not in line else line for line in text.split("\n")))
    assert steps == [(1, "Wash the beef"), (2, "Boil the water"), (3, "Fry it")]
    assert skipped == [
        "Sure! Here is my plan:", "## Dinner", "(cold is best)", "- be careful", "— for a minute", "# at last",
        "Let me know what you think!",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (
            "1. Wash the beef\n2. Boil teh water\n3. Fry it",
            2,
            "unknown step: Boil teh water .did you mean Boil",
        ),
        ("Wash the beef\nBoil teh water", 2, "unknown step"),
        ("Wash the beef\nThen wait\nFry it", 2, "unknown step"),
        (
            "1. Wash the beef\nThen boil the water.\n2. Fry it",
            2,
            "left out, since it names one .Boil the water",
        ),
        ("1. Wash the beef\nBoil the watr\n2. Fry it", 2, "cannot be left out"),
        ("First boil the water:\n1. Wash the beef", 1, "cannot be left out"),
        ("# Fry it\n1. Wash the beef", 1, "cannot be left out"),
        ("1. Wash the beef (then boil the water)\n2. Fry it", 1, "the remark behind this step names a step"),
        ("1. Wash the beef — boil the watr", 1, "the remark behind this step names a step"),
        ("1. Wash the beef\n\n   - Boil the watr\n2. Fry it", 3, "cannot be left out"),
    ],
)
def test_no_step_is_hidden(text: str, line: int, problem: str) -> None:
    with pytest.raises(NotationError, match=problem) as caught:
        read(text)
    assert caught.value.line == line


def test_only_newlines_part_lines_and_they_are_counted_as_an_editor_does() -> None:
    lines, _ = read_plan_lines("\ufeffWash the beef\r\n\r\n\r\nFry it\n", SAYS, strict=False)
    assert [line.place for line in lines] == [1, 4]
    with pytest.raises(NotationError, match="unknown step"):
        read("Wash the beef\u2028Fry it")


def test_strict_takes_what_is_printed_and_nothing_else() -> None:
    lines, skipped = read_plan_lines("Step 1: anything\n\nStep 2:  blanks \n", SAYS, strict=True)
    assert [(line.given, line.text, line.place) for line in lines] == [(1, "anything", 1), (2, " blanks ", 3)]
    assert skipped == []
    for text in ("1. Fry it", "step 1: Fry it", "Step 1: Fry it\nThat is all."):
        with pytest.raises(NotationError, match="strict reading"):
            read_plan_lines(text, SAYS, strict=True)


DAY = PDA.from_string("""
    %start s
    %accept e
    s, yes, ε -> p, ε "Yes" decide "Hungry?"
    s, no, ε -> e, ε "No" decide "Hungry?"
    p, eat, ε -> e, ε "Have lunch"
""")
