"""Type hints as kinds: names, values, bytes, schemas, and pydantic's words."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import pickle
import uuid
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, computed_field

from formal_llm.errors import InputError
from formal_llm.tools.hints import TypeHint
from formal_llm.tools.kinds import kind_for, typed_kind
from tests.tools.typed_tools import Circle, Colour, Item, Order, Person, Point, Room, Size, Square, Tree

OLD_FORM, OLD_TEXT = Optional[int], Optional[str]  # noqa: UP045  # the old form, too


class Named(BaseModel):
    first: str = Field(alias="firstName")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def short(self) -> str:
        return self.first[0]


class Later(BaseModel):
    """Refers to a class that is defined below."""

    inside: list[Last] = []


EARLY = kind_for(Later)


class Last(BaseModel):
    size: int


VALUES: list[tuple[Any, Any]] = [
    (int, 3), (float, 2.5), (float, float("inf")), (bool, True), (bytes, b"\xff\x00"), (complex, 3j), (None, None),
    (list[int], [1, 2]), (dict[str, list[bool]], {"a": [True]}), (set[str], {"a"}), (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2)), (frozenset[int], frozenset({1})), (Literal["a", 1], "a"), (OLD_FORM, None),
    (int | str, "3"), (datetime.date, datetime.date(2026, 11, 25)), (datetime.timedelta, datetime.timedelta(hours=2)),
    (datetime.datetime, datetime.datetime(2026, 11, 25, 10, 0)), (decimal.Decimal, decimal.Decimal("1.25")),
    (uuid.UUID, uuid.UUID(int=5)), (Colour, Colour.RED), (Size, Size.LARGE), (Item, Item("tea", 1.5)),
    (Order, Order([Item("tea", 1.5)], datetime.date(2026, 1, 2), {"a": "b"})), (Person, Person(name="Ada", age=36)),
    (Tree, Tree(label="a", children=[Tree(label="b")])), (Room, {"name": "hall"}), (Point, Point(1, 2)),
    (Circle | Square, Square(shape="square", side=2)), (list[bytes], [b"\xff"]), (Any, {"a": [1, None]}),
    (collections.abc.Iterable[int], [1, 2]), (collections.abc.Sequence[int], [1, 2]), (Named, Named(firstName="Ada")),
    (Annotated[int, Field(ge=1)], 2), (Later, Later(inside=[Last(size=2)])),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "value"), VALUES, ids=[str(hint) for hint, _ in VALUES])
def test_values_come_back(hint: Any, value: Any) -> None:
    kind = typed_kind(hint)
    assert kind.accept(value) == value
    assert kind.read(kind.dump(value)) == value
    assert kind.key(value) == kind.key(kind.load(kind.dump(value)))
    assert kind.copy(value) == value
    assert kind.weigh(value) == len(kind.dump(value))
    assert isinstance(kind.schema, dict)
    again = pickle.loads(pickle.dumps(kind))
    assert again == kind and again.read(kind.dump(value)) == value


@given(st.binary())
def test_bytes_are_written_as_base64(data: bytes) -> None:
    hint = TypeHint(bytes)
    assert hint.load(hint.dump(data)) == data
    assert hint.read(hint.to_text(data)) == data


@pytest.mark.parametrize(
    ("hint", "name"),
    [
        (int, "int"), (list[int], "list[int]"), (OLD_FORM, "Optional[int]"), (int | None, "int | None"),
        (datetime.date, "datetime.date"), (Any, "Any"), (list[Item], "list[tests.tools.typed_tools.Item]"),
        (Literal["a"], "Literal['a']"), (type(None), "NoneType"),
    ],
)  # fmt: skip
def test_names(hint: Any, name: str) -> None:
    assert str(typed_kind(hint)).removeprefix("typing.") == name


@pytest.mark.parametrize(
    ("hint", "value", "words"),
    [
        (int, "3", "no acceptable int: Input should be a valid integer (given '3')"),
        (int, True, "valid integer"),
        (list[int], (1,), "valid list"),
        (Item, {"name": "tea", "price": 1.5}, "instance of Item"),
        (Person, {"name": "Ada", "age": "1"}, "age: Input should be a valid integer"),
        (dict[str, int], {"a": "x" * 100}, "a: Input should be a valid integer (given 'xxxxx"),
        (list[int], list("abcdefgh"), "and 3 more"),
    ],
)
def test_results_are_not_converted(hint: Any, value: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        TypeHint(hint).check(value)
    assert words in str(caught.value) and len(str(caught.value)) < 700


def test_what_models_write_is_converted() -> None:
    assert TypeHint(int).read("3") == 3
    assert TypeHint(tuple[int, ...]).read([1, 2]) == (1, 2)
    with pytest.raises(InputError, match=r"^0\.price: Field required; 1\.name: Input should be .* \(given 3\)$"):
        TypeHint(list[Item]).read([{"name": "tea"}, {"name": 3, "price": 2}])


def test_texts_for_models() -> None:
    for hint, value, shown in (
        (datetime.date, datetime.date(2026, 11, 25), "2026-11-25"),
        (Colour, Colour.RED, "red"),
        (list[str], ["a"], '["a"]'),
        (type(None), None, "null"),
        (OLD_TEXT, "a", "a"),
        (Named, Named(firstName="Ada"), '{"firstName":"Ada","short":"A"}'),
        (float, float("nan"), "NaN"),
    ):
        assert TypeHint(hint).to_text(value) == shown


def test_what_is_no_hint() -> None:
    for hint in (collections.abc.Callable[[int], int], pytest.Item, list[pytest.Item]):
        assert "can be neither written nor read" in str(TypeHint(hint).find_objection())
    assert TypeHint(collections.abc.Iterator[int]).find_objection() == "what it gives can be read only once; write list"
    assert TypeHint(Later).find_objection() is None
    with pytest.raises(InputError, match="a object that cannot be written"):
        TypeHint(object).dump(object())
