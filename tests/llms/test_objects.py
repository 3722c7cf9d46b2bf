"""Asking for objects, of models that are held to a schema and of those that write text alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Answer, RecordedLLM
from formal_llm.errors import InvalidAnswer, NotRecorded, ProviderError, UnreadableResponse, WritesNoText
from formal_llm.llms import LLM, FunctionLLM, ScriptedLLM, TextRequest, TokenUsage
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.objects import ask_object
from formal_llm.llms.question import Message
from formal_llm.llms.schemas import closed
from formal_llm.llms.text_request import INSTRUCTION

SCHEMA = closed({"tool": {"enum": ["a", "b"]}, "task": {"type": "string", "maxLength": 9}})
GOOD = {"tool": "a", "task": "go"}


class Writes(LLM):
    """Writes prepared texts, in turn."""

    name = "writes"
    can = frozenset({"write"})

    def __init__(self, *texts: str | Exception) -> None:
        self.texts = list(texts)
        self.asked: list[tuple[Message, ...]] = []

    def answer(self, request: TextRequest) -> Answer:
        self.asked.append(request.messages)
        text = self.texts.pop(0)
        if isinstance(text, Exception):
            raise text
        return Answer((), text=text, usage=TokenUsage(1, 10, 5))


class Holds(Writes):
    """The same behind a provider that holds it to a schema, or says so."""

    can = frozenset({"write", "object"})


def test_a_model_that_writes_text_is_shown_the_schema() -> None:
    llm = Writes(json.dumps(GOOD))
    made = ask_object(llm, [Message("system", "s"), Message("user", "u")], SCHEMA)
    assert made.value == GOOD and made.usage == TokenUsage(1, 10, 5)
    ((system, user),) = llm.asked
    assert system.content == "s" and user.content.startswith(f"u\n\n{INSTRUCTION}\n{{") and '"enum"' in user.content


def test_a_model_that_is_held_is_not() -> None:
    llm = Holds(json.dumps(GOOD))
    assert ask_object(llm, "u", SCHEMA).value == GOOD
    assert llm.asked == [(Message("user", "u"),)]


@pytest.mark.parametrize("kind", [Writes, Holds])
def test_one_more_request_with_what_is_wrong(kind: type[Writes]) -> None:
    llm = kind('{"tool": "c", "task": "go"}', json.dumps(GOOD))
    problems: list[str] = []
    made = ask_object(llm, "u", SCHEMA, before_again=lambda error: problems.append(error.problem))
    assert made.value == GOOD and made.usage == TokenUsage(2, 20, 10)
    assert problems == ["tool: 'c' is none of a, b"]
    _, said, repair = llm.asked[1]
    assert said == Message("assistant", '{"tool": "c", "task": "go"}')
    assert "'c' is none of a, b" in repair.content


@pytest.mark.parametrize("kind", [Writes, Holds])
def test_then_it_is_an_error(kind: type[Writes]) -> None:
    llm = kind("", '{"tool": "a", "task": "far too long"}', json.dumps(GOOD))
    with pytest.raises(InvalidAnswer, match="12 characters") as caught:
        ask_object(llm, "u", SCHEMA)
    assert caught.value.usage == TokenUsage(2, 20, 10) and len(caught.value.transcript) == 2
    assert [message.role for message in llm.asked[1]] == ["user", "user"]  # nothing was said the first time


def test_what_the_schema_cannot_say_is_checked_as_well() -> None:
    llm = ScriptedLLM(texts=[GOOD, {**GOOD, "task": "stop"}], can={"object"})
    made = ask_object(llm, "u", SCHEMA, check=lambda one: "no going" if one["task"] == "go" else None)
    assert made.value["task"] == "stop" and "no going" in llm.requests[1].prompt


def test_what_cannot_be_read_is_asked_for_again_as_it_was() -> None:
    llm = Writes(UnreadableResponse("html"), json.dumps(GOOD))
    assert ask_object(llm, "u", SCHEMA).value == GOOD
    assert llm.asked[0] == llm.asked[1]
    with pytest.raises(UnreadableResponse):
        ask_object(Writes(UnreadableResponse("1"), UnreadableResponse("2")), "u", SCHEMA)
    with pytest.raises(ProviderError) as caught:
        ask_object(Writes("wrong", ProviderError("gone")), "u", SCHEMA)
    assert caught.value.usage == TokenUsage(1, 10, 5)


def test_who_cannot_be_asked() -> None:
    with pytest.raises(WritesNoText, match="cannot write an object"):
        ask_object(BuiltinLLM(), "u", SCHEMA)
    with pytest.raises(ValueError, match="asked for an object"):
        ask_object(Writes(), "u", {"type": "string"})


def test_the_doubles() -> None:
    script = ScriptedLLM(texts=[GOOD], can={"object"})
    assert ask_object(script, "u", SCHEMA).value == GOOD
    with pytest.raises(InvalidAnswer, match="no more objects"):
        ask_object(script, "u", SCHEMA)

    async def later(request: TextRequest) -> dict[str, object]:
        return {**GOOD, "task": request.prompt}

    for function in (later, lambda request: {**GOOD, "task": request.prompt}):
        echo = FunctionLLM(function, can={"object"})
        assert ask_object(echo, "hello", SCHEMA).value == {"tool": "a", "task": "hello"}


@given(st.text(max_size=40), st.text(max_size=40))
def test_what_comes_out_keeps_the_schema_or_is_an_error(one: str, other: str) -> None:
    try:
        made = ask_object(Writes(one, other), "u", SCHEMA)
    except InvalidAnswer:
        return
    assert made.value["tool"] in ("a", "b") and set(made.value) == {"tool", "task"}


@pytest.mark.parametrize("kind", [Writes, Holds])
def test_objects_are_cached_recorded_and_replayed(tmp_path: Path, kind: type[Writes]) -> None:
    llm = kind(json.dumps(GOOD), '{"tool": "b", "task": ""}')
    with RecordedLLM(llm, tmp_path / "cache.sqlite", name="holds") as cached:
        assert ask_object(cached, "u", SCHEMA).value == ask_object(cached, "u", SCHEMA).value == GOOD
        other = closed({"tool": {"enum": ["b"]}, "task": {"type": "string"}})
        assert ask_object(cached, "u", other).value != GOOD
    with RecordedLLM(kind("wrong", json.dumps(GOOD)), tmp_path / "run", again=True) as recording:
        assert ask_object(recording, "u", SCHEMA).value == GOOD
    replay = RecordedLLM(None, tmp_path / "run")
    assert ask_object(replay, "u", SCHEMA).value == GOOD
    with pytest.raises(NotRecorded, match="not recorded"):
        ask_object(replay, "v", SCHEMA)
