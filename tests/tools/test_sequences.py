"""Plans that are sequences are carried out, too: a step's tool finds its arguments among inputs and earlier results."""

from __future__ import annotations

from typing import Any

import pytest

from formal_llm import CFG, PDA, Behaviour, Flowchart, Planner
from formal_llm.automata import Source
from formal_llm.automata.notation.files import read_rules_text
from formal_llm.errors import ToolError, ToolkitError
from formal_llm.llms import ScriptedLLM
from formal_llm.tools import Executor, Toolkit, tool

LOG: list[str] = []


@tool
def look(host: str) -> dict[str, int]:
    LOG.append("look")
    return {"risk": len(host)}


@tool
def block(host: str, look: dict[str, int], hours: int = 1) -> bool:
    LOG.append("block")
    return look["risk"] * hours > 3


@tool(returns="text")
async def note(host: str, look: dict[str, int]) -> str:
    LOG.append("note")
    return f"{host}: {look['risk']}"


@tool
def send(text: str) -> str:
    LOG.append("send")
    return f"sent {text}"


KIT = Toolkit([look, block, note, send])

CHART = """flowchart TD
  start((begin)) --> look[Look the host up]
  look --> bad{Is it bad?}
  bad -->|yes| block[Block it]
  bad -->|no| note
  block --> note[Write a note]
  note --> send[Send it]
  send --> fin((end))
"""


GRAMMAR = CFG.from_string("Plan -> look Act note send\nAct -> block | ε")
RULES: dict[str, Source] = {
    "flowchart": Flowchart.from_string(CHART),
    "grammar": GRAMMAR,
    "behaviour": Behaviour.from_string(
        "(define b (:states look block note send) (:behavior (next look block note send)))"
    ),
    "automaton": PDA(
        [(0, "look", None, 1, ()), (1, "block", None, 2, ()), (2, "note", None, 3, ()), (3, "send", None, 4, ())],
        start=0, accepting=[4],
    ),
    "automaton of a grammar": PDA.from_cfg(GRAMMAR),
    "sentences": read_rules_text(
        "steps: look, block, note, send\nin this order: look, block, note, send\nexactly 4 steps\nlast send\n"
        "at least 1 block\nat least 1 note\nat least 1 look", "b.rules",
    ),
    "prefix automaton": PDA(
        [(0, "send", None, 1, ()), (1, "note", None, 2, ()), (2, "block", None, 3, ()), (3, "look", None, 4, ())],
        start=0, accepting=[4], order="prefix",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*RULES])
def test_each_notation_is_carried_out(name: str) -> None:
    rules = RULES[name]
    KIT.check(rules)
    plan = Planner(rules, "test:first").plan("x")
    LOG.clear()
    result = KIT.run(plan, {"host": "web-7"})
    assert result.output == "sent web-7: 5"
    assert LOG == [step.name for step in plan.steps] == ["look", "block", "note", "send"]
    assert {step.state for step in result.steps} <= {"executed", "decided"}
    with pytest.raises(ToolkitError, match="no tool for the step send"):
        KIT.without("send").check(rules)
    assert KIT.without("block").limits(rules).at_most == {"block": 0}


def first_plan(text: str) -> Any:
    return Planner(CFG.from_string(text), "test:first").plan("x")


def test_arguments_by_name_come_first_then_the_only_one_of_the_kind() -> None:
    @tool
    def clean(text: str) -> str:
        return text.strip()

    @tool
    def count(words: list[str]) -> int:
        return len(words)

    @tool(returns="words")
    def split(clean: str) -> list[str]:
        return clean.split()

    kit = Toolkit([clean, split, count, look, block])
    assert kit.run(first_plan("P -> clean split count"), {"text": " a b "}).output == 2
    assert kit.run(first_plan("P -> clean split split count"), {"text": " a b "}).output == 2
    assert kit.run(first_plan("P -> clean"), {"something": " a "}).output == "a"
    # A parameter with a default is set by its name alone.
    assert kit.run(first_plan("P -> look block"), {"host": "a", "number": 9}).output is False
    assert kit.run(first_plan("P -> look block"), {"host": "a", "hours": 9}).output is True


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        ({}, r"step 1 \(look\): no value for host: there is nothing, no text; name an input host, or the result of a "),
        ({"a": "x", "b": "y"}, r"step 1 \(look\): no value for host: a, b would fit; name an input host"),
        ({"host": 7}, r"step 1 \(look\): no value for host: it is a value of kind int, not text"),
        ({"host": ("a", "b")}, r"step 1 \(look\): no value for host: host would fit"),
        ({"host": "a", "hours": "x"}, r"step 2 \(block\): no value for hours: it is a value of kind text, not int"),
    ],
)
def test_missing_and_ambiguous_arguments_are_told_before_the_first_call(inputs: Any, problem: str) -> None:
    LOG.clear()
    with pytest.raises(ToolkitError, match=problem):
        KIT.run(first_plan("P -> look block"), inputs)
    with pytest.raises(ToolkitError, match=r"no tool for the step lok \(did you mean look\?\)"):
        KIT.run(first_plan("P -> lok"), inputs)
    assert LOG == []


def test_a_model_writes_the_arguments_that_are_not_found() -> None:
    llm = ScriptedLLM(texts=['{"hours": "x"}', '{"hours": 2}', "{}", "{}"])

    @tool
    def book(look: dict[str, int], hours: int) -> int:
        """Book somebody."""
        return look["risk"] * hours

    plan = first_plan("P -> look book")
    executor = Executor(Toolkit([look, book]), arguments=llm)
    result = executor.run(plan, {"host": "web"})
    assert result.output == 6
    assert len(llm.requests) == 2
    assert '- look: {"risk":3}' in llm.requests[0].prompt
    with pytest.raises(ToolError, match=r"book .*got no arguments from the model") as caught:
        executor.run(plan, {"host": "web"})
    assert caught.value.reason == "arguments"


def test_a_step_that_fails_stops_what_comes_after_it() -> None:
    @tool("note", returns="text")
    def refuse(host: str) -> str:
        raise PermissionError("the manager says no")

    LOG.clear()
    with pytest.raises(ToolError, match=r"note \(step 2\) failed") as caught:
        Toolkit([look, refuse, send]).run(first_plan("P -> look note send"), {"host": "a"})
    assert LOG == ["look"]
    assert [step.state for step in caught.value.result.steps] == ["executed", "failed", "not run"]


def test_a_plan_that_is_empty_gives_nothing() -> None:
    result = KIT.run(first_plan("P -> ε"), {})
    assert (result.output, result.steps) == (None, ())


def test_what_was_done_before_a_plan_failed_is_not_done_again() -> None:
    @tool
    def mail(host: str) -> str:
        LOG.append("mail")
        return f"mail about {host}"

    @tool
    def phone(mail: str) -> str:
        LOG.append("phone")
        raise ConnectionError("nobody there")

    @tool
    def write(mail: str) -> str:
        LOG.append("write")
        return f"wrote after {mail}"

    LOG.clear()
    planner = Planner(CFG.from_string("P -> mail A\nA -> phone | write"), "test:first")
    solution = planner.solve("x", {"host": "web"}, Toolkit([mail, phone, write]))
    assert solution.result.output == "wrote after mail about web"
    assert LOG == ["mail", "phone", "write"]
    assert [step.state for step in solution.result.steps] == ["cached", "executed"]
