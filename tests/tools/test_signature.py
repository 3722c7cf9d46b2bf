"""Signatures: what a model may set, by which schema, and what becomes of it."""

from __future__ import annotations

import functools
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError, validate_call

from formal_llm.errors import InputError, ToolkitError
from formal_llm.llms.schemas import check_schema, problem_in
from formal_llm.tools import IMAGE, TEXT, tool
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.signature import BoundValues, Signature
from formal_llm.tools.tool import Tool, source_version
from tests.tools.typed_tools import NAMES, TYPED, Colour, Item, Order, Person, Tree, add, book, power, price, search

if TYPE_CHECKING:
    from somewhere import Nothing  # type: ignore[import-not-found]

CALLER = Caller(CallLimits())


def call(of: Tool, bound: BoundValues) -> object:
    return CALLER.call(of, bound.values, named=bound.named)[0].get()


@pytest.mark.parametrize("row", TYPED, ids=NAMES)
def test_arguments_of_any_signature(row: tuple[Tool, dict[str, Any], str, dict[str, Any], str]) -> None:
    of, good, expected, wrong, words = row
    value, _ = CALLER.call(of, (bound := of.signature.bind(good)).values, named=bound.named)
    assert value.kind.to_text(value.get()) == expected
    with pytest.raises(InputError) as caught:
        of.signature.bind(wrong)
    assert words in str(caught.value)
    assert set(of.schema["properties"]) == {one.name for one in of.signature.parameters}  # type: ignore[call-overload]
    check_schema(of.strict_schema)


def test_the_schema_of_a_tool() -> None:
    assert add.schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "the first number"},
            "b": {"type": "integer", "description": "the second number"},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert search.schema["required"] == ["query"]
    assert search.schema["properties"] == {
        "query": {"type": "string"},
        "limit": {"type": "integer", "default": 3},
        "exact": {"type": "boolean", "default": False},
    }
    assert book.schema["properties"] == {
        "people": {"type": "integer", "minimum": 1, "maximum": 8, "description": "how many"},
        "name": {"type": "string", "description": "for whom"},
    }
    assert "title" not in str(price.schema)
    plain = Tool("upper", (TEXT, TEXT), TEXT, str.upper)
    assert plain.schema["properties"] == {"input_1": {"type": "string"}, "input_2": {"type": "string"}}
    assert Tool("upper", (TEXT,), TEXT, str.upper, parameters=("text",)).schema["required"] == ["text"]
    with pytest.raises(ToolkitError, match="the parameter picture of kind image cannot be written"):
        _ = tool("look", output=str)(look).schema


def look(picture: Image.Image, brightness: float = 1.0, frame: Image.Image | None = None, _cache: int = 0) -> str:
    return f"{picture.size} {brightness}"


def test_what_a_model_may_set_and_what_a_plan_gives() -> None:
    made = tool(look)
    assert made.inputs == (IMAGE,) and made.parameters == ("picture",)
    # A picture cannot be written, and what begins with an underscore is not for others.
    assert [one.name for one in made.signature.parameters] == ["picture", "brightness"]

    def untyped(text: str, times=2) -> str:  # type: ignore[no-untyped-def]
        return text * times

    assert [one.name for one in tool(untyped).signature.parameters] == ["text"]

    def placed(text: str, times: int = 2, _mark: str = "!", last: str = "?", /, end: str = ".") -> str:
        return text * times + _mark + last + end

    of = tool(placed)  # who cannot set the mark cannot set what is behind it
    assert call(of, of.signature.bind({"text": "a", "times": 3, "end": ""})) == "aaa!?"
    assert list(of.signature.by_name) == ["text", "times", "end"]


def test_defaults_that_their_types_do_not_have() -> None:
    def find(text: str, limit: int = None, colour: Colour = Colour.RED, item: Item = Item("tea", 1.5)) -> str:  # type: ignore[assignment]  # noqa: B008, RUF013
        return f"{text} {limit}"

    properties: Any = tool(find).schema["properties"]
    assert properties["limit"] == {"type": "integer"}
    assert properties["colour"] == {"enum": ["red", "blue"], "type": "string", "default": "red"}
    assert properties["item"]["default"] == {"name": "tea", "price": 1.5, "count": 1}


