"""Type hints as pydantic reads them: which values they have, how these are written as JSON, and by which schema.

Importing pydantic takes longer than importing this library, so it is imported where the first hint is used.
"""

from __future__ import annotations

import collections.abc
import io
import json
import typing
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formal_llm.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

#: The maximum number of problems of one value that a message lists.
_MOST_PROBLEMS = 5
_READ_ONCE = (
    collections.abc.Iterator, collections.abc.Generator, collections.abc.AsyncIterable, collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class TypeHint:
    """A type hint that has values: numbers, lists, tables, dataclasses, models, and all else that pydantic reads.

    Bytes are written as base64. An ``Iterable`` is a list.
    """

    annotation: Any

    def __reduce__(self) -> tuple[type[TypeHint], tuple[object]]:
        return TypeHint, (self.annotation,)

    def __str__(self) -> str:
        hint = self.annotation
        if isinstance(hint, type) and typing.get_origin(hint) is None:
            return hint.__qualname__ if hint.__module__ == "builtins" else f"{hint.__module__}.{hint.__qualname__}"
        return str(hint).replace("typing.", "")

    @cached_property
    def adapter(self) -> TypeAdapter[object]:
        """What pydantic makes of the hint."""
        from pydantic import ConfigDict, PydanticUserError, TypeAdapter

        hint = self.annotation
        if (typing.get_origin(hint) or hint) is collections.abc.Iterable:
            hint = list[(*typing.get_args(hint), Any)[0]]  # type: ignore[misc]  # made here, not written
        config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", ser_json_inf_nan="constants")
        try:
            return TypeAdapter(hint, config=config)
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":
                raise
            return TypeAdapter(hint)  # models have a configuration of their own

    def find_objection(self) -> str | None:
        """Return why values of this hint can be neither written nor read; None if they can be, as far as is known."""
        from pydantic import PydanticUndefinedAnnotation, PydanticUserError
        from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

        if (typing.get_origin(self.annotation) or self.annotation) in _READ_ONCE:
            return "what it gives can be read only once; write list"
        try:
            self.adapter.json_schema()
        except PydanticUndefinedAnnotation:
            return None  # a class that refers to one that is defined later
        except (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema):
            return f"values of the type {self} can be neither written nor read"
        except PydanticUserError as error:
            if error.code == "class-not-fully-defined":  # as above
                del self.__dict__["adapter"]  # it is made again when that class is there
                return None
            return f"the type {self} cannot be used: {error.message}"
        return None

    def read(self, data: object) -> object:
        """Return the value that JSON data represent, as pydantic converts it.

        Raises:
            InputError: they represent none; the message has pydantic's words.
        """
        try:
            text = json.dumps(data)
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"it is no JSON: {error}") from None
        return self.load(text.encode())

    def load(self, data: bytes) -> object:
        """Return the value in JSON text.

        Raises:
            InputError: there is none.
        """
        from pydantic import ValidationError

        try:
            return self.adapter.validate_json(data)
        except ValidationError as error:
            raise InputError(format_problems(error)) from None

    def check(self, value: object) -> object:
        """Return a value of this hint, converted at most as pydantic's strict mode does: a table may be a model.

        Raises:
            InputError: it is none.
        """
        from pydantic import ValidationError

        if isinstance(value, (collections.abc.Iterator, collections.abc.AsyncIterable, io.IOBase)):
            raise InputError(f"a {type(value).__name__} can be read only once; return what is in it, such as a list")
        try:
            return self.adapter.validate_python(value, strict=True)
        except ValidationError as error:
            raise InputError(f"no acceptable {self}: {format_problems(error)}") from None

    def dump(self, value: object) -> bytes:
        """Return a value as JSON text.

        Raises:
            InputError: a part of it cannot be written.
        """
        return self._write_value(value, round_trip=True)

    def _write_value(self, value: object, *, round_trip: bool) -> bytes:
        from pydantic_core import PydanticSerializationError

        try:
            return self.adapter.dump_json(value, by_alias=True, round_trip=round_trip)
        except PydanticSerializationError as error:
            raise InputError(f"a {self} that cannot be written: {error}") from None

    def canonical(self, value: object) -> bytes:
        """Return the bytes that distinguish a value: tables are equal in any order."""
        return json.dumps(json.loads(self.dump(value)), sort_keys=True).encode()

    def weigh(self, value: object) -> int:
        """Return the number of bytes of a value, once it is known to be one."""
        return len(self.dump(self.check(value)))

    def to_text(self, value: object) -> str:
        """Return a value as text for a model: texts, dates and the like as they are, all else as JSON.

        Raises:
            InputError: a part of it cannot be written.
        """
        shown = self._write_value(value, round_trip=False).decode()
        return str(json.loads(shown)) if shown.startswith('"') else shown


def format_problems(error: ValidationError) -> str:
    """Return what pydantic objects to, in one line: each place with pydantic's words."""
    problems = []
    for one in error.errors(include_url=False, include_context=False)[:_MOST_PROBLEMS]:
        place = ".".join(str(part) for part in one["loc"])
        given = repr(one["input"])
        shown = f" (given {given if len(given) <= 60 else f'{given[:60]}...'})"
        problems.append(f"{place + ': ' if place else ''}{one['msg']}{'' if one['type'] == 'missing' else shown}")
    hidden = error.error_count() - _MOST_PROBLEMS
    return "; ".join(problems) + (f"; and {hidden} more" if hidden > 0 else "")
