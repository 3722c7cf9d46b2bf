"""Binding: schemas of signatures, and the calls that are read by them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.modular import Module
from formal_llm.agents.modular.binding import MOST_ARGUMENT, Binder
from formal_llm.errors import ToolkitError
from formal_llm.llms.schemas import check_schema, problem_in
from formal_llm.tools import tool
from formal_llm.tools.tool import Tool
from tests.agents.modular.doubles import TOKEN, WHOLE, Token, legal_value, plain


@tool("mint")
def mint() -> Token:
    return Token("t")


@tool("spend")
def spend(token: Token, times: int) -> str:
    return token.text * times


@tool("count")
def count(text: str) -> int:
    return len(text)


TOOLS: list[Tool] = [plain("a").tool, mint, spend, count]
NAMES = [one.name for one in TOOLS]


def test_the_schema_of_a_signature() -> None:
    binder = Binder([TOOLS[0], count], (), 0)
    assert binder.build_schema(TOOLS[0], NAMES) == {
        "type": "object", "properties": {"text": {"type": "string", "maxLength": MOST_ARGUMENT}}, "required": ["text"],
        "additionalProperties": False,
    }  # fmt: skip
    assert spend.inputs == (TOKEN, WHOLE)


def test_kinds_decide_what_may_stand_inside() -> None:
    binder = Binder(TOOLS, NAMES, 1)
    schema = binder.build_schema(spend, NAMES)
    assert schema is not None
    properties = schema["properties"]
    assert "$ref" in properties["token"]  # type: ignore[index]  # a call alone: nobody can write a token
    assert properties["times"]["anyOf"][0] == {"type": "integer"}  # type: ignore[index]
    good = {"token": {"tool": "mint", "arguments": {}}, "times": {"tool": "count", "arguments": {"text": "abc"}}}
    assert problem_in(good, schema) is None
    assert problem_in({**good, "times": {"tool": "a", "arguments": {"text": "x"}}}, schema) is not None
    assert problem_in({**good, "token": "t"}, schema) is not None
    call = binder.read_call(spend, good)
    assert call.word == ("mint", "count", "spend") and str(call) == 'spend(mint(), count("abc"))'
    assert binder.build_schema(spend, ["count"]) is None and binder.find_feeders(spend) == ("mint",)
    assert binder.find_feeders(count) is None
    assert str(binder.read_call(spend, {**good, "times": 2})) == "spend(mint(), 2)"


def test_what_nobody_can_give() -> None:
    with pytest.raises(ToolkitError, match="its argument token of kind modular-token, and no tool gives one"):
        Binder([spend, count], NAMES)
    with pytest.raises(ToolkitError, match="no tool gives one"):
        Binder(TOOLS, NAMES, 0)
    with pytest.raises(ValueError, match="cannot be nested -1"):
        Binder(TOOLS, NAMES, -1)


def test_values_that_a_kind_does_not_accept() -> None:
    binder = Binder(TOOLS, NAMES)
    with pytest.raises(ValueError, match="a text that cannot be used: no acceptable text"):
        binder.read_call(TOOLS[0], {"text": "\ud800"})


@given(st.integers(0, 10**9), st.integers(1, 3), st.sampled_from(TOOLS))
def test_what_keeps_the_schema_is_a_call_that_keeps_the_signatures(seed: int, depth: int, outer: Tool) -> None:
    rng = random.Random(seed)
    binder = Binder(TOOLS, NAMES, depth)
    inner = rng.sample(NAMES, rng.randrange(len(NAMES) + 1))
    schema = binder.build_schema(outer, inner)
    if schema is None:
        assert outer is spend and "mint" not in inner
        return
    check_schema(schema)
    value = legal_value(schema, rng, schema.get("$defs", {}))  # type: ignore[arg-type]
    assert problem_in(value, schema) is None
    call = binder.read_call(outer, value)
    assert set(call.word[:-1]) <= set(inner) and call.word[-1] == outer.name
    for one in call.iter_calls():
        kinds = [argument.tool.output if hasattr(argument, "tool") else argument.kind for argument in one.arguments]
        assert tuple(kinds) == one.tool.inputs


def test_modules_are_tools() -> None:
    assert Module(mint).name == "mint"
