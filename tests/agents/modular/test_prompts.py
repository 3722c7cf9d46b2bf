"""Prompts: what each model is shown, and that all of it is bounded."""

from __future__ import annotations

from formal_llm.agents.modular import Memory, Scratchpad, Step, calculate, respond, search
from formal_llm.agents.modular.prompts import (
    call_messages,
    plan_messages,
    plan_schema,
    summary_messages,
    summary_schema,
)
from formal_llm.llms.schemas import check_schema, problem_in

MODULES = [search(), calculate(), respond()]


def test_the_planner_sees_tools_and_no_signatures() -> None:
    system, user = plan_messages("how long?", Memory(), Scratchpad(), MODULES, ("search", "respond"), 500)
    assert "- search: Search a library" in system.content and "query" not in system.content
    assert (
        user.content
        == "Request: how long?\n\nSteps so far:\nnone yet\n\nTools that may be chosen now: search, respond."
    )
    assert (
        "The next step uses respond."
        in plan_messages("x", Memory(), Scratchpad(), MODULES, ("respond",), 500)[1].content
    )


def test_the_caller_sees_its_tool_and_no_others() -> None:
    system, user = call_messages(MODULES[1], "r", "half of 3", Memory().plus("a", "b"), Scratchpad())
    assert "calculate: Calculate an expression" in system.content and "search" not in system.content
    assert user.content.startswith("The conversation so far:\nUser: a\nAnswer: b\n\nRequest: r")
    assert user.content.endswith("Task: half of 3")


def test_schemas() -> None:
    for tools in (("a",), ("a", "b")):
        check_schema(plan_schema(tools, 500))
    value = {"context_summary": "", "thoughts": "", "task": "t"}
    assert problem_in(value, plan_schema(("a",), 500)) is None
    assert problem_in({**value, "task": ""}, plan_schema(("a",), 500)) is not None
    assert problem_in({**value, "tool": "c"}, plan_schema(("a", "b"), 500)) is not None
    check_schema(summary_schema(9))


def test_what_is_huge_is_shown_in_part() -> None:
    huge = "x" * 1_000_000
    pad = Scratchpad((Step("search", huge, huge),))
    memory = Memory().plus(huge, huge)
    for messages in (
        plan_messages(huge, memory, pad, MODULES, ("search", "respond"), 500),
        call_messages(MODULES[0], huge, "t", memory, pad),
        summary_messages(huge, huge, 100, 1_000),
    ):
        assert sum(len(message.content) for message in messages) < 20_000
        assert "characters left out" in messages[1].content
