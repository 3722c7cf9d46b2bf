"""Recorded traces as events of a guard: chat messages of OpenAI and Anthropic, and the log of a guard.

The content of a file determines its format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import cast

from formal_llm.authored.files import read_bytes
from formal_llm.errors import RecordError
from formal_llm.guard.audit import FORMAT, read_lines
from formal_llm.guard.events import Call, GuardEvent, Result, Said, from_row
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
        RecordError: it is not.
    """
    if isinstance(value, list):
        for number, one in enumerate(value, 1):
            if not isinstance(one, Mapping):
                raise RecordError(f"{what} {number} is no object")
        return cast("list[Row]", value)
    raise RecordError(f"{what}s are wanted as a list")


#: Roles of instructions, which are not events.
_SILENT = ("system", "developer")
#: The types of blocks that are calls in Anthropic's messages.
_USES = ("tool_use", "server_tool_use", "mcp_tool_use")


def add_messages(made: TraceBuilder, messages: JSON, called: str = "message") -> None:
    """Add chat messages of OpenAI or Anthropic.

    Raises:
        RecordError: they are not a list of objects.
    """
    for number, message in enumerate(require_rows(messages, called), 1):
        place = f"{called} {number}"
        role = get_text(message, "role")
        if role in ("tool", "function"):
            name = get_text(message, "tool_call_id") or get_text(message, "name")
            made.add_result(name, extract_value(message.get("content")), place, tool=get_text(message, "name"))
        elif role in _SILENT:
            continue
        elif role:
            _add_spoken_message(made, message, role, place)
        else:
            made.notes.append(f"{place}: it has no role, and is left out")


def _add_spoken_message(made: TraceBuilder, message: Row, role: str, place: str) -> None:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if isinstance(content, str):
        made.add_text(role, content, place)
    for number, block in enumerate(blocks, 1):
        where = f"{place}, block {number}"
        kind = get_text(block, "type") if isinstance(block, Mapping) else ""
        if isinstance(block, str):
            made.add_text(role, block, where)
        elif not isinstance(block, Mapping):
            made.notes.append(f"{where}: it is no object, and is left out")
        elif kind in _USES:
            made.add_call(get_text(block, "name"), block.get("input"), get_text(block, "id"), where)
        elif kind.endswith("tool_result"):
            failed = block.get("is_error") is True or _is_error(block.get("content"))
            made.add_result(get_text(block, "tool_use_id"), extract_value(block.get("content")), where, error=failed)
        elif kind in ("text", "input_text", "output_text", "refusal"):
            made.add_text(role, extract_text([block]) or get_text(block, "refusal"), where)
    calls = message.get("tool_calls") or []
    for number, call in enumerate(require_rows(calls, f"{place}, call"), 1):
        where = f"{place}, call {number}" if isinstance(calls, list) and len(calls) > 1 else place
        function = call.get("function", call.get("custom"))
        function = function if isinstance(function, Mapping) else call
        arguments = function.get("arguments", function.get("input"))
        made.add_call(get_text(function, "name"), arguments, get_text(call, "id"), where)
    if isinstance(old := message.get("function_call"), Mapping):
        made.add_call(get_text(old, "name"), old.get("arguments"), get_text(old, "name"), place)


def _is_error(content: JSON) -> bool:
    return isinstance(content, Mapping) and get_text(content, "type").endswith("_error")


_WANTED = "wanted are chat messages of OpenAI or Anthropic, or the log of a guard, as JSON or JSON lines"


def read_traces(path: str | Path) -> list[Trace]:
    """Read the traces of a file.

    Raises:
        RecordError: the file cannot be read; the message names file and line.
    """
    try:
        data = read_bytes(path)
    except OSError as error:
        raise RecordError(f"{path}: the file cannot be read: {error.strerror or error}") from error
    try:
        return traces_of(data)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None


def traces_of(data: bytes | str) -> list[Trace]:
    """Read the traces of a text.

    Raises:
        RecordError: the text cannot be read.
    """
    text = data if isinstance(data, str) else _decode_text(data)
    if f'"{FORMAT}"' in text.lstrip()[:200]:
        return [_read_log_trace(text)]
    try:
        parsed = cast("JSON", json.loads(text))
    except (ValueError, RecursionError):
        parsed = _parse_json_lines(text)
    traces = list(_split_traces(parsed))
    if not traces:
        raise RecordError(f"there is no trace in it; {_WANTED}")
    return traces


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordError(f"it is no text in UTF-8 (byte {error.start})") from None


def _parse_json_lines(text: str) -> JSON:
    rows: list[JSON] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append(cast("JSON", json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise RecordError(f"line {number} is no JSON: {error}; {_WANTED}") from None
    return rows


def _split_traces(data: JSON) -> Iterator[Trace]:
    if isinstance(data, list) and data and all(isinstance(one, Mapping) and _is_message(one) for one in data):
        yield _read_conversation({"messages": data}, "trace 1")
    elif isinstance(data, list):
        for number, one in enumerate(data, 1):
            row = {"messages": one} if isinstance(one, list) else one
            if not isinstance(row, Mapping):
                raise RecordError(f"trace {number} is no object; {_WANTED}")
            yield _read_conversation(row, f"trace {number}")
    elif isinstance(data, Mapping):
        yield _read_conversation(data, "trace 1")


def _is_message(row: Row) -> bool:
    return "role" in row and "messages" not in row


def _read_conversation(row: Row, name: str) -> Trace:
    """Read one conversation: an object with its messages, or a request, an answer, or both."""
    builder = TraceBuilder(name, {key: row[key] for key in row if key not in ("messages", "content", "choices")})
    request, answer = row.get("request"), row.get("response")
    if isinstance(request, Mapping) and isinstance(answer, Mapping):
        row = {**answer, **request}
    key = next((key for key in ("messages", "traj", "conversation") if isinstance(row.get(key), list)), "")
    choices = row.get("choices")
    if key:
        add_messages(builder, row[key])
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        add_messages(builder, [choices[0].get("message")], "choice")
    elif get_text(row, "role") and isinstance(row.get("content"), list):
        add_messages(builder, [dict(row)], "answer")
    elif not key:
        raise RecordError(f"{name} has no messages; {_WANTED}")
    return builder.build_trace()


def _read_log_trace(text: str) -> Trace:
    """Read the log of a guard: the events that its state accepted."""
    reading = read_lines(text.encode())
    builder = TraceBuilder("log", {"rules": reading.rules})
    builder.notes += [str(fault) for fault in reading.faults]
    if reading.torn:
        builder.notes.append("the last line was cut off, and never counted")
    for entry in reading.entries:
        row = entry.row.get("event")
        if isinstance(row, Mapping) and entry.row.get("told") is True:
            try:
                event = from_row(row)
            except (KeyError, TypeError, ValueError) as error:
                builder.notes.append(f"line {entry.line}: the event cannot be read ({error}), and is left out")
                continue
            builder.add_event(event, f"line {entry.line}")
            if isinstance(event, Said) and not event.text:
                builder.notes.append(f"line {entry.line}: a text without words")
    return builder.build_trace()
