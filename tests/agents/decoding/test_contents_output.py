"""Answers of a type: written as JSON by a schema, read as values, and asked for again where they are wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from formal_llm.agents import Agent
from formal_llm.agents.decoding.contents import OutputType
from formal_llm.errors import ToolkitError, WritingError
from formal_llm.llms.doubles import TURNS, ScriptedLLM
from formal_llm.llms.schemas import check_schema
from formal_llm.tools import tool
from tests.agents.chats import Scripted


class River(BaseModel):
    name: str
    length: float = Field(gt=0)
    sea: str | None = None


@dataclass
class Point:
    x: int
    y: int = 0


CASES: list[tuple[Any, object, object]] = [
    (River, {"name": "Danube", "length": 2850, "sea": None}, River(name="Danube", length=2850)),
    (Point, {"x": 1, "y": None}, Point(1)),
    (int, {"answer": 5}, 5),
    (list[str], {"answer": ["a", "b"]}, ["a", "b"]),
    (Literal["yes", "no"], {"answer": "yes"}, "yes"),
    (dict[str, int], {"answer": [{"key": "a", "value": 1}]}, {"a": 1}),
    (River | None, {"answer": None}, None),
]


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@pytest.mark.parametrize(("annotation", "written", "value"), CASES)
def test_a_value_is_what_its_text_represents(annotation: Any, written: object, value: object) -> None:
    output = OutputType.of(annotation)
    check_schema(output.schema)
    assert output.read(json.dumps(written)) == value and output.find_problem(json.dumps(written)) == ""
    assert output.find_problem("five") and output.find_problem('{"other": 1}')
    assert json.dumps(output.schema) in output.request


@pytest.mark.parametrize(("annotation", "written", "value"), CASES)
def test_agents_answer_with_it(annotation: Any, written: object, value: object) -> None:
    text = json.dumps(written)
    turns = [("", [("add", {"a": 1, "b": 2})]), ("", [("final_answer", text)])]
    native = Agent("react", ScriptedLLM(texts=turns, can=TURNS), [add],
                   output_type=annotation).start("q")  # fmt: skip
    native.run_to_end()
    chat = Agent("react", Scripted([f"[Final Thought] f [Answer] {text}"]), [add], output_type=annotation).start("q")
    chat.run_to_end()
    continued = Agent("direct", ScriptedLLM(texts=[f"[Answer] {text}", text]), output_type=annotation).start("q")
    continued.run_to_end()
    assert native.output == chat.output == continued.output == value
    assert native.transcript.corrections == chat.transcript.corrections == ()


def test_what_is_wrong_is_asked_for_again_in_pydantics_words() -> None:
    wrong = ("", [("final_answer", {"name": "Danube", "length": -1, "sea": None})])
    right = ("", [("final_answer", {"name": "Danube", "length": 1, "sea": None})])
    llm = ScriptedLLM(texts=["2,850 km", wrong, right], can=TURNS)
    run = Agent("react", llm, [add], output_type=River).start("q")
    run.run_to_end()
    assert run.output == River(name="Danube", length=1)
    assert [one.name for one in llm.requests[0].tools] == ["add", "final_answer"]  # type: ignore[attr-defined]
    assert llm.requests[0].must_call  # type: ignore[attr-defined]
    assert "Input should be greater than 0" in run.transcript.corrections[1].reason
    with pytest.raises(WritingError, match="turns could not be used"):
        Agent("react", ScriptedLLM(texts=["x"] * 5, can=TURNS), [add], output_type=River).run("q")


def test_an_answer_beside_calls_is_none_yet() -> None:
    both = ("", [("final_answer", {"answer": 4}), ("add", {"a": 1, "b": 2})])
    run = Agent(
        "react", ScriptedLLM(texts=[both, ("", [("final_answer", {"answer": 3})])], can=TURNS), [add], output_type=int
    ).start("q")
    run.run_to_end()
    assert run.output == 3 and run.calls[0].output == "3"
    assert [one.written for one in run.transcript.corrections] == ["final_answer"]


def test_types_that_cannot_be_written() -> None:
    with pytest.raises(ToolkitError, match="output_type: "):
        Agent("direct", ScriptedLLM(texts=[]), output_type=type("Odd", (), {}))
    run = Agent("direct", ScriptedLLM(texts=["[Answer] x", "x"])).start("q")
    run.run_to_end()
    assert run.output == "x"
