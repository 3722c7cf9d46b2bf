"""ReWOO: workers by their dependencies, labels taken whole."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents import Agent
from formal_llm.agents.actions import Action
from formal_llm.agents.published.rewoo import LLM_WORKER, filled, find_references, levels
from formal_llm.tools import tool
from tests.agents.chats import Scripted
from tests.strategies import examples


def test_e10_is_not_e1() -> None:
    assert find_references("#E1 and #E10, #E1; #E1x #E2.") == ("#E1", "#E10", "#E2")
    assert filled("#E10 - #E1, #E3", {"#E1": "one", "#E10": "ten"}) == "ten - one, #E3"
    # What stands in evidence is not filled in again.
    assert filled("#E1", {"#E1": "#E2", "#E2": "no"}) == "#E2"


@given(st.lists(st.lists(st.integers(1, 6), max_size=3), max_size=6))
@examples(60)
def test_levels_are_the_longest_ways_to_what_an_action_refers_to(given_: list[list[int]]) -> None:
    actions = [
        Action("t", " ".join(f"#E{number}" for number in refers), f"#E{place}")
        for place, refers in enumerate(given_, 1)
    ]

    def depth(place: int) -> int:
        return max((1 + depth(number - 1) for number in given_[place] if number <= place), default=0)

    found = levels(actions)
    assert sorted(place for level in found for place in level) == list(range(len(actions)))
    for number, level in enumerate(found):
        assert level == sorted(level) and all(depth(place) == number for place in level)


def plan(*steps: tuple[str, str]) -> str:
    """A plan as a model writes it."""
    lines = [
        f"[Plan] because [Action Label] #E{number} [Action] {tool_} [Action Input] {given_}"
        for number, (tool_, given_) in enumerate(steps, 1)
    ]
    return "\n".join([*lines, "[Answer]"])


@tool("meet", pure=True)
def meet(text: str) -> str:
    """Waits until the other worker is there."""
    both.wait(10)
    return text.upper()


@tool("join")
def join(text: str) -> str:
    """Gives back what it was given."""
    return f"<{text}>"


both = threading.Barrier(2)


def test_independent_workers_run_at_once_and_results_go_on() -> None:
    steps = [("meet", "a"), ("meet", "b"), ("join", "#E1 + #E2"), (LLM_WORKER, "Say #E3")]
    llm = Scripted([plan(*steps), "said", "the answer"])
    run = Agent("rewoo", llm, [meet, join]).start("q")
    made = run.run_to_end()
    assert made.answer == "the answer"
    assert [(call.label, call.input, call.output) for call in run.calls] == [
        ("#E1", "a", "A"), ("#E2", "b", "B"), ("#E3", "A + B", "<A + B>"), ("#E4", "Say <A + B>", "said"),
    ]  # fmt: skip
    assert [one.text for one in made.segments if one.state == "Act-Lbl"] == ["#E1", "#E2", "#E3", "#E4"]
    assert all(one.source == "forced" for one in made.segments if one.state == "Act-Lbl")
    assert made.corrections == () and len(llm.asked) == 3  # the plan, the worker that is the model, the solver
    assert "4. #E4 = LLM[Say #E3]\nEvidence: said" in llm.asked[-1]


def test_a_reference_to_nothing_is_an_error_on_record() -> None:
    llm = Scripted([plan(("join", "#E2"), ("join", "#E1")), "a"])
    run = Agent("rewoo", llm, [join]).start("q")
    run.run_to_end()
    first, second = run.calls
    assert not first.ok and first.output.startswith("Error: #E2 is the label of no earlier action")
    assert second.ok and second.output == f"<{first.output}>"


def test_no_action_at_all_leaves_the_question_to_the_solver() -> None:
    assert Agent("rewoo", Scripted(["[Answer]", "a"]), [join]).run("q").answer == "a"
