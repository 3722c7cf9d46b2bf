"""Doubles that write."""

from __future__ import annotations

from typing import Any

import pytest

from formal_llm.errors import LLMError
from formal_llm.llms import LLM, Message, Question, RecordingLLM, TokenUsage
from formal_llm.llms.generation import (
    CUT_OFF,
    ContinuingLLM,
    Generated,
    StreamingContinuingLLM,
    StreamingLLM,
    TextLLM,
    Writing,
)
from formal_llm.llms.schemas import closed, problem_in
from formal_llm.llms.text_doubles import FunctionTextLLM, RandomObjectLLM, RandomTextLLM, ScriptedTextLLM


def test_a_function_of_the_request() -> None:
    llm = FunctionTextLLM(lambda asked: f"{asked.prompt}, {asked.continues}")
    for protocol in (LLM, TextLLM, ContinuingLLM, StreamingLLM, StreamingContinuingLLM):
        assert isinstance(llm, protocol)
    assert llm.generate([Message("system", "Be brief."), Message("user", "a")]) == Generated(
        "a, False", TokenUsage(1, 2, 2), ""
    )
    assert llm.continue_text("a") == Generated("a, True", TokenUsage(1, 0, 2), "")
    assert llm.continue_text("a", stop=["Tr"]) == Generated("a, ", TokenUsage(1, 0, 1), "Tr")
    assert llm.continue_text("a", max_tokens=1) == Generated("a, T", TokenUsage(1, 0, 1), None, CUT_OFF)
    assert list(llm.stream_continuation("a")) == ["a, ", "Tru", "e", llm.continue_text("a")]
    assert list(llm.stream("a")) == ["a, ", "Fal", "se", llm.generate("a")]
    assert llm.choose(Question("Which?", ["x", "y"])).number == 1
    assert FunctionTextLLM(lambda _: "", lambda _: 2).choose(Question("Which?", ["x", "y"])).number == 2


def test_a_script() -> None:
    llm = ScriptedTextLLM(["a", "b"], [2])
    assert (llm.generate("x").text, llm.continue_text("y").text) == ("a", "b")
    assert [one.prompt for one in llm.requests] == ["x", "y"]
    assert llm.choose(Question("Which?", ["x", "y"])).number == 2
    with pytest.raises(LLMError, match="before text 3"):
        llm.generate("z")


def test_chance_is_the_same_for_a_seed(tmp_path) -> None:
    texts = [RandomTextLLM(seed, ["a", "b"]).generate("x").text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert set("".join(texts)) <= {"a", "b"}


def test_a_request_is_answered_through_wrappers(tmp_path) -> None:
    with RecordingLLM(ScriptedTextLLM(["a", "b"]), tmp_path / "file.jsonl") as llm:
        assert llm.choose(Writing("x", continues=True)).ended == ""
        assert llm.continue_text("y") == Generated("b", TokenUsage(1, 0, 1), "")


def test_random_objects_keep_their_schemas() -> None:
    schema: Any = closed({
        "name": {"type": "string", "minLength": 3, "maxLength": 8}, "tool": {"enum": ["a", "b"]},
        "count": {"anyOf": [{"type": "integer", "minimum": 2, "maximum": 3}, {"$ref": "#/$defs/inner"}]},
        "list": {"type": "array", "items": {"type": "boolean"}, "minItems": 1}, "share": {"type": "number"},
    })  # fmt: skip
    schema["$defs"] = {"inner": closed({"none": {"type": "null"}})}
    made = [RandomObjectLLM(seed).generate_object("?", schema) for seed in range(50)]
    assert all(problem_in(one.value, schema) is None for one in made) and len({one.text for one in made}) > 40
    assert made[3] == RandomObjectLLM(3).generate_object("?", schema)
