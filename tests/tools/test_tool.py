"""Tools from functions: the kinds come from the type hints."""

from __future__ import annotations

from typing import Any

import PIL.Image
import pytest
from PIL import Image

from formal_llm import ToolkitError
from formal_llm.tools import IMAGE, TEXT, Tool, tool


def test_a_bare_decorator() -> None:
    @tool
    def caption(image: Image.Image) -> str:
        """Describe an image.

        At length.
        """
        return str(image.size)

    assert isinstance(caption, Tool)
    assert (caption.name, caption.inputs, caption.output) == ("caption", (IMAGE,), TEXT)
    assert caption.description == "Describe an image."
    assert caption.parameters == ("image",)
    assert str(caption) == "caption(image) -> text"
    assert repr(caption) == "<Tool caption(image) -> text>"
    assert caption(Image.new("L", (2, 3))) == "(2, 3)"


def test_a_decorator_with_settings() -> None:
    @tool("visual_question_answering", description="Answers.", cost=3, version="2", timeout=5, retries=1)
    def answer(image: PIL.Image.Image, question: str, beams: int = 4, *, device: str = "cpu") -> str:
        return question

    assert answer.name == "visual_question_answering"
    assert answer.inputs == (IMAGE, TEXT)
    assert (answer.description, answer.cost, answer.version, answer.timeout, answer.retries) == (
        "Answers.",
        3,
        "2",
        5,
        1,
    )


def test_kinds_in_place_of_hints() -> None:
    made = tool("upper", inputs=["text"], output=str)(str.upper)
    assert (made.name, made.inputs, made.output) == ("upper", (TEXT,), TEXT)
    both = tool(inputs=[IMAGE, str], output="image")(lambda image, text: image)
    assert both.inputs == (IMAGE, TEXT)
    again = tool(description="")
    assert again(upper_case).description == ""


def upper_case(text: str) -> str:
    """Capital letters."""
    return text.upper()


def test_the_version_follows_the_source() -> None:
    def first(text: str) -> str:
        return text

    def second(text: str) -> str:
        return text + "!"

    assert tool(first).version == tool(first).version != tool(second).version
    assert tool("n", inputs=[str], output=str)(str.upper).version == ""


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda text: text, "parameter text has no type hint"),
        (eval("lambda: 'x'"), "what it returns has no type hint"),
    ],
)
def test_missing_hints(function: Any, words: str) -> None:
    with pytest.raises(ToolkitError, match=words):
        tool(function)


def test_hints_that_are_no_kinds() -> None:
    def number(text: str) -> int:
        return len(text)

    def many(*texts: str) -> str:
        return ""

    with pytest.raises(ToolkitError, match="number: the output: the type builtins:int is no kind"):
        tool(number)
    with pytest.raises(ToolkitError, match="no single value"):
        tool(many)
