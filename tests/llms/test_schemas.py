"""Schemas, and what keeps them: against the library jsonschema, where that is installed."""

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
from formal_llm.llms.schemas import (
    MOST_CHARACTERS,
    check_schema,
    close_schema,
    closed,
    open_value,
    portable,
    problem_in,
    read_object,
)
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.tool import Tool
from tests.agents.modular.doubles import legal_value
from tests.strategies import examples
from tests.tools.test_signature import EVERY
from tests.tools.typed_tools import NAMES, TYPED, depth, kind_of, longest, move, price, search

CALL = closed({"tool": {"enum": ["search"]}, "arguments": closed({"query": {"type": "string", "maxLength": 9}})})
SCHEMA: dict[str, Any] = {
    **closed({
        "thoughts": {"type": "string", "maxLength": 5},
        "tool": {"enum": ["a", "b", 1]},
        "value": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/call"}]},
        "many": {"type": "array", "items": {"type": "integer", "minimum": 0}, "maxItems": 2},
    }),
    "$defs": {"call": CALL},
}  # fmt: skip
GOOD: dict[str, Any] = {"thoughts": "short", "tool": "a", "value": "x", "many": [0, 2]}


def test_what_keeps_a_schema() -> None:
    check_schema(SCHEMA)
    assert problem_in(GOOD, SCHEMA) is None
    assert problem_in({**GOOD, "value": {"tool": "search", "arguments": {"query": "q"}}}, SCHEMA) is None
    assert read_object(f" \n{json.dumps(GOOD)}\n", SCHEMA) == GOOD
    assert read_object(json.dumps({**GOOD, "value": "|"}).replace("|", "\n\x18"), SCHEMA)["value"] == "\n\x18"
    assert read_object(f"```json\n{json.dumps(GOOD)}\n```", SCHEMA) == GOOD


@pytest.mark.parametrize(("change", "said"), [
    ({"thoughts": "longer"}, "thoughts: 6 characters, and at most 5 are wanted"),
    ({"thoughts": None}, "thoughts: a text was expected, not null"),
    ({"tool": "c"}, "tool: 'c' is none of a, b, 1"),
    ({"tool": True}, "tool: True is none of"),
    ({"value": 3}, "value: .* was expected, not 3"),
    ({"value": {"tool": "buy", "arguments": {"query": "q"}}}, "value.tool: 'buy' is none of search"),
    ({"value": {"tool": "search", "arguments": {}}}, "value.arguments: the key query is missing"),
    ({"many": [1, -1]}, "many.2: -1, and at least 0 are wanted"),
    ({"many": [1, True]}, "many.2: a whole number was expected"),
    ({"many": [1, 1, 1]}, "many: 3 entries, and at most 2"),
    ({"more": 1}, "there is no key 'more'; the keys are"),
])  # fmt: skip
def test_what_does_not(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_object(json.dumps({**GOOD, **change}), SCHEMA)


@pytest.mark.parametrize(("text", "said"), [
    ("", "no whole JSON object"),
    (json.dumps(GOOD)[:-2], "no whole JSON object"),
    (f"Sure! {json.dumps(GOOD)}", "no whole JSON object"),
    ("[1]", "an object was expected, not a list"),
    ("7", "an object was expected"),
    ('{"tool": "a", "tool": "b"}', "'tool' is given twice"),
    ('{"tool": NaN}', "NaN is no number"),
    ("[" * 200_000, "nested too deeply"),
    (" " * (MOST_CHARACTERS + 1), "characters"),
    ('{"tool": "\\ud800"}', "surrogate"),
])  # fmt: skip
def test_what_is_no_object(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_object(text, SCHEMA)


@pytest.mark.parametrize(("schema", "said"), [
    ({"type": "string"}, "asked for an object"),
    ({**closed({}), "required": ["a"]}, "all of them are required"),
    ({**closed({"a": {"type": "string"}}), "required": []}, "all of them are required"),
    ({**closed({}), "additionalProperties": True}, "additionalProperties false"),
    (closed({"a": {"type": "string", "pattern": "x"}}), "has pattern"),
    (closed({"a": {"type": ["string", "null"]}}), "type is one of"),
    (closed({"a": {"$ref": "#/$defs/b"}}), "names one of"),
    (closed({"a": {"enum": []}}), "one thing at least"),
    (closed({"a": {"enum": [1.5]}}), "texts and whole numbers"),
    (closed({"a": {"anyOf": ["x"]}}), "is no schema"),
    (closed({"a": {"type": "array"}}), "is no schema"),
    ({**closed({}), "$defs": {"a": closed({"b": {"$ref": "#/$defs/a"}})}}, "refers to itself"),
    ({**closed({}), "$defs": [1]}, "table of schemas"),
])  # fmt: skip
def test_what_is_no_schema(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_schema(schema)


def test_bounds_are_left_out_where_they_are_not_known_but_no_names() -> None:
    schema = closed({"maxLength": {"type": "string", "maxLength": 3}, "many": SCHEMA["properties"]["many"]})
    less = portable(schema)
    assert less["properties"] == {
        "maxLength": {"type": "string"}, "many": {"type": "array", "items": {"type": "integer"}}
    }  # fmt: skip
    assert "maxItems" in str(portable(schema, lists=True))
    assert schema["properties"]["maxLength"] == {"type": "string", "maxLength": 3}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from([0.5, 1.0]) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=5,
)
PARTS = st.recursive(
    st.sampled_from(["string", "integer", "boolean", "null"]).map(lambda name: {"type": name})
    | st.integers(0, 2).map(lambda most: {"type": "string", "maxLength": most})
    | st.integers(0, 2).map(lambda least: {"type": "integer", "minimum": least})
    | st.lists(st.sampled_from(["a", "b", 1, 2]), min_size=1, max_size=3).map(lambda names: {"enum": names}),
    lambda inner: (
        st.dictionaries(st.sampled_from("abc"), inner, max_size=2).map(closed)
        | st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"anyOf": parts})
        | inner.map(lambda one: {"type": "array", "items": one, "maxItems": 1})
    ),
    max_leaves=4,
)


@examples(200)
@given(st.dictionaries(st.sampled_from("abc"), PARTS, max_size=2).map(closed), JSON)
def test_against_jsonschema(schema: dict[str, Any], value: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    check_schema(schema)
    # To jsonschema 1.0 is a whole number, and true equals no 1 (as here).
    if "1.0" in json.dumps(value):
        return
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (problem_in(value, schema) is None) == expected


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
    twice = {"words": [{"key": "a", "value": 1}, {"key": "a", "value": 2}]}
    assert open_value(twice, longest.schema) == twice
    with pytest.raises(InputError, match="a words that cannot be used"):
        longest.signature.bind(twice, strict=True)
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
