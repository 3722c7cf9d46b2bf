"""Transcripts: what an agent wrote and read, state by state, and what was corrected.

A transcript has two written forms. JSON lines hold all of it: a line that names the agent, one for each segment, one
for each correction, one for the usage. The text form is what a model reads, marker by marker::

    [Question] How tall is the tower of the town hall?
    [Thought] I look it up.

Reading either form back yields the same segments. In the text form, markers inside the texts of segments are escaped.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Event, Monitor
from formal_llm.authored.tables import AlternativeShape, Items, Keys, NamedEntries, Shape, problems
from formal_llm.automata import Behaviour, Word
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.errors import RecordError
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import WIDTH, Arrow, Box, BoxKind, Picture, cut_lines, shorten, wrap_text
from formal_llm.planning.checking.verify import Verification
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage

#: The author of a segment's text; ``"forced"`` means that the rules left no choice.
Author = Literal["user", "model", "environment", "forced"]
_FORMAT = "formal-llm transcript 1"


@dataclass(frozen=True, slots=True)
class Segment:
    """One state of an agent, and its text.

    Attributes:
        text: what was written in it, without its marker.
        source: who wrote it.
    """

    state: str
    text: str = ""
    source: Author = "model"

    def __post_init__(self) -> None:
        if self.source not in get_args(Author):
            raise ValueError(f"a segment is written by one of {', '.join(get_args(Author))}, not {self.source!r}")

    @property
    def event(self) -> Event:
        """The segment as an event for a monitor: its text and its author are the data."""
        return Event(self.state, {"text": self.text, "source": self.source})


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of something that was written against the rules.

    Attributes:
        position: the number of segments before it.
        written: what was written: a marker, the name of a tool, a text; empty if it ended.
        legal: what could have been written.
        done: the replacement; empty if it was dropped. It equals ``written`` if the text was kept: an action that was
            not carried out.
        reason: why it was not allowed.
    """

    position: int
    written: str
    legal: tuple[str, ...] = ()
    done: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "legal", tuple(self.legal))

    def __str__(self) -> str:
        instead = f"; {self.done!r} stands there instead" if self.done else "; it was left out"
        if self.done == self.written:
            instead = "; it stands there, and was not carried out"
        legal = f" (allowed: {', '.join(self.legal)})" if self.legal else ""
        what = repr(self.written) if self.written else "the end"
        return f"segment {self.position + 1}: {what} was not allowed{legal}{instead}"


class StateUsage(NamedTuple):
    """The usage of a state.

    Attributes:
        times: how often the state occurs in the transcript.
        corrections: how often something written in its place was corrected.
    """

    times: int
    corrections: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Transcript(Drawable):
    """The record of a run: what an agent wrote and read.

    Attributes:
        agent: the name of the behaviour.
        segments: the states in order, each with its text.
        took: the usage for writing each state; under an empty name, the usage between states.
    """

    agent: str
    segments: tuple[Segment, ...] = ()
    corrections: tuple[Correction, ...] = ()
    took: Mapping[str, Usage] = FrozenDict()

    def __post_init__(self) -> None:
        object.__setattr__(self, "segments", tuple(self.segments))
        object.__setattr__(self, "corrections", tuple(self.corrections))
        object.__setattr__(self, "took", FrozenDict(self.took))

    @property
    def picture(self) -> Picture:
        """The segments from top to bottom."""
        return transcript_picture(self)

    def __len__(self) -> int:
        """The number of segments."""
        return len(self.segments)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return "\n".join(f"{segment.state}: {segment.text}" for segment in self.segments)

    @property
    def word(self) -> Word:
        """The states, as a word of the behaviour."""
        return tuple(segment.state for segment in self.segments)

    @property
    def events(self) -> tuple[Event, ...]:
        """The segments as events for a monitor: their texts and authors are the data."""
        return tuple(segment.event for segment in self.segments)

    @property
    def answer(self) -> str:
        """The text of the last segment without surrounding blanks; empty if there is none."""
        return self.segments[-1].text.strip() if self.segments else ""

    @property
    def usage(self) -> Usage:
        """The total usage."""
        return sum(self.took.values(), Usage())

    @property
    def by_state(self) -> Mapping[str, StateUsage]:
        """The usage of each state in order of first occurrence; last, under an empty name, what belongs to none."""
        times = Counter(self.word)
        at = [self.word[one.position] if one.position < len(self) else "" for one in self.corrections]
        corrected = Counter(at)
        names = dict.fromkeys((*self.word, *(name for name in self.took if name)))
        names |= dict.fromkeys([""] if "" in self.took or "" in corrected else [])
        return {name: StateUsage(times[name], corrected[name], self.took.get(name, Usage())) for name in names}

    def text_of(self, state: str) -> str | None:
        """Return the text of the last segment in a state; None if there is none."""
        return next((one.text for one in reversed(self.segments) if one.state == state), None)

    def plus(
        self, *segments: Segment, corrections: Iterable[Correction] = (), usage: Usage | None = None, state: str = ""
    ) -> Transcript:
        """Return this transcript with additions at its end; ``usage`` is the usage for writing ``state``."""
        return replace(
            self,
            segments=(*self.segments, *segments),
            corrections=(*self.corrections, *corrections),
            took=self.took if usage is None else {**self.took, state: self.took.get(state, Usage()) + usage},
        )

    def verify(self, rules: Monitor | Behaviour, *, repair: bool = False) -> Verification:
        """Verify that the states are a word of the rules, as :meth:`Monitor.verify` does."""
        monitor = Monitor(rules) if isinstance(rules, Behaviour) else rules
        return monitor.verify(self.events, repair=repair)

    def to_jsonl(self) -> str:
        """Return the transcript as JSON lines; each ends with a line break."""
        rows: list[Mapping[str, JSON]] = [{"format": _FORMAT, "agent": self.agent}]
        rows += [asdict(segment) for segment in self.segments]
        rows += [{"correction": asdict(correction)} for correction in self.corrections]
        rows += [{"usage": asdict(usage), **({"state": state} if state else {})} for state, usage in self.took.items()]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    @classmethod
    def from_jsonl(cls, text: str) -> Transcript:
        """Read the transcript that :meth:`to_jsonl` wrote.

        Raises:
            RecordError: a line is damaged; the message names it.
        """
        agent: str | None = None
        segments: list[Segment] = []
        corrections: list[Correction] = []
        took: dict[str, Usage] = {}
        # Only "\n" separates lines: texts may contain other characters that str.splitlines treats as line breaks.
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                row = _read_row(line, number, _HEAD if agent is None else _ROW)
                try:
                    if agent is None:
                        agent = row["agent"]
                    elif "correction" in row:
                        corrections.append(Correction(**row["correction"]))
                    elif "usage" in row:
                        state = row.get("state", "")
                        took[state] = took.get(state, Usage()) + Usage(**row["usage"])
                    else:
                        segments.append(Segment(**row))
                except TypeError as error:
                    raise RecordError(f"line {number} of the transcript is damaged: {error}") from error
        if agent is None:
            raise RecordError("the transcript is empty; its first line says whose it is")
        return cls(agent, tuple(segments), tuple(corrections), took)

    def to_text(self, markers: Markers | Behaviour) -> str:
        """Write the text form: each segment after its marker, on a line of its own; markers inside texts are escaped.

        Raises:
            RecordError: a state has no marker.
        """
        markers = Markers.of(markers) if isinstance(markers, Behaviour) else markers
        lines = []
        for segment in self.segments:
            marker = markers.marker(segment.state)
            if marker is None:
                raise RecordError(f"the state {segment.state} has no text that announces it")
            lines.append(f"{marker} {markers.escape(segment.text)}\n")
        return "".join(lines)

    @classmethod
    def from_text(cls, text: str, behaviour: Behaviour, monitor: Monitor | None = None) -> Transcript:
        """Read the text form, written by :meth:`to_text`, a model or a person.

        If states share a marker, the first of them that the rules allow there is meant. The source of a segment is the
        environment if its state is declared so, the user for the first segment, else the model.

        The ``monitor`` has the rules; by default those of the behaviour.

        Raises:
            RecordError: there is text before the first marker.
        """
        markers = Markers.of(behaviour)
        now: Monitor | None = monitor or Monitor(behaviour)
        segments: list[Segment] = []
        for piece in markers.split(text):
            if piece.marker is None:
                if piece.text.strip():
                    raise RecordError(f"before the first marker stands {piece.text.strip()[:60]!r}")
                continue
            states = markers.states[piece.marker]
            state = next((name for name in states if now is not None and now.allows(name)), states[0])
            now = now.after(state) if now is not None and now.allows(state) else None
            written = piece.text.removeprefix(" ").removesuffix("\n")
            outside = behaviour.states[state].from_environment
            source: Author = "environment" if outside else "model" if segments else "user"
            segments.append(Segment(state, markers.restore(written), source))
        return cls(behaviour.name, tuple(segments))


