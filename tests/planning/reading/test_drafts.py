"""Reading drafts: legal ones as any plan is read, others as far as they can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA
from formal_llm.planning.reading.drafts import DraftSteps, is_silent, read_draft
from tests import strategies
from tests.planning.wandering import CHAIN, TOOLS

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
    draft = read_draft(text, TOOLS, order="backward")
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
    draft = read_draft(text, TOOLS, order="backward")
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


def test_what_may_stand_between_the_steps_of_a_draft() -> None:
    silent, *_ = PDA.from_string("%start s\n%accept s\ns, ε, ε -> s, ε").transitions
    yes, _, eat = DAY.transitions
    moves = (yes, eat, silent)
    assert [is_silent(move, loose=True) for move in moves] == [True, False, True]
    assert [is_silent(move, loose=False) for move in moves] == [False, False, True]


@strategies.examples(60)
@given(st.one_of(strategies.limited_grammars(), strategies.told_automata()), st.text(max_size=40))
def test_any_text_can_be_read(source: CFG | PDA, text: str) -> None:
    draft = read_draft(text, source, order="backward")
    assert draft.steps or draft.problem or text.strip()
