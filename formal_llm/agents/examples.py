"""Examples for the prompt of an agent: transcripts in a text file, checked against the rules like any other trace.

``react.examples`` lies beside ``react.agent``::

    # What comes before the first line of dashes is a comment.
    --- a sum
    [Question] What is 2 + 2?
    [Thought] ...

    --- the next one
    [Question] ...

A line that begins with three dashes begins an example; what follows the dashes is its title. In the texts of segments,
blanks at the ends do not count, and a marker that is meant as text has a backslash after its first sign.

It is the format of :mod:`formal_llm.authoring.examples`: an example whose title begins with ``not allowed`` must be
refused, and one that is the names of states alone is a plan. Neither is shown to a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from formal_llm import authored
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Author, Segment, Transcript
from formal_llm.authored.files import read_text
from formal_llm.authoring.examples import Section, examples_beside, plan_of, sections
from formal_llm.automata import Behaviour
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError, did_you_mean

__all__ = ["examples_beside", "load_examples", "read_examples"]

_LIKE_A_MARKER = re.compile(r"^\[[^\[\]\n]{1,40}\]", re.MULTILINE)


class _MarkedSpan(NamedTuple):
    """A marker in a text, where it begins, and where its text begins and ends."""

    marker: str
    at: int
    begin: int
    end: int


def read_examples(text: str, behaviour: Behaviour, file: str | None = None) -> tuple[Transcript, ...]:
    """The examples that a text holds, each a whole run that the behaviour allows.

    Messages name the ``file``.

    Raises:
        NotationError: the first place where an example leaves the rules: line, column, caret, and what was allowed
            there; what looks like a marker and is none; a text without any example.
    """
    return _AgentExampleReader(SourceText.from_text(text, file, NotationError), behaviour).read_all()


def load_examples(name: str) -> tuple[Transcript, ...]:
    """The examples beside an ``.agent`` file, which is named by its path or, a shipped one, by its name.

    Raises:
        ResourceNotFound: there is no such behaviour.
        NotationError: as of :func:`read_examples`.
    """
    path = authored.find("agents", name, (".agent",))
    beside = examples_beside(path)
    return () if beside is None else read_examples(read_text(beside), Behaviour.from_file(path), str(beside))


class _AgentExampleReader:
    def __init__(self, source: SourceText, behaviour: Behaviour) -> None:
        self.source = source
        self.behaviour = behaviour
        self.markers = Markers.of(behaviour)
        self.monitor = Monitor(behaviour)

    def read_all(self) -> tuple[Transcript, ...]:
        text = self.source.text
        found = sections(self.source)
        runs = [one for one in found if plan_of(text[one.begin : one.end], self.behaviour.terminals) is None]
        for one in runs:
            if not one.allowed:
                self._check_refused(one)
        return tuple(self._read_example(one.begin, one.end) for one in runs if one.allowed)

    def _check_refused(self, section: Section) -> None:
        """An example that must leave the rules somewhere."""
        try:
            self._read_example(section.begin, section.end)
        except NotationError:
            return
        self.source.fail_at("this run should not be allowed, and the rules allow it", self.source.place_of(section.at))

    def _read_example(self, begin: int, end: int) -> Transcript:
        text = self.source.text
        monitor = self.monitor
        segments: list[Segment] = []
        last = begin
        for found in self._iter_marked_spans(begin, end):
            if not segments and text[begin : found.at].strip():
                self._reject_stray_text(begin, found.at)
            states = self.markers.states[found.marker]
            state = next((name for name in states if monitor.allows(name)), None)
            if state is None:
                refused = monitor.why(states[0])
                because = "".join(f" because of {rule}" for rule in refused.limits) if refused is not None else ""
                self.source.fail_at(
                    f"{found.marker} cannot stand here{because}", self.source.place_of(found.at),
                    expected=self._list_allowed(monitor),
                )  # fmt: skip
            monitor = monitor.after(state)
            written = self._read_segment_text(found.begin, found.end)
            outside = self.behaviour.states[state].from_environment
            author: Author = "environment" if outside else "model" if segments else "user"
            segments.append(Segment(state, written, author))
            last = found.begin + len(text[found.begin : found.end].rstrip())
        if not segments and text[begin:end].strip():
            self._reject_stray_text(begin, end)
        if not monitor.may_stop():
            what = "the example ends too early" if segments else "the example is empty"
            self.source.fail_at(what, self.source.place_of(last), expected=self._list_allowed(monitor))
        return Transcript(self.behaviour.name, tuple(segments))

    def _iter_marked_spans(self, begin: int, end: int) -> Iterator[_MarkedSpan]:
        text = self.source.text[:end]
        now = self.markers.search(text, begin)
        while now is not None:
            following = self.markers.search(text, now[1])
            yield _MarkedSpan(text[now[0] : now[1]], now[0], now[1], end if following is None else following[0])
            now = following

    def _read_segment_text(self, begin: int, end: int) -> str:
        """The text of a segment; a line that begins with what is almost a marker is a slip."""
        text = self.source.text[begin:end]
        for match in _LIKE_A_MARKER.finditer(text):
            near = did_you_mean(match[0], self.markers.states)
            if near is not None and (begin + match.start() == 0 or self.source.text[begin + match.start() - 1] == "\n"):
                self.source.fail_at(
                    f"{match[0]} is no marker of {self.behaviour.name}", self.source.place_of(begin + match.start()),
                    suggestion=f"did you mean {near}? As text, write [{self.markers.sign}{match[0][1:]}",
                )  # fmt: skip
        return self.markers.restore(text.strip())

    def _reject_stray_text(self, begin: int, end: int) -> None:
        text = self.source.text[begin:end]
        at = begin + len(text) - len(text.lstrip())
        self._read_segment_text(at, end)
        self.source.fail_at(
            "there is text before the first marker", self.source.place_of(at), expected=self._list_allowed(self.monitor)
        )

    def _list_allowed(self, monitor: Monitor) -> list[str]:
        """What could stand somewhere, as it is written."""
        states = [self.behaviour.states[name] for name in monitor.allowed()]
        return [state.text or state.name for state in states] + (["the end"] if monitor.may_stop() else [])
