"""A trace: the calls of an agent, their results, and the texts, each with the place where it is recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from formal_llm.errors import TraceError
from formal_llm.guard.events import Call, GuardEvent, Result, Said
from formal_llm.guard.shell import add_effects
from formal_llm.planning.json_data import JSON

#: A JSON object.
Row = Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of one run of an agent.

    Attributes:
        places: where each event is recorded, in a readable form: ``"message 7"``.
        facts: other recorded data about the run.
        notes: what was omitted, and why.
    """

    name: str
    events: tuple[GuardEvent, ...] = ()
    places: tuple[str, ...] = ()
    facts: Row = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()


class TraceBuilder:
    """A builder of a trace while it is read. A result belongs to the last call with its id."""

    def __init__(self, name: str, facts: Row | None = None) -> None:
        self.name = name
        self.facts: Row = facts or {}
        self.events: list[GuardEvent] = []
        self.places: list[str] = []
        self.notes: list[str] = []
        self._calls: dict[str, Call] = {}

    def add_event(self, event: GuardEvent, place: str) -> None:
        """Add an event."""
        self.events.append(event)
        self.places.append(place)

    def add_text(self, role: str, text: str, place: str, at: datetime | None = None) -> None:
        """Add a text unless it is empty."""
        if text:
            self.add_event(Said(role, text, at), place)

    def add_call(self, tool: str, arguments: JSON, name: str, place: str, at: datetime | None = None) -> None:
        """Add a call; its arguments are an object, or a text that contains one."""
        if isinstance(arguments, str):
            try:
                arguments = cast("JSON", json.loads(arguments or "{}"))
            except (ValueError, RecursionError):
                self.notes.append(f"{place}: the arguments of {tool} are no JSON; they stand as one text, `text`")
                arguments = {"text": arguments}
        if not isinstance(arguments, Mapping):
            arguments = {} if arguments is None else {"value": arguments}
        call = Call(tool, add_effects(tool, arguments), name, at=at)
        self._calls[name] = call
        self.add_event(call, place)

    def add_result(
        self, name: str, value: JSON, place: str, *, tool: str = "", error: bool = False, at: datetime | None = None
    ) -> None:
        """Add the result of the call with an id."""
        call = self._calls.get(name)
        if call is None and not tool:
            self.notes.append(f"{place}: a result of a call that is not recorded ({name}) is left out")
            return
        arguments = call.arguments if call is not None else {}
        self.add_event(Result(tool or (call.tool if call else ""), arguments, value, name, error, at), place)

    def build_trace(self) -> Trace:
        """Build the trace."""
        return Trace(self.name, tuple(self.events), tuple(self.places), self.facts, tuple(self.notes))


def extract_text(value: JSON) -> str:
    """Extract a text, or the texts among the parts of a content."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(part for part in map(_extract_part_text, value) if part)
    return ""


def _extract_part_text(part: JSON) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        text = part.get("text", part.get("content"))
        return text if isinstance(text, str) else extract_text(text) if isinstance(text, list) else ""
    return ""


def extract_value(value: JSON) -> JSON:
    """Extract the result of a tool: the text of a content that consists of texts, else the unchanged value."""
    texts = ("text", "input_text", "output_text")
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, Mapping) and one.get("type") in texts for one in value)
    ):
        return extract_text(value)
    return value


def get_text(row: Row, key: str) -> str:
    """Return a text of an object; empty if there is none."""
    found = row.get(key)
    return found if isinstance(found, str) else ""


def require_rows(value: JSON, what: str) -> list[Row]:
    """Check that a value is a list of objects, and return it.

    Raises:
        TraceError: it is not.
    """
    if isinstance(value, list):
        for number, one in enumerate(value, 1):
            if not isinstance(one, Mapping):
                raise TraceError(f"{what} {number} is no object")
        return cast("list[Row]", value)
    raise TraceError(f"{what}s are wanted as a list")
