"""Texts become arguments; what goes wrong is a text for the agent."""

from __future__ import annotations

import pytest

from formal_llm.agents.tool_calls import MOST_SHOWN, BadArguments, arguments_of, called, check_texts, signature
from formal_llm.errors import ToolkitError
from formal_llm.tools import Toolkit, tool
from formal_llm.tools.calling import Caller, CallLimits

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
    assert arguments_of(of, text) == expected


@pytest.mark.parametrize(
    ("of", "text", "said"),
    [
        (now, "please", "now takes no argument; leave its input empty"),
        (shout, "  ", "shout needs text, and its input is empty"),
        (book, "4 at 19:30", 'book takes 2 arguments; write them as JSON: {"people": ..., "time": ...}'),
        (book, '{"peple": 4, "time": "x"}', "no argument 'peple' (did you mean people?)"),
        (book, '{"people": 4}', "no value for time"),
        (book, '{"people": [4], "time": "x"}', "are texts or numbers, not [4]"),
        (book, '["4"]', "takes 2 arguments"),
    ],
)
def test_what_is_no_argument_says_what_is_wanted(of, text, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadArguments) as caught:
        arguments_of(of, text)
    assert said in str(caught.value)
    assert called(of, text, CALLER) == (f"Error: {caught.value}", False)


def test_calls_return_texts_and_never_raise() -> None:
    assert called(shout, "a", CALLER) == ("A", True)
    assert called(fails, "x", CALLER) == ("Error: fails failed: ValueError: no x", False)
    assert called(shout, "\ud800", CALLER)[0].startswith("Error: shout cannot take this")
    long, ok = called(shout, "a" * (MOST_SHOWN + 1), CALLER)
    assert ok and long.endswith("A ... (20,001 characters)")


def test_tools_are_described_by_their_arguments() -> None:
    assert signature(shout) == "shout(text): In capitals."
    assert signature(book).endswith('Write its 2 arguments as JSON: {"people": ..., "time": ...}')


def test_tools_that_take_no_texts_are_told() -> None:
    @tool(inputs=["image"], output="text")
    def look(picture) -> str:  # type: ignore[no-untyped-def]
        return ""

    check_texts(Toolkit([shout, book]))
    with pytest.raises(ToolkitError, match=r"look\(image\) -> text takes or gives what is no text"):
        check_texts(Toolkit([look]))
