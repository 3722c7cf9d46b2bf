"""Traces from files: which format it is, is seen from what stands in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from formal_llm.agents.guard.audit import FORMAT, read_lines
from formal_llm.agents.guard.events import Said, from_row
from formal_llm.agents.guard.traces.messages import add_items, add_messages
from formal_llm.agents.guard.traces.spans import build_span_traces, is_spans
from formal_llm.agents.guard.traces.trace import Row, Trace, TraceBuilder, get_text
from formal_llm.agents.transcript import Transcript
from formal_llm.authored.files import read_bytes
from formal_llm.errors import TraceError
from formal_llm.planning.json_data import JSON

_TRANSCRIPT = "formal-llm transcript"
#: ``Search[Paris]``: how agents write calls in the text of a state.
_WRITTEN_CALL = re.compile(r"\s*([A-Za-z_][\w.-]*)\[(.*)\]\s*", re.DOTALL)
_WANTED = (
    "wanted are messages of OpenAI or Anthropic, items of Responses, spans of OpenTelemetry, a transcript, or the log "
    "of a guard, as JSON or JSON lines"
)
#: Roles and types by which lines are known to be those of one conversation.
_ITEM_KEYS = ("role", "type")


def read_traces(path: str | Path) -> list[Trace]:
    """The traces of a file.

    Raises:
        TraceError: it cannot be read; the message names file and line.
    """
    try:
        data = read_bytes(path)
    except OSError as error:
        raise TraceError(f"{path}: the file cannot be read: {error.strerror or error}") from error
    try:
        return traces_of(data)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None


def traces_of(data: bytes | str) -> list[Trace]:
    """The traces of a text.

    Raises:
        TraceError: it cannot be read.
    """
    text = data if isinstance(data, str) else _decode_text(data)
    first = text.lstrip()[:200]
    if f'"{FORMAT}"' in first:
        return [_read_log_trace(text)]
    if f'"{_TRANSCRIPT}' in first:
        return [_read_transcript(text)]
    try:
        whole = cast("JSON", json.loads(text))
    except (ValueError, RecursionError):
        whole = _parse_json_lines(text)
    made = list(_split_traces(whole))
    if not made:
        raise TraceError(f"there is no trace in it; {_WANTED}")
    return made


def _decode_text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TraceError(f"it is no text in UTF-8 (byte {error.start})") from None


def _parse_json_lines(text: str) -> JSON:
    rows: list[JSON] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append(cast("JSON", json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise TraceError(f"line {number} is no JSON: {error}; {_WANTED}") from None
    return rows


def _split_traces(data: JSON) -> Iterator[Trace]:
    if is_spans(data):
        yield from build_span_traces(data)
    elif isinstance(data, list) and data and all(_is_item(one) for one in data):
        yield _read_conversation({"messages": data}, "trace 1")
    elif isinstance(data, list):
        for number, one in enumerate(data, 1):
            row = {"messages": one} if isinstance(one, list) else one
            if not isinstance(row, Mapping):
                raise TraceError(f"trace {number} is no object; {_WANTED}")
            yield _read_conversation(row, f"trace {number}")
    elif isinstance(data, Mapping):
        yield _read_conversation(data, "trace 1")


def _is_item(one: JSON) -> bool:
    return isinstance(one, Mapping) and any(key in one for key in _ITEM_KEYS) and "messages" not in one


def _read_conversation(row: Row, name: str) -> Trace:
    """One conversation: an object with its messages, or the request and the answer of Responses."""
    facts = {
        key: value for key, value in row.items() if key not in ("messages", "input", "output", "content", "choices")
    }
    made = TraceBuilder(name, facts)
    request, answer = row.get("request"), row.get("response")
    if isinstance(request, Mapping) and isinstance(answer, Mapping):
        row = {**answer, **request}
    known = False
    for key in ("messages", "traj", "conversation"):
        if isinstance(row.get(key), list):
            _add_messages_or_items(made, row[key])
            known = True
            break
    if isinstance(row.get("input"), list | str) and not known:
        _add_messages_or_items(made, row["input"], "input item")
        known = True
    if isinstance(row.get("output"), list):
        add_items(made, row["output"], "output item")
        known = True
    if isinstance(choices := row.get("choices"), list) and choices and isinstance(choices[0], Mapping):
        add_messages(made, [choices[0].get("message")], "choice")
        known = True
    if get_text(row, "role") and isinstance(row.get("content"), list) and not known:
        add_messages(made, [dict(row)], "answer")
        known = True
    if not known:
        raise TraceError(f"{name} has no messages; {_WANTED}")
    return made.build_trace()


def _add_messages_or_items(made: TraceBuilder, items: JSON, called: str = "message") -> None:
    """Messages of chats, or items of Responses."""
    if isinstance(items, str):
        made.add_text("user", items, called)
    elif isinstance(items, list) and any(
        isinstance(one, Mapping) and get_text(one, "type") and get_text(one, "type") != "message" for one in items
    ):
        add_items(made, items, called)
    else:
        add_messages(made, items, called)


def _read_transcript(text: str) -> Trace:
    """A transcript of ours: a state of the model that the environment answers is a call, its text the argument."""
    try:
        transcript = Transcript.from_jsonl(text)
    except ValueError as error:
        raise TraceError(str(error)) from error
    made = TraceBuilder(transcript.agent, {"agent": transcript.agent})
    segments = transcript.segments
    for number, segment in enumerate(segments):
        place = f"segment {number + 1}"
        answered = number + 1 < len(segments) and segments[number + 1].source == "environment"
        if segment.source == "environment":
            made.add_result(f"segment {number}", segment.text, place, tool="" if number else segment.state)
        elif segment.source == "user":
            made.add_text("user", segment.text, place)
        elif answered:
            written = _WRITTEN_CALL.fullmatch(segment.text)
            tool, argument = (written[1], written[2]) if written else (segment.state, segment.text)
            made.add_call(tool, {"text": argument, "state": segment.state}, place, place)
        else:
            made.add_text("assistant", segment.text, place)
    return made.build_trace()


def _read_log_trace(text: str) -> Trace:
    """The log of a guard: what it was told, and what it refused."""
    reading = read_lines(text.encode())
    made = TraceBuilder("log", {"rules": reading.rules})
    made.notes += [str(fault) for fault in reading.faults]
    if reading.torn:
        made.notes.append("the last line was cut off, and never counted")
    for entry in reading.entries:
        row = entry.row.get("event")
        if isinstance(row, Mapping) and entry.row.get("told") is True:
            try:
                event = from_row(row)
            except (KeyError, TypeError, ValueError) as error:
                made.notes.append(f"line {entry.line}: the event cannot be read ({error}), and is left out")
                continue
            made.add_event(event, f"line {entry.line}")
            if isinstance(event, Said) and not event.text:
                made.notes.append(f"line {entry.line}: a text without words")
    return made.build_trace()
