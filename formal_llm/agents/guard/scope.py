"""What a condition is about: one event, and what was before it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from formal_llm.agents.guard.data import Undetermined, Value
from formal_llm.planning.json_data import JSON

#: A text of a result that is longer is not read as JSON.
_MOST_JSON = 1_000_000


class LetterMemory(Protocol):
    """What was seen of letters before."""

    def has_happened(self, letter: str, values: tuple[Value, ...]) -> bool:
        """Whether a letter came with these values of its first fields."""

    def get_last_value(self, letter: str, name: str) -> Value:
        """The value of a field of the letter that came last; raises Unsaid where there is none."""


@dataclass(slots=True)
class Scope:
    """What a condition is about: one event, and what was before it."""

    arguments: Mapping[str, JSON]
    names: Mapping[str, Value]
    value: Value = None
    has_value: bool = False
    error: bool = False
    memory: LetterMemory | None = None
    unsaid: list[str] = field(default_factory=list)

    def look_up(self, name: str) -> Value:
        """What a plain name means: for a result a field of what came back, else an argument, else a fact of the event.

        Raises:
            Unsaid: there is nothing of that name.
        """
        if self.has_value:
            if isinstance(self.value, Mapping) and name in self.value:
                return self.value[name]
            if name == "value":
                return self.value
            if name == "error":
                return self.error
            if name == "ok":
                return not self.error
        if name in self.arguments:
            return self.arguments[name]
        if name in self.names:
            return self.names[name]
        raise Undetermined(f"{name} is missing")


def read_json(value: Value) -> Value:
    """What a tool returned: a text that is a JSON object or list, as data."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") and len(value) <= _MOST_JSON:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
