"""How the text of an agent's state is written: freely, as one of given texts, by an expression, by a check of yours.

A value of a type (:class:`OutputType`) is written as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from formal_llm.errors import InputError, ToolkitError
from formal_llm.llms.schemas import close_schema, closed, open_value, read_object
from formal_llm.tools.hints import TypeHint


@dataclass(frozen=True, slots=True)
class FreeText:
    """Any text.

    Attributes:
        max_tokens: the budget: after this many tokens the content ends, and what follows it is written. None for none.
        whole: whether it is an answer, which is neither empty nor cut off.
    """

    max_tokens: int | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some texts."""

    texts: tuple[str, ...]

    def __init__(self, *texts: str) -> None:
        object.__setattr__(self, "texts", texts)


@dataclass(frozen=True, slots=True)
class Regex:
    """What a regular expression matches as a whole."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Validated:
    """A text that a function accepts.

    Attributes:
        find_problem: returns what is wrong with a text, in words for the model; empty if nothing is.
        schema: the schema of the text, if it is JSON, for models that enforce one.
    """

    find_problem: Callable[[str], str]
    schema: Mapping[str, object] | None = field(default=None, hash=False)


Content: TypeAlias = FreeText | OneOf | Regex | Validated


def find_problem(content: Content, text: str) -> str:
    """What is wrong with a whole text; empty where nothing is.

    Raises:
        ValueError: a regular expression that is none.
    """
    match content:
        case FreeText():
            return "an answer is not empty" if content.whole and not text else ""
        case OneOf(texts):
            return "" if text in texts else f"it is none of {', '.join(map(repr, texts))}"
        case Regex(pattern):
            try:
                return "" if re.fullmatch(pattern, text) else f"it does not match {pattern}"
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        case Validated(check):
            return check(text)


def filter_matching_texts(content: OneOf, begun: str) -> list[str]:
    """The texts that what is written so far may become; blanks before it, and behind a whole one, do not count."""
    begun = begun.lstrip()
    return [one for one in content.texts if one.startswith(begun) or one == begun.strip()]


#: The name under which an answer is written that is no object.
_ANSWER = "answer"


@dataclass(frozen=True)
class OutputType:
    """The type of an answer, which is written as a JSON object.

    Attributes:
        hint: the type. One that is no object by itself, such as a number or a list, is written as ``{"answer": ...}``.
    """

    hint: TypeHint

    @classmethod
    def of(cls, annotation: object) -> OutputType:
        """Return the output of a type hint.

        Raises:
            ToolkitError: its values cannot be written as JSON.
        """
        hint = TypeHint(annotation)
        if (objection := hint.find_objection()) is not None:
            raise ToolkitError([f"output_type: {objection}"])
        return cls(hint)

    @cached_property
    def _declared(self) -> tuple[dict[str, object], bool]:
        """The schema of the object as pydantic writes it, and whether the answer is a part of it."""
        schema = dict(self.hint.adapter.json_schema())
        if schema.get("type") == "object" and "properties" in schema:
            return schema, False
        definitions = {key: schema.pop(key) for key in ("$defs",) if key in schema}
        return {**closed({_ANSWER: schema}), **definitions}, True

    @cached_property
    def schema(self) -> dict[str, object]:
        """The schema of the object, in the part of JSON Schema that all providers know."""
        return close_schema(self._declared[0])

    def read(self, text: str) -> object:
        """Return the value of an answer.

        Raises:
            ValueError: the text is no answer of this type; the message is worded for the model.
        """
        value = read_object(text, self.schema)
        declared, is_part = self._declared
        opened = open_value(value, declared)
        assert isinstance(opened, dict)
        try:
            return self.hint.load(json.dumps(opened[_ANSWER] if is_part else opened).encode())
        except InputError as error:
            raise ValueError(str(error)) from None

    def find_problem(self, text: str) -> str:
        """Return what is wrong with an answer, in words for the model; empty if nothing is."""
        try:
            self.read(text)
        except ValueError as error:
            return str(error)
        return ""

    @property
    def request(self) -> str:
        """What a model is asked for, in words."""
        return f"The answer is a JSON object by this schema: {json.dumps(self.schema)}"
