"""Closed schemas: all providers know them, and what is written by them is what was meant."""

from __future__ import annotations

import json
import random
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.agents.tool_calls import call_tool, read_arguments
from formal_llm.errors import InputError
from formal_llm.llms.schemas import check_schema, close_schema, closed, open_value, problem_in
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.tool import Tool
from tests.agents.modular.doubles import legal_value
from tests.tools.test_signature import EVERY
from tests.tools.typed_tools import NAMES, TYPED, depth, kind_of, longest, move, price, search


def write_closed(value: Any, schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """Write a value by the closed form of a schema: an oracle for what the tests below need, written from the table."""
    if value is None:
        return None
    if "$ref" in schema:
        return write_closed(value, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if schema.get("type") == "object" and "properties" in schema:
        parts = schema["properties"]
        return {name: write_closed(value.get(name), one, definitions) for name, one in parts.items()}
    if schema.get("type") == "object":
        return [{"key": key, "value": one} for key, one in value.items()]
    if schema.get("type") == "array" and "items" in schema:
        return [write_closed(one, schema["items"], definitions) for one in value]
    return value if schema else json.dumps(value)


#: Where the definitions contain themselves, or several forms are possible, the oracle above does not know the form.
PLAIN = [row for row in TYPED if row[0].name not in ("depth", "area")]


@pytest.mark.parametrize("row", PLAIN, ids=[row[0].name for row in PLAIN])
def test_what_is_left_out_open_and_free_is_written_in_another_form(
    row: tuple[Tool, dict[str, Any], str, Any, Any],
) -> None:
    of, good, expected, *_ = row
    written = write_closed(good, of.schema, of.schema.get("$defs", {}))  # type: ignore[arg-type]
    assert problem_in(written, of.strict_schema) is None
    assert call_tool(of, partial(read_arguments, of, written, strict=True), Caller(CallLimits())) == (expected, True)


@pytest.mark.parametrize("of", [row[0] for row in TYPED] + [EVERY], ids=[*NAMES, "every"])
def test_closed_schemas_are_known_to_all_providers(of: Tool) -> None:
    check_schema(of.strict_schema)
    assert "$ref" not in json.dumps(of.strict_schema)


@given(st.integers(0, 10**9), st.sampled_from([row[0] for row in TYPED] + [EVERY]))
def test_what_keeps_the_closed_schema_is_read_as_the_open_one(seed: int, of: Tool) -> None:
    rng = random.Random(seed)
    written = legal_value(of.strict_schema, rng, {})
    opened = open_value(written, of.schema)
    try:
        bound = of.signature.bind(written, strict=True)
    except InputError:  # a pattern or a format, which closed schemas do not have
        with pytest.raises(InputError):
            of.signature.bind(opened)  # type: ignore[arg-type]
        return
    assert bound == of.signature.bind(opened)  # type: ignore[arg-type]
    assert set(bound.named) == {one.name for one in of.signature.parameters if not one.required and one.name in opened}  # type: ignore[operator]


def test_null_stands_for_a_default() -> None:
    assert search.strict_schema == closed({
        "query": {"type": "string"},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "(null for 3)"},
        "exact": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "description": "(null for false)"},
    })  # fmt: skip
    assert search.signature.bind({"query": "x", "limit": None, "exact": True}, strict=True).named.keys() == {"exact"}
    order = {
        "items": [{"name": "tea", "price": 1, "count": None}],
        "due": None,
        "notes": [{"key": "to", "value": "Ada"}],
    }
    (value,) = price.signature.bind({"order": order}, strict=True).values
    assert (value.get().items[0].count, value.get().notes) == (1, {"to": "Ada"})


def test_tables_any_values_and_what_contains_itself() -> None:
    pairs = [{"key": "a", "value": 1}, {"key": "b", "value": 2}]
    assert open_value({"words": pairs}, longest.schema) == {"words": {"a": 1, "b": 2}}
    assert open_value({"value": '{"a": [1]}'}, kind_of.schema) == {"value": {"a": [1]}}
    assert open_value({"value": "a b"}, kind_of.schema) == {"value": "a b"}
    tree = {"label": "a", "children": ['{"label": "b", "children": []}']}
    assert problem_in({"tree": tree}, depth.strict_schema) is None
    (value,) = depth.signature.bind({"tree": tree}, strict=True).values
    assert depth.function(value.get()) == 2
    assert open_value({"point": [1, 2], "by": None}, move.schema) == {"point": [1, 2]}


def test_schemas_that_others_wrote() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": ["string", "null"], "pattern": "a+"},
            "kind": {"const": "x"},
            "level": {"enum": ["low", 2, None, True, 1.5]},
            "open": {"allOf": [{"$ref": "#/definitions/Open"}], "description": "what is open"},
            "odd": {"not": {"type": "string"}},
            "none": {"type": "object", "additionalProperties": False},
        },
        "required": ["name", "open"],
        "definitions": {"Open": {"type": "object", "properties": {"x": {"type": "number", "exclusiveMinimum": 0}}}},
    }
    made = close_schema(schema)
    check_schema(made)
    properties: Any = made["properties"]
    assert properties["name"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert properties["level"]["anyOf"][0] == {"enum": ["low", 2]}
    assert properties["open"]["description"] == "what is open"
    written = {"name": None, "kind": "x", "level": True, "open": {"x": None}, "odd": "[1, 2]", "none": {}}
    assert problem_in(written, made) is None
    opened = {"name": None, "kind": "x", "level": True, "open": {}, "odd": [1, 2], "none": {}}
    assert open_value(written, schema) == opened
    assert open_value({"name": 3, "extra": None, "open": 4}, schema) == {"name": 3, "extra": None, "open": 4}
    assert close_schema({"type": "object"}) == closed({})
