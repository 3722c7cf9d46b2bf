"""What may be written in a state of an agent: a content, and the marker that opens the next state.

``Written(FreeText(), markers=("Action:",), never=("Thought:",))`` is any text without one of the markers, and then
``Action:``. A content may be narrower: one of given texts, the language of a regular expression or a grammar, JSON by a
schema, a value of a type (:class:`OutputType`). A grammar of ours becomes one of those that engines of token masks read
(:func:`cfg_to_ebnf`).
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
class Grammar:
    """The language of a grammar.

    Attributes:
        text: rules as GBNF or EBNF of xgrammar, ``root`` the first.
    """

    text: str


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """JSON that keeps a schema."""

    text: str

    @classmethod
    def from_schema(cls, schema: Mapping[str, object]) -> JsonSchema:
        """Of a schema as data."""
        return cls(json.dumps(schema))


@dataclass(frozen=True, slots=True)
class Validated:
    """A text that a function accepts.

    Attributes:
        find_problem: returns what is wrong with a text, in words for the model; empty if nothing is.
        schema: the schema of the text, if it is JSON, for models that enforce one.
    """

    find_problem: Callable[[str], str]
    schema: Mapping[str, object] | None = field(default=None, hash=False)


Content: TypeAlias = FreeText | OneOf | Regex | Grammar | JsonSchema | Validated


def find_problem(content: Content, text: str) -> str:
    """What is wrong with a whole text; empty where nothing is.

    Raises:
        ValueError: a grammar or a schema, which only masks hold a text to; a regular expression that is none.
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
    raise ValueError(f"only masks hold a text to a {type(content).__name__}; give FreeText, OneOf or Regex")


def filter_matching_texts(content: OneOf, begun: str) -> list[str]:
    """The texts that what is written so far may become; blanks before it, and behind a whole one, do not count."""
    begun = begun.lstrip()
    return [one for one in content.texts if one.startswith(begun) or one == begun.strip()]


@dataclass(frozen=True, slots=True)
class SegmentPattern:
    """What may be written from here: a content, and then a marker, or the end.

    A marker is forced where there is one and the content can only end; else the model chooses among the legal ones.

    Attributes:
        content: what is written first.
        markers: the markers that may follow it.
        may_end: whether the text may end after the content. It must where no marker may follow.
        never: the markers that may not follow: they stand nowhere in the content, and ``markers`` do not either.

    Raises:
        ValueError: a marker without a character, a marker that may follow and never, one that is in another one
            (but at its end), or nothing that follows.
    """

    content: Content = FreeText()
    markers: tuple[str, ...] = ()
    may_end: bool = False
    never: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all((*self.markers, *self.never)):
            raise ValueError("a marker is a text of one character at least")
        if both := set(self.markers) & set(self.never):
            raise ValueError(f"a marker may follow, or never: {', '.join(map(repr, sorted(both)))}")
        every = (*self.markers, *self.never)
        for one in every:
            for other in every:
                if one != other and one in other and not other.endswith(one):
                    raise ValueError(f"the marker {one!r} stands in {other!r}: the second could never be written")
        if not self.markers and not self.may_end:
            raise ValueError("nothing follows the content: give markers, or may_end=True")


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
