"""Texts become arguments; what goes wrong is a text for the agent."""

from __future__ import annotations

from functools import partial

import pytest

from formal_llm.agents.tool_calls import (
    MOST_SHOWN,
    BadArguments,
    call_tool,
    check_texts,
    describe_tool,
    parse_arguments,
)
from formal_llm.errors import ToolkitError
from formal_llm.tools import Toolkit, tool
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.kinds import Kind

CALLER = Caller(CallLimits())


@tool
def now() -> str:
    """The time."""
    return "noon"


@tool
def shout(text: str) -> str:
    """In capitals."""
    return text.upper()


@tool
def book(people: str, time: str) -> str:
    """Book a table."""
    return f"{people} at {time}"


@tool
def fails(text: str) -> str:
    """Fails."""
    raise ValueError(f"no {text}")


@pytest.mark.parametrize(
    ("of", "text", "expected"),
    [
        (now, "", []),
        (shout, " hello, [1] world ", ["hello, [1] world"]),
        (shout, '{"text": "a"}', ["a"]),
        (shout, '{"other": "a"}', ['{"other": "a"}']),
        (shout, "[" * 5000, ["[" * 5000]),
        (book, '{"time": "19:30", "people": 4}', ["4", "19:30"]),
        (book, '["4", "19:30"]', ["4", "19:30"]),
    ],
)
def test_a_text_is_read_as_arguments(of, text, expected) -> None:  # type: ignore[no-untyped-def]
    assert [value.get() for value in parse_arguments(of, text).values] == expected


@pytest.mark.parametrize(
    ("of", "text", "said"),
    [
        (now, "please", "now takes no argument; leave its input empty"),
        (shout, "  ", "shout needs text, and its input is empty"),
        (book, "4 at 19:30", 'book takes 2 arguments; write them as JSON: {"people": "...", "time": "..."}'),
        (book, '{"peple": 4, "time": "x"}', "no argument 'peple' (did you mean people?)"),
        (book, '{"people": 4}', "no value for time"),
        (book, '{"people": [4], "time": "x"}', "a people that cannot be used: a text was expected, not a list"),
        (book, '["4"]', "takes 2 arguments"),
    ],
)
def test_what_is_no_argument_says_what_is_wanted(of, text, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadArguments) as caught:
        parse_arguments(of, text)
    assert said in str(caught.value)
    assert call_tool(of, partial(parse_arguments, of, text), CALLER) == (f"Error: {caught.value}", False)


def test_calls_return_texts_and_never_raise() -> None:
    assert call_tool(shout, partial(parse_arguments, shout, "a"), CALLER) == ("A", True)
    assert call_tool(fails, partial(parse_arguments, fails, "x"), CALLER) == (
        "Error: fails failed: ValueError: no x",
        False,
    )
    assert call_tool(shout, partial(parse_arguments, shout, "\ud800"), CALLER)[0].startswith(
        "Error: shout was given a text that cannot be used: no acceptable text"
    )
    long, ok = call_tool(shout, partial(parse_arguments, shout, "a" * (MOST_SHOWN + 1)), CALLER)
    assert ok and long.endswith("A ... (20,001 characters)")


def test_tools_are_described_by_their_arguments() -> None:
    assert describe_tool(shout) == "shout(text): In capitals."
    assert describe_tool(book).endswith('Write its 2 arguments as JSON: {"people": "...", "time": "..."}')


def test_tools_that_take_no_texts_are_told() -> None:
    @tool(inputs=["image"], output="text")
    def look(picture) -> str:  # type: ignore[no-untyped-def]
        return ""

    check_texts(Toolkit([shout, book]))
    with pytest.raises(
        ToolkitError, match=r"look\(image\) -> text takes or gives what can be neither written nor read"
    ):
        check_texts(Toolkit([look]))


COUNT = Kind("count", int, dump=lambda value: str(value).encode(), load=int)
SHARE = Kind("share", float, dump=lambda value: str(value).encode(), load=float)


@tool(inputs=[COUNT], output=COUNT)
def twice(number) -> int:  # type: ignore[no-untyped-def]
    """Twice a number."""
    return 2 * number  # type: ignore[no-any-return]


@tool(inputs=["text", COUNT, SHARE], output="text")
def order(dish, people, tip) -> str:  # type: ignore[no-untyped-def]
    """Order a dish."""
    return f"{people} times {dish}, {tip}"


@pytest.mark.parametrize(
    ("of", "text", "expected"),
    [
        (twice, "21", "42"),
        (twice, '{"number": 21}', "42"),
        (twice, "[21]", "42"),
        (order, '{"dish": "soup", "people": 4, "tip": 1}', "4 times soup, 1.0"),
        (order, '["soup", 4, 0.5]', "4 times soup, 0.5"),
    ],
)
def test_what_is_no_text_is_bound_by_its_schema(of, text, expected) -> None:  # type: ignore[no-untyped-def]
    check_texts(Toolkit([of]))
    assert call_tool(of, partial(parse_arguments, of, text), CALLER) == (expected, True)


@pytest.mark.parametrize(
    ("of", "text", "said"),
    [
        (twice, "two", 'twice takes one argument; write it as JSON: {"number": 1}'),
        (twice, '"2"', "a number that cannot be used: a whole number was expected, not '2'"),
        (twice, "2.5", "a whole number was expected"),
        (twice, "true", "a whole number was expected"),
        (order, '{"dish": "soup", "people": "four", "tip": 1}', "a people that cannot be used: a whole number"),
        (order, "soup for four", '{"dish": "...", "people": 1, "tip": 1.5}'),
    ],
)
def test_what_cannot_be_bound_is_told(of, text, said) -> None:  # type: ignore[no-untyped-def]
    shown, ok = call_tool(of, partial(parse_arguments, of, text), CALLER)
    assert not ok and said in shown


def test_how_arguments_are_written_is_told() -> None:
    assert describe_tool(twice).endswith('Write its argument as JSON: {"number": 1}')
    assert describe_tool(order).endswith('Write its 3 arguments as JSON: {"dish": "...", "people": 1, "tip": 1.5}')
