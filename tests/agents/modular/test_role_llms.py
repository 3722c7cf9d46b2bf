"""Several models as one: each is asked what is for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from formal_llm.agents.modular import ModularAgent, calculate, respond
from formal_llm.agents.modular.role_llms import RoleLLMs
from formal_llm.errors import RecordError, WritesNoText
from formal_llm.llms.doubles import FunctionLLM
from formal_llm.llms.question import Message, Question
from formal_llm.llms.schemas import Schema
from formal_llm.llms.text_request import TextRequest
from formal_llm.planning import Budget
from tests.agents.modular.doubles import script

SCHEMA: Schema = {
    "type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"], "additionalProperties": False,
}  # fmt: skip
QUESTIONS = ["What is 2 + 3?", "What is 4 + 5?", "What is 6 + 7?"]


def plans(messages: tuple[Message, ...], schema: Schema) -> dict[str, object]:
    """Calculates first, then answers."""
    known = "none yet" not in messages[-1].content
    plan: dict[str, object] = {"context_summary": "", "thoughts": "", "task": messages[-1].content[:40]}
    return plan if "tool" not in schema["properties"] else {**plan, "tool": "respond" if known else "calculate"}  # type: ignore[operator]


def calls(messages: tuple[Message, ...], schema: Schema) -> dict[str, object]:
    """Writes the numbers of the request, or the last result."""
    request = messages[-1].content.split("Request: What is ")[1].split("?")[0]
    return (
        {"expression": request}
        if "expression" in schema["properties"]
        else {"answer": str(sum(map(int, request.split(" + "))))}
    )  # type: ignore[operator]


def agent() -> ModularAgent:
    return ModularAgent(
        FunctionLLM(lambda request: plans(request.messages, request.schema), can={"object"}, name="plans"),
        FunctionLLM(lambda request: calls(request.messages, request.schema), can={"object"}, name="calls"),
        modules=[calculate(), respond()],
    )


def test_each_model_is_asked_what_is_for_it() -> None:
    planner, caller = (
        script({"x": "planned"}),
        script({"x": "called"}),
    )
    llms = RoleLLMs({"planner": planner, "caller": caller, "summarizer": caller})
    asked = TextRequest("?", schema=SCHEMA)
    assert "called" in llms.ask(asked.replace(role="caller")).text
    assert "planned" in llms.ask(asked.replace(role="planner")).text
    assert llms.blocks
    assert llms.name == "ScriptedLLM" and set(llms.identity["roles"]) == {"planner", "caller", "summarizer"}  # type: ignore[call-overload]
    with pytest.raises(WritesNoText):
        llms.ask(Question("?", ["a", "b"]))


def test_many_questions_and_one_that_is_awaited(tmp_path: Path) -> None:
    made = agent()
    found = made.run_all(QUESTIONS, results=tmp_path / "r.jsonl", concurrency=2)
    assert [one.transcript.answer for one in found] == ["5", "9", "13"]
    assert [call.tool for call in found[0].calls] == ["calculate", "respond"]
    assert all(made.monitor.verify(one.transcript.word).valid for one in found)
    again = agent().run_all(QUESTIONS, results=tmp_path / "r.jsonl")
    assert [one.transcript for one in again] == [one.transcript for one in found]
    with pytest.raises(RecordError, match="belongs to another run"):
        ModularAgent(
            FunctionLLM(lambda request: plans(request.messages, request.schema), can={"object"}, name="other"),
            modules=[calculate(), respond()],
        ).run_all(QUESTIONS, results=tmp_path / "r.jsonl")
    assert asyncio.run(made.arun(QUESTIONS[1])).answer == "9"
    spent = made.run_all(QUESTIONS, budget=Budget(requests=5))
    assert [one.error is None for one in spent] == [True, False, False]


KILLED = """
import os, signal, sys
import tests.agents.modular.test_role_llms as it
from formal_llm.agents.modular import ModularAgent, calculate, respond
from formal_llm.llms.doubles import FunctionLLM

count = open(sys.argv[2], "a")

def counted(function):
    def made(request):
        count.write("x")
        count.flush()
        if os.path.getsize(sys.argv[2]) == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(request.messages, request.schema)
    return FunctionLLM(made, can={"object"}, name="function")

agent = ModularAgent(counted(it.plans), counted(it.calls), modules=[calculate(), respond()])
found = agent.run_all(it.QUESTIONS, results=sys.argv[1])
assert [one.transcript.answer for one in found] == ["5", "9", "13"]
"""


def test_a_batch_that_was_killed_goes_on(tmp_path: Path) -> None:
    count = tmp_path / "count"
    for at in (3, 8, 99):
        subprocess.run([sys.executable, "-c", KILLED, tmp_path / "r.jsonl", count, str(at)], check=False, timeout=60)
    assert count.stat().st_size == 12 + 2  # four requests a question, and what was under way at each kill once more
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 3
