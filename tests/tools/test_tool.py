"""Tools from functions: the kinds come from the type hints."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import PIL.Image
import pytest
from PIL import Image

from formal_llm.errors import ToolkitError
from formal_llm.tools import IMAGE, TEXT, Tool, tool
from formal_llm.tools.tool import find_tool
from tests.tools.isolated_tools import fail, flip


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
    @tool("visual_question_answering", description="Answers.", cost=3, version="2", timeout=5, retries=1, pure=True)
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
    class Bell:
        pass

    def number(text: str) -> Bell:
        return Bell()

    def many(*texts: str) -> str:
        return ""

    with pytest.raises(ToolkitError, match=r"number: the output: the type \S+:\S+Bell is no kind"):
        tool(number)
    with pytest.raises(ToolkitError, match="no single value"):
        tool(many)


def test_tool_calls_its_function() -> None:
    assert Tool("t", (TEXT,), TEXT, str.upper)("a") == "A"


def test_a_tool_of_a_module_travels_by_its_name() -> None:
    for one in (flip, fail):
        assert pickle.loads(pickle.dumps(one)) is one
    renamed = replace(flip, name="turn", cost=2.0)
    with pytest.raises(pickle.PicklingError):  # its function stands nowhere under its own name
        pickle.dumps(renamed)
    plain = Tool("upper", (TEXT,), TEXT, str.upper, cost=2.0)
    again = pickle.loads(pickle.dumps(plain))
    assert again == plain
    assert again("a") == "A"


def test_tools_are_equal_where_their_parts_are() -> None:
    made = [Tool("upper", (TEXT,), TEXT, str.upper, version=version) for version in ("1", "1", "2")]
    assert made[0] == made[1] != made[2]
    assert len(set(made)) == 2
    assert Tool("upper", [TEXT], TEXT, str.upper, version="1") == made[0]  # type: ignore[arg-type]


def test_tools_are_found_by_module_and_name() -> None:
    assert find_tool("tests.tools.isolated_tools:flip") is flip
    for where, words in (
        ("tests.tools.isolated_tools:nothing", "no tool 'tests.tools.isolated_tools:nothing'"),
        ("no_such_module:x", "No module named 'no_such_module'"),
        ("tests.tools.isolated_tools:NOT_A_TOOL", "is no tool but a int"),
        ("x", "there is no tool 'x'"),
        ("", "there is no tool ''"),
    ):
        with pytest.raises(ToolkitError, match=words):
            find_tool(where)


def test_hints_that_are_text_and_mean_nothing_here() -> None:
    def caption(image: Image.Image) -> str:
        return str(image.size)

    caption.__annotations__ = {"image": "Nowhere.Image.Image", "return": "str"}
    with pytest.raises(ToolkitError, match=r"the parameter image: the type Nowhere\.Image\.Image is no kind"):
        tool(caption)
    caption.__annotations__ = {"image": "PIL.Image.Image", "return": "an answer"}
    with pytest.raises(ToolkitError, match="the output: the type an answer is no kind"):
        tool(caption)
    caption.__annotations__ = {"image": "Image", "return": "Nowhere | None"}
    assert tool("c", output=str)(caption).inputs == (IMAGE,)
