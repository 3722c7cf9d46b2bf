"""Tools of many signatures, each with what a model may write, what comes of it, and what it must not write."""

from __future__ import annotations

import asyncio
import collections.abc
import datetime
import decimal
import enum
import functools
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from formal_llm.tools.tool import Tool, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


@dataclass
class Item:
    name: str
    price: float
    count: int = 1


@dataclass
class Order:
    items: list[Item]
    due: datetime.date | None = None
    notes: dict[str, str] = field(default_factory=dict)


class Person(BaseModel):
    name: str = Field(min_length=1, description="the full name")
    age: int = Field(ge=0)
    email: str | None = None


class Tree(BaseModel):
    label: str
    children: list[Tree] = []


class Circle(BaseModel):
    shape: Literal["circle"]
    radius: float


class Square(BaseModel):
    shape: Literal["square"]
    side: float


class Room(TypedDict):
    name: str
    seats: NotRequired[int]


class Point(NamedTuple):
    x: int
    y: int = 0


@tool
def now() -> str:
    """The time."""
    return "noon"


@tool(pure=True)
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first number
        b: the second number
    """
    return a + b


@tool
def scale(value: float, factor: float = 2.0) -> float:
    """Scale a value.

    Parameters
    ----------
    value : float
        what is scaled
    factor : float
        by how much
    """
    return value * factor


@tool
def toggle(on: bool) -> bool:
    """Toggle a switch.

    :param on: its state
    """
    return not on


@tool
def search(query: str, limit: int = 3, *, exact: bool = False) -> str:
    """Search for a text."""
    return f"{query} {limit} {exact}"


@tool(pure=True)
def total(numbers: list[int]) -> int:
    """Add numbers."""
    return sum(numbers)


@tool
def longest(words: dict[str, int]) -> str | None:
    """Find the word with the highest number."""
    return max(words, key=lambda word: words[word]) if words else None


@tool
def paint(colour: Literal["red", "green"], coats: Literal[1, 2] = 1) -> str:
    """Paint a wall."""
    return f"{colour} x{coats}"


@tool
def greet(name: Optional[str] = None) -> str:  # noqa: UP045  # the old form, too
    """Greet somebody."""
    return f"hello {name or 'you'}"


@tool
def price(order: Order) -> float:
    """Find the price of an order."""
    return sum(item.price * item.count for item in order.items) + (5 if order.due else 0) + len(order.notes)


@tool(pure=True)
def birthday(person: Person) -> Person:
    """Make a person a year older."""
    return person.model_copy(update={"age": person.age + 1})


@tool
def merge(people: list[Person], by: Literal["name", "age"] = "name") -> list[str]:
    """List people."""
    return [one.name for one in sorted(people, key=lambda one: getattr(one, by))]


@tool
def depth(tree: Tree) -> int:
    """Measure how deep a tree is."""
    return 1 + max((depth(child) for child in tree.children), default=0)


@tool
def area(shape: Annotated[Circle | Square, Field(discriminator="shape")]) -> float:
    """Find the area of a shape."""
    return shape.side**2 if isinstance(shape, Square) else 3 * shape.radius**2


@tool
def mix(first: Colour, second: Colour = Colour.BLUE, size: Size = Size.SMALL) -> Colour:
    """Mix colours."""
    return first if size is Size.SMALL else second


@tool
def weekday(day: datetime.date, at: datetime.time | None = None) -> str:
    """Find the day of the week."""
    return day.strftime("%A") + (f" {at:%H:%M}" if at else "")


@tool
def later(when: datetime.datetime, by: datetime.timedelta) -> datetime.datetime:
    """Add a time to another."""
    return when + by


@tool
def cents(amount: decimal.Decimal) -> decimal.Decimal:
    """Convert an amount to cents."""
    return amount * 100


@tool
def version(identifier: uuid.UUID) -> int:
    """Find the version of an identifier."""
    return identifier.version or 0


@tool
def size_of(data: bytes) -> int:
    """Count bytes."""
    return len(data)


@tool
def double(value: int | str) -> int | str:
    """Double a number or a text."""
    return value * 2


@tool
def seats(room: Room) -> int:
    """Count the seats of a room."""
    return room.get("seats", 0)


@tool
def move(point: Point, by: tuple[int, int] = (1, 1)) -> Point:
    """Move a point."""
    return Point(point.x + by[0], point.y + by[1])


@tool
def unique(names: set[str]) -> int:
    """Count different names."""
    return len(names)


@tool
def first(names: collections.abc.Iterable[str]) -> str:
    """Find the first name."""
    return next(iter(names))


@tool
def kind_of(value: Any) -> str:
    """Find the class of a value."""
    return type(value).__name__


@tool
def book(people: Annotated[int, Field(ge=1, le=8, description="how many")], name: Annotated[str, "for whom"]) -> str:
    """Book a table."""
    return f"{people} for {name}"


@tool
def forget(key: str) -> None:
    """Forget something."""


@tool
def power(base: int, exponent: int = 2, /, *, modulus: int | None = None) -> int:
    """Raise a number to a power."""
    return pow(base, exponent, modulus)


@tool
async def wait(seconds: float = 0.0) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return f"waited {seconds}"


class Counter:
    """Counts."""

    def __init__(self, start: int) -> None:
        self.start = start

    def count(self, by: int = 1) -> int:
        """Count on.

        Args:
            by: how far
        """
        return self.start + by

    def __call__(self, by: int) -> int:
        return self.start - by


class Waiter:
    """Waits, too."""

    async def __call__(self, text: str, times: int = 2) -> str:
        await asyncio.sleep(0)
        return text * times


def raise_power(base: int, exponent: int, offset: int = 0) -> int:
    """Raise a number."""
    return base**exponent + offset


counted = tool("counted")(Counter(10).count)
down = tool("down")(Counter(10))
repeated = tool("repeated")(Waiter())
cubed = tool("cubed")(functools.partial(raise_power, exponent=3))

PERSON = {"name": "Ada", "age": 36}

#: The tools, each with arguments that a model writes, the text that comes of it, arguments that do not fit, and words
#: of the answer to these.
TYPED: list[tuple[Tool, dict[str, Any], str, dict[str, Any], str]] = [
    (now, {}, "noon", {"zone": "utc"}, "no argument 'zone'"),
    (add, {"a": 2, "b": 40}, "42", {"a": 2, "b": "forty"}, "valid integer"),
    (scale, {"value": 1.5}, "3.0", {"value": "much"}, "valid number"),
    (toggle, {"on": True}, "false", {"on": "perhaps"}, "valid boolean"),
    (search, {"query": "tea", "exact": True}, "tea 3 True", {"query": "tea", "limit": 1.5}, "valid integer"),
    (total, {"numbers": [1, 2, 3]}, "6", {"numbers": [1, "x"]}, "1: Input should be a valid integer"),
    (longest, {"words": {"a": 1, "b": 2}}, "b", {"words": {"a": "x"}}, "a: Input should be a valid integer"),
    (paint, {"colour": "red", "coats": 2}, "red x2", {"colour": "blue"}, "'red' or 'green'"),
    (greet, {}, "hello you", {"name": 4}, "valid string"),
    (price, {"order": {"items": [{"name": "tea", "price": 2.5, "count": 2}], "due": "2026-11-25"}}, "10.0",
     {"order": {"items": [{"name": "tea"}]}}, "items.0.price: Field required"),
    (birthday, {"person": PERSON}, '{"name":"Ada","age":37,"email":null}', {"person": {"name": "Ada", "age": -1}},
     "age: Input should be greater than or equal to 0"),
    (merge, {"people": [PERSON, {"name": "Abe", "age": 50}]}, '["Abe","Ada"]', {"people": PERSON}, "valid array"),
    (depth, {"tree": {"label": "a", "children": [{"label": "b"}]}}, "2", {"tree": {"label": "a", "children": [{}]}},
     "children.0.label: Field required"),
    (area, {"shape": {"shape": "square", "side": 3}}, "9.0", {"shape": {"shape": "line"}}, "'circle', 'square'"),
    (mix, {"first": "red", "size": 2}, "blue", {"first": "pink"}, "'red' or 'blue'"),
    (weekday, {"day": "2026-11-25", "at": "19:30"}, "Wednesday 19:30", {"day": "soon"}, "valid date"),
    (later, {"when": "2026-11-25T10:00:00", "by": "PT2H"}, "2026-11-25T12:00:00",
     {"when": "2026-11-25T10:00:00", "by": "long"}, "valid duration"),
    (cents, {"amount": "1.25"}, "125.00", {"amount": "much"}, "valid decimal"),
    (version, {"identifier": "6b1f0b9e-7f0d-4a6e-9d58-2f2f8a5f1c11"}, "4", {"identifier": "x"}, "valid UUID"),
    (size_of, {"data": "/wA="}, "2", {"data": "/"}, "base64"),
    (double, {"value": "ab"}, "abab", {"value": [1]}, "valid string"),
    (seats, {"room": {"name": "hall", "seats": 80}}, "80", {"room": {"seats": 3}}, "name: Field required"),
    (move, {"point": [1, 2], "by": [10, 20]}, "[11,22]", {"point": ["a"]}, "0: Input should be a valid integer"),
    (unique, {"names": ["a", "b", "a"]}, "2", {"names": "a"}, "valid"),
    (first, {"names": ["a", "b"]}, "a", {"names": [1]}, "valid string"),
    (kind_of, {"value": {"a": 1}}, "dict", {}, "no value for value"),
    (book, {"people": 4, "name": "Ada"}, "4 for Ada", {"people": 9, "name": "Ada"}, "less than or equal to 8"),
    (forget, {"key": "x"}, "null", {"keys": "x"}, "did you mean key?"),
    (power, {"base": 3, "modulus": 5}, "4", {"base": 3, "modulo": 5}, "did you mean modulus?"),
    (wait, {"seconds": 0.001}, "waited 0.001", {"seconds": "long"}, "valid number"),
    (counted, {"by": 5}, "15", {"by": "x"}, "valid integer"),
    (down, {"by": 5}, "5", {}, "no value for by"),
    (repeated, {"text": "ab"}, "abab", {"text": "ab", "times": "often"}, "valid integer"),
    (cubed, {"base": 2, "offset": 1}, "9", {"base": 2, "exponent": 4}, "no argument 'exponent'"),
]  # fmt: skip
NAMES = [one[0].name for one in TYPED]
