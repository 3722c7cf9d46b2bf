"""Schemas, and what keeps them: against the library jsonschema, where that is installed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.schemas import MOST_CHARACTERS, check_schema, closed, portable, problem_in, read_object
from tests.strategies import examples

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
