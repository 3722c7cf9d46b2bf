"""Answers of a type: what a model is asked to write, and the value that its text represents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from formal_llm.errors import InputError, ToolkitError
from formal_llm.llms.schemas import close_schema, closed, open_value, read_object
from formal_llm.tools.hints import TypeHint

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
