"""Example traces for rules for tool calls: traces that keep the rules, and traces that break them.

``shop.examples`` is in the folder of ``shop.guard`` and has the same form as examples for any rules
(:mod:`formal_llm.authoring.examples`); each line is an event::

    --- allowed
    user: Please pay order 7.
    approve {"order": 7} -> {"ok": true}
    pay {"order": 7, "amount": 20}

    --- not allowed: nobody approved it
    pay {"order": 7, "amount": 20}

A call is its tool and its arguments as JSON, which are optional; ``approved`` after it means that a person approved it.
An arrow precedes the returned JSON; ``-> error`` means that the call failed. A text is a role, a colon, the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from formal_llm.authored.files import parse_json, read_text
from formal_llm.authoring.examples import Section, examples_beside, sections
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError
from formal_llm.guard.events import Call, GuardEvent, Result, Said
from formal_llm.guard.guard import Guard
from formal_llm.guard.traces import Trace
from formal_llm.guard.verifying import verify_trace
from formal_llm.planning.json_data import JSON

_SAID = re.compile(r"(user|assistant):\s*(.*)")
_BEHIND = re.compile(r"\s*(approved)?\s*(?:->\s*(.+))?")
_FORM = 'write a call, such as: pay {"order": 7} -> "paid", or a text, such as: user: please'


@dataclass(frozen=True)
class TraceExample:
    """A trace, and whether the rules must allow it.

    Attributes:
        trace: the trace; its places are lines of the file.
        allowed: whether the guard must allow all of it.
        why: its description in the file.
    """

    trace: Trace
    allowed: bool
    why: str
    line: int

    def describe_mismatch(self, guard: Guard) -> str:
        """Describe how the rules of a guard contradict the example; return an empty text if they do not."""
        report = verify_trace(guard, self.trace)
        if report.valid == self.allowed:
            return ""
        refused = [one for one in report.violations if one.action in ("block", "ask")]
        return f"{refused[0].place} is refused: {refused[0].reason}" if refused else "allowed, and should not be"


def read_trace_examples(text: str, file: str | None = None) -> tuple[TraceExample, ...]:
    """Read the traces from a text of examples.

    Raises:
        NotationError: a line is neither a call nor a text; the error names its position.
    """
    source = SourceText.from_text(text, file, NotationError)
    examples = []
    for section in sections(source):
        events = list(_read_events(source, section))
        line = source.place_of(section.at).line
        trace = Trace(f"line {line}", tuple(one for one, _ in events), tuple(place for _, place in events))
        examples.append(TraceExample(trace, section.allowed, section.title.partition(":")[2].strip(), line))
    return tuple(examples)


def load_trace_examples(rules: str | Path) -> tuple[TraceExample, ...]:
    """Read the traces beside a rule file, if it has an example file. Raises as :func:`read_trace_examples`."""
    beside = examples_beside(rules)
    return () if beside is None else read_trace_examples(read_text(beside), str(beside))


def _read_events(source: SourceText, section: Section) -> Iterator[tuple[GuardEvent, str]]:
    at = section.begin
    for line in source.text[section.begin : section.end].split("\n"):
        place = source.place_of(at + len(line) - len(line.lstrip()))
        at += len(line) + 1
        match = _SAID.fullmatch(line.strip())
        try:
            events = [Said(match[1], match[2])] if match is not None else _read_call(line.strip(), str(place.line))
        except (ValueError, RecursionError) as error:
            source.fail_at(f"this is no event: {error}", place, suggestion=_FORM)
        yield from ((event, f"line {place.line}") for event in events)


def _read_call(line: str, name: str) -> list[GuardEvent]:
    """Read a call and its result from a line; return nothing for an empty line.

    Raises:
        ValueError, RecursionError: the line contains something else.
    """
    tool, _, rest = line.partition(" ")
    arguments: Mapping[str, JSON] = {}
    rest = rest.lstrip()
    if rest.startswith("{"):
        _, end = json.JSONDecoder().raw_decode(rest)
        arguments, rest = cast("Mapping[str, JSON]", parse_json(rest[:end], once=True)), rest[end:]
    match = _BEHIND.fullmatch(rest)
    if tool.startswith(("->", "{")):
        raise ValueError("the name of a tool stands first")
    if match is None:
        raise ValueError(f"{rest.strip()!r} is neither arguments nor a result")
    events: list[GuardEvent] = [Call(tool, arguments, name, approved=match[1] is not None)] if tool else []
    if match[2] is not None:
        failed = match[2].strip() == "error"
        value = None if failed else cast("JSON", parse_json(match[2]))
        events.append(Result(tool, arguments, value, name, error=failed))
    return events
