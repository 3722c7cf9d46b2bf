"""A trace: what an agent called, what came back, and what was said, each with the place where it is recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from formal_llm.errors import TraceError
from formal_llm.guard.events import Call, GuardEvent, Result, Said
from formal_llm.guard.shell.commands import add_shell_commands
from formal_llm.planning.json_data import JSON

#: A JSON object.
Row = Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class Trace:
    """What happened in one run of an agent.

    Attributes:
        name: which one it is.
        events: what happened.
        places: where each event is recorded, as a person finds it: ``"message 7"``.
        facts: what is recorded about the run besides.
        notes: what was left out, and why.
    """

    name: str
    events: tuple[GuardEvent, ...] = ()
    places: tuple[str, ...] = ()
    facts: Row = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()


class TraceBuilder:
    """A trace while it is read. Results find their calls by id: the last call that has it."""

    def __init__(self, name: str, facts: Row | None = None) -> None:
        self.name = name
        self.facts: Row = facts or {}
        self.events: list[GuardEvent] = []
        self.places: list[str] = []
        self.notes: list[str] = []
        self._calls: dict[str, Call] = {}

    def add_event(self, event: GuardEvent, place: str) -> None:
        """An event."""
        self.events.append(event)
        self.places.append(place)

    def add_text(self, role: str, text: str, place: str, at: datetime | None = None) -> None:
        """A text; an empty one is none."""
        if text:
            self.add_event(Said(role, text, at), place)

    def add_call(self, tool: str, arguments: JSON, name: str, place: str, at: datetime | None = None) -> None:
        """A call; its arguments are an object, or a text that writes one."""
        if isinstance(arguments, str):
            try:
                arguments = cast("JSON", json.loads(arguments or "{}"))
            except (ValueError, RecursionError):
                self.notes.append(f"{place}: the arguments of {tool} are no JSON; they stand as one text, `text`")
                arguments = {"text": arguments}
        if not isinstance(arguments, Mapping):
            arguments = {} if arguments is None else {"value": arguments}
        call = Call(tool, add_shell_commands(tool, arguments), name, at=at)
        self._calls[name] = call
        self.add_event(call, place)

    def add_result(
        self, name: str, value: JSON, place: str, *, tool: str = "", error: bool = False, at: datetime | None = None
    ) -> None:
        """What came back of the call with an id."""
        call = self._calls.get(name)
        if call is None and not tool:
            self.notes.append(f"{place}: a result of a call that is not recorded ({name}) is left out")
            return
        arguments = call.arguments if call is not None else {}
        self.add_event(Result(tool or (call.tool if call else ""), arguments, value, name, error, at), place)

    def build_trace(self) -> Trace:
        """The trace."""
        return Trace(self.name, tuple(self.events), tuple(self.places), self.facts, tuple(self.notes))


def extract_text(value: JSON) -> str:
    """A text, or the texts among the parts of a content."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(part for part in map(_extract_part_text, value) if part)
    return ""


def _extract_part_text(part: JSON) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        found = part.get("text", part.get("content"))
        return found if isinstance(found, str) else extract_text(found) if isinstance(found, list) else ""
    return ""


def extract_value(value: JSON) -> JSON:
    """What a tool returned: the text of a content made of texts, else as it is."""
    texts = ("text", "input_text", "output_text")
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, Mapping) and one.get("type") in texts for one in value)
    ):
        return extract_text(value)
    return value


def get_text(row: Row, key: str) -> str:
    """A text of an object; empty where there is none."""
    found = row.get(key)
    return found if isinstance(found, str) else ""


def require_rows(value: JSON, what: str) -> list[Row]:
    """A list of objects.

    Raises:
        TraceError: it is none.
    """
    if isinstance(value, list):
        for number, one in enumerate(value, 1):
            if not isinstance(one, Mapping):
                raise TraceError(f"{what} {number} is no object")
        return cast("list[Row]", value)
    raise TraceError(f"{what}s are wanted as a list")
