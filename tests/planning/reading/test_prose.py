"""What people and models write around steps, and that none of it hides a step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA
from formal_llm.errors import NotationError
from formal_llm.planning.reading.drafts import DraftSteps, read_draft
from formal_llm.planning.reading.prose import StepPhrases, read_plan_lines
from tests import strategies
from tests.planning.wandering import CHAIN, TOOLS

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


def told(draft: DraftSteps) -> list[list[str]]:
    """The names that each step may be."""
    return [sorted(step.names) for step in draft.steps]


@pytest.mark.parametrize(
    "text",
    [
        "translate caption image", "text = translate(caption(image))", '["translate", "caption", "image"]',
        "Here is the plan:\n1. Use caption on image\n2. Use translate on the result of step 1",
        "```\ntranslate(caption(image))\n```",
    ],
)  # fmt: skip
def test_a_plan_is_read_in_any_form(text: str) -> None:
    draft = read_draft(text, TOOLS)
    assert told(draft) == [["translate"], ["caption"], ["image"]] and not draft.problem and not draft.loose


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("translate foo image", [["translate"], [], ["image"]]),
        ("text = translate(foo(colorize(image)))", [["translate"], [], ["colorize"], ["image"]]),
        ("Sure!\n1. Use caption\n2. Use foo\n3. Use **translate**\nGood luck!", [["translate"], [], ["caption"]]),
        ('["translate", "foo"]', [["translate"], []]),
    ],
)
def test_of_what_is_no_plan_the_steps_are_kept_in_the_order_of_the_word(text: str, names: list[list[str]]) -> None:
    draft = read_draft(text, TOOLS)
    assert told(draft) == names and draft.problem
    assert [step.text for step in draft.steps if not step.names] == ["foo"] or "Use foo" in text


@pytest.mark.parametrize("text", ["", " \n", "I cannot help with that.", "{}", "[[[", "\x00"])
def test_what_says_nothing_has_no_steps_and_says_why(text: str) -> None:
    draft = read_draft(text, CHAIN)
    assert draft.steps == () and draft.problem and not draft


def test_a_plan_without_steps_says_something() -> None:
    draft = read_draft("[]", CFG.from_string("S -> ε | a"))
    assert draft and draft.steps == ()


def test_the_lines_of_a_chart_may_leave_decisions_out() -> None:
    draft = read_draft("1. Have lunch", DAY)
    assert told(draft) == [["eat"]] and draft.loose and not draft.problem
    assert told(read_draft("Hungry? Yes\nhave lunch.", DAY)) == [["yes"], ["eat"]]
    assert told(read_draft("yes\nswim", DAY)) in ([["yes"], []], [["yes"]])


@strategies.examples(60)
@given(st.one_of(strategies.limited_grammars(), strategies.told_automata()), st.text(max_size=40))
def test_any_text_can_be_read(source: CFG | PDA, text: str) -> None:
    draft = read_draft(text, source)
    assert draft.steps or draft.problem or text.strip()
