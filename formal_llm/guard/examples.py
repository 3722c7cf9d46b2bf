"""Examples of traces beside rules for tool calls: such that keep the rules, and such that break them.

``shop.examples`` lies beside ``shop.guard``, in the form of examples beside any rules
(:mod:`formal_llm.authoring.examples`); a line is an event::

    --- allowed
    user: Please pay order 7.
    approve {"order": 7} -> {"ok": true}
    pay {"order": 7, "amount": 20}

    --- not allowed: nobody approved it
    pay {"order": 7, "amount": 20}

A call is its tool and its arguments as JSON, which may be left out; ``approved`` behind it: a person approved it.
Behind an arrow stands what it returned, as JSON; ``-> error`` says that it failed. A text is a role, a colon, the text.
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
from formal_llm.guard.traces.trace import Trace
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
        allowed: whether nothing of it may be refused.
        why: what is said of it in the file.
        line: where it stands in its file.
    """

    trace: Trace
    allowed: bool
    why: str
    line: int

    def describe_mismatch(self, guard: Guard) -> str:
        """In what the rules of a guard do not keep it; empty where they do."""
        report = verify_trace(guard, self.trace, repair=False)
        if report.valid == self.allowed:
            return ""
        refused = [one for one in report.violations if one.action in ("block", "ask")]
        return f"{refused[0].place} is refused: {refused[0].reason}" if refused else "allowed, and should not be"


def read_trace_examples(text: str, file: str | None = None) -> tuple[TraceExample, ...]:
    """The traces that a text of examples holds.

    Raises:
        NotationError: a line is neither a call nor a text; with its place.
    """
    source = SourceText.from_text(text, file, NotationError)
    found = []
    for section in sections(source):
        events = list(_read_events(source, section))
        line = source.place_of(section.at).line
        trace = Trace(f"line {line}", tuple(one for one, _ in events), tuple(place for _, place in events))
        found.append(TraceExample(trace, section.allowed, section.title.partition(":")[2].strip(), line))
    return tuple(found)


def load_trace_examples(rules: str | Path) -> tuple[TraceExample, ...]:
    """The traces beside a file of rules; none where there is no such file. Raises as :func:`read_trace_examples`."""
    beside = examples_beside(rules)
    return () if beside is None else read_trace_examples(read_text(beside), str(beside))


def _read_events(source: SourceText, section: Section) -> Iterator[tuple[GuardEvent, str]]:
    at = section.begin
    for line in source.text[section.begin : section.end].split("\n"):
        place = source.place_of(at + len(line) - len(line.lstrip()))
        at += len(line) + 1
        said = _SAID.fullmatch(line.strip())
        try:
            events = [Said(said[1], said[2])] if said is not None else _read_call(line.strip(), str(place.line))
        except (ValueError, RecursionError) as error:
            source.fail_at(f"this is no event: {error}", place, suggestion=_FORM)
        yield from ((event, f"line {place.line}") for event in events)


def _read_call(line: str, name: str) -> list[GuardEvent]:
    """The call that a line writes, and its result; nothing of an empty line.

    Raises:
        ValueError, RecursionError: it writes something else.
    """
    tool, _, rest = line.partition(" ")
    arguments: Mapping[str, JSON] = {}
    rest = rest.lstrip()
    if rest.startswith("{"):
        _, end = json.JSONDecoder().raw_decode(rest)
        arguments, rest = cast("Mapping[str, JSON]", parse_json(rest[:end], once=True)), rest[end:]
    found = _BEHIND.fullmatch(rest)
    if tool.startswith(("->", "{")):
        raise ValueError("the name of a tool stands first")
    if found is None:
        raise ValueError(f"{rest.strip()!r} is neither arguments nor a result")
    events: list[GuardEvent] = [Call(tool, arguments, name, approved=found[1] is not None)] if tool else []
    if found[2] is not None:
        failed = found[2].strip() == "error"
        value = None if failed else cast("JSON", parse_json(found[2]))
        events.append(Result(tool, arguments, value, name, error=failed))
    return events