# -- lines ------------------------------------------------------------------------------------------------------------

_HEAD = Keys({"format": AlternativeShape(texts=(_FORMAT,)), "agent": str}, needed=("format", "agent"))
_SEGMENT: dict[str, Shape] = {"state": str, "text": str, "source": AlternativeShape(texts=get_args(Author))}
_CORRECTION = Keys(
    {"position": int, "written": str, "legal": Items(str), "done": str, "reason": str}, needed=("position", "written")
)
_ROW = Keys({**_SEGMENT, "correction": _CORRECTION, "usage": NamedEntries(object)})


def _read_row(line: str, number: int, shape: Shape) -> Any:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise RecordError(f"line {number} of the transcript is no JSON: {error}") from error
    for found in problems(row, shape):
        raise RecordError(f"line {number} of the transcript is damaged: {found.problem}")
    return row


#: The box for each author: what comes from outside is an input, what the rules forced is grey.
_KINDS: dict[Author, BoxKind] = {"user": "input", "environment": "input", "model": "tool", "forced": "open"}
#: The maximum number of lines shown of a text, and the maximum number of its characters considered.
_LINES, _CHARACTERS = 4, 400


def transcript_picture(transcript: Transcript) -> Picture:
    """Draw a transcript from top to bottom: a box per segment with its state, the beginning of its text, its author.

    Each correction is a dashed box with an arrow to the segment in whose place it was written.
    """
    boxes = [
        Box(f"segment {number}", f"{number + 1}  {one.state}", _KINDS[one.source], _shorten_text(one.text))
        for number, one in enumerate(transcript.segments)
    ]
    arrows = [Arrow(f"segment {n}", f"segment {n + 1}", weight=10) for n in range(len(boxes) - 1)]
    for number, one in enumerate(transcript.corrections):
        box = Box(f"correction {number}", "not allowed", "open", _shorten_text(one.written or "the end"), "marked")
        boxes.append(box)
        place = min(one.position, len(transcript) - 1)
        if place >= 0:
            arrows.append(Arrow(box.id, f"segment {place}", "corrected", "dashed", "marked"))
    return Picture(tuple(boxes) or (Box("empty", "nothing was written", "result"),), tuple(arrows), "TB")


def _shorten_text(text: str) -> tuple[str, ...]:
    lines = wrap_text(shorten(text.strip(), _CHARACTERS), WIDTH).split("\n")
    return cut_lines([line for line in lines if line], _LINES)