def test_classes_of_one_name() -> None:
    def make(kind: type) -> type:
        @dataclass
        class Thing:
            size: kind  # type: ignore[valid-type]

        Thing.__annotations__ = {"size": kind}
        return dataclass(Thing)

    First, Second = make(int), make(str)  # noqa: N806

    def compare(first: list[First], second: list[Second]) -> bool:  # type: ignore[valid-type]
        return first[0].size == int(second[0].size)  # type: ignore[attr-defined]

    of = tool(compare)
    assert len(of.schema["$defs"]) == 2  # type: ignore[arg-type]
    written = {"first": [{"size": 3}], "second": [{"size": "3"}]}
    assert problem_in(written, of.strict_schema) is None
    assert call(of, of.signature.bind(written)) is True
    assert problem_in({"first": [{"size": "3"}], "second": [{"size": "3"}]}, of.strict_schema) is not None


def test_all_problems_of_a_call_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        add.signature.bind({"a": "x", "b": None})
    assert str(caught.value) == (
        "a a that cannot be used: Input should be a valid integer, unable to parse string as an integer (given 'x'), "
        "and a b that cannot be used: Input should be a valid integer (given None)"
    )


def test_keyword_only_and_positional_only() -> None:
    assert call(power, power.signature.bind({"base": 2, "exponent": 5, "modulus": 7})) == 4
    assert call(power, power.signature.bind({"base": 2, "modulus": 3})) == 1

    @tool
    def ask(question: str, *, to: str, urgent: bool = False) -> str:
        return f"{question} {to} {urgent}"

    assert ask.inputs == (TEXT, TEXT)
    assert ask.apply(["when", "Ada"], {}) == "when Ada False"
    assert call(ask, ask.signature.bind({"to": "Ada", "question": "when", "urgent": True})) == "when Ada True"


def test_explicit_kinds() -> None:
    made = tool(inputs=["text"], output="text")(lambda words, times=2: words * times)
    assert [one.name for one in made.signature.parameters] == ["words"]
    joined = tool(inputs=["text", "text"], output="text")(lambda *parts: "".join(parts))
    assert joined.parameters == ("input_1", "input_2") and joined.apply(["a", "b"], {}) == "ab"


class Wrong:
    """What pydantic does not read."""


def test_what_is_no_signature() -> None:
    def give(text: str) -> Iterator[str]:
        yield text

    async def agive(text: str) -> AsyncIterator[str]:
        yield text

    def lists() -> Iterator[str]:
        return iter(())

    def many(**options: int) -> str:
        return ""

    def call_it(function: Callable[[int], int]) -> str:
        return ""

    def field(count: int = Field(3, ge=1)) -> str:
        return ""

    def wrong(one: list[Wrong]) -> str:
        return ""

    def missing(one: Nothing) -> str:
        return ""

    for function, words in (
        (give, "a generator gives many values"),
        (agive, "a generator gives many values"),
        (lists, "what it gives can be read only once; write list"),
        (many, "is no single value; give inputs="),
        (call_it, "can be neither written nor read"),
        (field, "write count: Annotated"),
        (wrong, "can be neither written nor read"),
        (missing, "the type Nothing is no kind.*a class is defined before its tool"),
    ):
        with pytest.raises(ToolkitError, match=words):
            tool(function)  # type: ignore[call-overload]


def test_hints_of_names_where_the_tool_is_made() -> None:
    class Local(BaseModel):
        size: int
        inside: list[Local] = []

    @tool
    def grow(thing: Local, other: Annotated[Local | None, "another one"] = None) -> int:
        return thing.size + (other.size if other else 0)

    assert call(grow, grow.signature.bind({"thing": {"size": 1}, "other": {"size": 2}})) == 3
    assert grow.schema["properties"]["other"]["description"] == "another one"  # type: ignore[index]


