"""Whole runs of writers, with a world that writes what it likes; what is told is checked on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from formal_llm.agents import Correction, Markers, Monitor, Segment, Transcript
from formal_llm.agents.decoding.writer import Due, SegmentBegan, Spent, Text, Writer, WriterEvent, added
from formal_llm.llms import LLM, Question, Wrapper
from formal_llm.llms.wrappers import Steps

#: What models may write that has something to do with markers, or nothing.
BITS = ["so ", "\n", " ", "[", "]", "[A", "[B]", "[Ab]", "[\\A]", "[A]", "[Abc]", "C", "é", "\ud83d", "the end", "\\"]
#: Markers that begin alike; the last one stands in none of the others.
MARKERS = Markers({"a": "[A]", "b": "[Ab]", "c": "[Abc]"})
bits = st.lists(st.lists(st.sampled_from(BITS), max_size=6).map("".join), max_size=12)


class Endless(Exception):
    """The world was asked too often."""


class Continues(Wrapper):
    """A model that goes on with a text, and does nothing else."""

    def __init__(self, llm: LLM) -> None:
        super().__init__(llm)
        self.can = frozenset({"continue"})
        self.stream = llm.stream  # type: ignore[method-assign]

    def around(self, request: Question) -> Steps:
        assert request.kind == "continue"
        return (yield request)  # type: ignore[no-any-return]


def markers_for(monitor: Monitor) -> Markers:
    """Markers for all that rules know."""
    return Markers({name: MARKERS.marker(name) or f"[A]{name}" for name in monitor.names})


def in_turn(texts: Sequence[str]) -> Callable[[object], str]:
    """Texts again and again; nothing where there are none."""
    asked: list[object] = []

    def written(question: object) -> str:
        asked.append(question)
        return texts[(len(asked) - 1) % len(texts)] if texts else ""

    return written


def run(
    writer: Writer,
    monitor: Monitor,
    begun: Transcript | None = None,
    *,
    world: Mapping[str, str] | None = None,
    contents: Mapping[str, Any] | None = None,
    markers: Markers = MARKERS,
    most: int = 200,
    awaited: bool = False,
) -> Transcript:
    """A run to its end; the world says of each of its states always the same."""
    transcript, world = begun or Transcript("test"), world or {}
    for _ in range(most):
        due = None
        state, pieces = None, ""
        before = monitor
        how: dict[str, Any] = {"until": world, "contents": contents}
        going = _awaited(writer.awrite(transcript, monitor, **how)) if awaited else None
        for told in going or writer.write(transcript, monitor, **how):
            assert due is None, "nothing comes behind what is due"
            match told:
                case SegmentBegan(state):
                    assert before.allows(state)
                    assert state not in world
                    pieces = ""
                case Text(text):
                    assert state is not None
                    pieces += text
                case Segment(name, text):
                    assert name == state
                    assert text == markers.restore(pieces.strip())
                    before, state = before.after(name), None
                case Correction():
                    check(told, transcript, before, markers, in_text=state is not None)
                case Due(states):
                    due = states
                    assert all(before.allows(name) and name in world for name in states)
                case Spent():
                    pass
            transcript = added(transcript, told)
        assert state is None
        monitor = monitor.after_all(transcript.word[len(monitor) :])
        assert monitor == before
        if due is None:
            assert monitor.may_stop()
            check_record(transcript, markers)
            return transcript
        transcript = transcript.plus(Segment(due[0], world[due[0]], "environment"))
        monitor = monitor.after(due[0])
    raise Endless


def _awaited(coming: AsyncIterator[WriterEvent]) -> Iterator[WriterEvent]:
    """What an event loop of its own brings, one thing at a time; what is raised is raised where it comes."""
    with asyncio.Runner() as runner:
        while (told := runner.run(_next(coming))) is not None:
            yield told


async def _next(coming: AsyncIterator[WriterEvent]) -> WriterEvent | None:
    return await anext(coming, None)


def check(one: Correction, transcript: Transcript, monitor: Monitor, markers: Markers, *, in_text: bool) -> None:
    """A correction tells what is true where it is made."""
    assert one.position == len(transcript)
    assert one.reason
    if not in_text and one.legal:
        assert one.legal == tuple(dict.fromkeys(str(markers.marker(name)) for name in monitor.allowed()))
        assert one.written not in one.legal or one.done == one.written
        assert one.done == "" or any(legal.startswith(one.done) for legal in one.legal)


def check_record(transcript: Transcript, markers: Markers) -> None:
    """What stands in the transcript is what the record says, the last at each place."""
    for one in {one.position: one for one in transcript.corrections}.values():
        if one.position == len(transcript):
            assert not one.done
        elif one.done and any(one.done in marker for marker in markers.states):
            marker = str(markers.marker(transcript.segments[one.position].state))
            assert marker.startswith(one.done) or transcript.segments[one.position].text.startswith(one.done)