def test_versions_follow_what_is_fixed() -> None:
    def raised(base: int, exponent: int) -> int:
        return base**exponent

    twice, thrice = (functools.partial(raised, exponent=number) for number in (2, 3))
    assert source_version(twice) == source_version(functools.partial(raised, exponent=2))
    assert len({source_version(raised), source_version(twice), source_version(thrice)}) == 3
    assert tool(twice).name == "raised" and tool(twice).inputs == tool(thrice).inputs


def test_versions_follow_defaults() -> None:
    def make(number: int) -> Tool:
        def scaled(value: int, factor: int = number) -> int:
            return value * factor

        return tool(scaled)

    assert make(2).version == make(2).version != make(3).version


def test_signatures_travel() -> None:
    plain = Tool("add", add.inputs, add.output, add_numbers, signature=add.signature)
    again = pickle.loads(pickle.dumps(plain))
    assert again.schema == add.schema and again.inputs == add.inputs
    assert call(again, again.signature.bind({"a": 1, "b": 2})) == 3
    assert pickle.loads(pickle.dumps(add)) is add
    # A signature of other inputs is not kept.
    assert Tool("add", (TEXT,), TEXT, str, signature=add.signature).signature == Signature.from_kinds([TEXT])


def add_numbers(a: int, b: int) -> int:
    return a + b


# -- pydantic is the oracle -------------------------------------------------------------------------------------------


def every(
    a: int,
    b: float = 0.5,
    c: bool | None = None,
    d: list[int] | None = None,
    e: dict[str, Item] | None = None,
    f: Literal["x", 1] = "x",
    g: Colour = Colour.RED,
    h: Annotated[int, Field(ge=0, le=9)] = 1,
    i: tuple[int, str] = (0, ""),
    j: Person | Order | None = None,
    *,
    k: Tree | None = None,
    m: Any = None,
) -> tuple[Any, ...]:
    return a, b, c, d, e, f, g, h, i, j, k, m


EVERY = tool("every", output=object)(every)
ORACLE = validate_call(config=ConfigDict(validate_default=False))(every)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-20, 20), st.floats(-5, 5).map(lambda one: round(one, 2)),
    st.sampled_from(["x", "y", "red", "blue", "1", "2.5", "true", ""]),
)  # fmt: skip
ITEMS = st.fixed_dictionaries({"name": SCALARS, "price": SCALARS}, optional={"count": SCALARS})
LEAVES = st.fixed_dictionaries({"label": SCALARS})
TREES = st.fixed_dictionaries({"label": SCALARS}, optional={"children": st.lists(LEAVES, max_size=2)})
PEOPLE = st.fixed_dictionaries({"name": SCALARS, "age": SCALARS}, optional={"email": SCALARS})
ORDERS = st.fixed_dictionaries({"items": st.lists(ITEMS, max_size=2)}, optional={"due": SCALARS})
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.sampled_from("pq"), ITEMS, max_size=2), TREES, PEOPLE,
    ORDERS,
)  # fmt: skip
RIGHT = {
    "a": st.integers(), "b": st.floats(-5, 5), "c": st.booleans(), "d": st.lists(st.integers(), max_size=3),
    "e": st.dictionaries(st.text(max_size=3), st.just({"name": "n", "price": 1.5}), max_size=2),
    "f": st.sampled_from(["x", 1]), "g": st.sampled_from(["red", "blue"]), "h": st.integers(0, 9),
    "i": st.tuples(st.integers(), st.text(max_size=3)).map(list), "j": st.one_of(st.none(), PEOPLE, ORDERS), "k": TREES,
    "m": VALUES,
}  # fmt: skip


@given(st.fixed_dictionaries({}, optional={name: st.one_of(RIGHT[name], VALUES) for name in RIGHT}))
def test_what_is_bound_is_what_pydantic_validates(arguments: dict[str, Any]) -> None:
    try:
        expected = ORACLE(**arguments)
    except ValidationError:
        with pytest.raises(InputError):
            EVERY.signature.bind(arguments)
        return
    assert call(EVERY, EVERY.signature.bind(arguments)) == expected
