"""Writers: who has a model write the states of an agent, so that what is written keeps the rules.

A writer continues where a transcript ends, and reports what it does, one event at a time::

    for written in writer.write(transcript, monitor, until={"Obs"}):
        transcript = added(transcript, written)

There are two: :class:`~formal_llm.agents.decoding.continuing.ContinuingWriter` for models that continue a text, and
:class:`~formal_llm.agents.decoding.chatting.ChattingWriter` for those that only chat. They give the same guarantee:
what they write can always be completed, it ends where the rules allow it, and whatever was changed is on record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

from formal_llm.agents.decoding.contents import Content, FreeText
from formal_llm.agents.decoding.steps import Model, Steps, adriven, driven
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.errors import WritingError
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage


@dataclass(frozen=True, slots=True)
class SegmentBegan:
    """A state has begun. The same state again, before its segment has come: its text is written anew.

    Attributes:
        state: the state.
        forced: whether its marker was put there, since no other one was legal.
    """

    state: str
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the text of the state that has begun, as it came: the blanks at its ends do not count in the end."""

    text: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What something took.

    Attributes:
        state: the state that was being written when it was asked for; empty where the next one was looked for.
        usage: what it took.
    """

    state: str
    usage: Usage

    @classmethod
    def from_tokens(cls, state: str, tokens: TokenUsage, *, questions: int = 0) -> Spent:
        """What answers took, as a transcript counts it."""
        return cls(state, Usage(questions=questions, **asdict(tokens)))


@dataclass(frozen=True, slots=True)
class Due:
    """What the world writes next: the last event of a writer. Without it, the run has ended.

    Attributes:
        states: the states that may come; more than one where the world decides between them.
    """

    states: tuple[str, ...]


#: The events of a writer: pieces as they come, then the whole :class:`Segment`; what was corrected; what it took.
Told: TypeAlias = SegmentBegan | Text | Segment | Correction | Spent | Due
#: What the text of a state may be; a function finds it when the state begins, from what was written before.
ContentOf: TypeAlias = Content | Callable[[Transcript], Content]


#: What stands in a correction for a text that would have gone on.
GOES_ON = "…"


class Writer(ABC):
    """Has a model write the states of an agent.

    Attributes:
        llm: the model.
    """

    llm: Model

    def save(self) -> dict[str, JSON]:
        """Return what the writer knows beyond the transcript, as JSON data, for a run that pauses."""
        return {}

    def restore(self, data: Mapping[str, JSON]) -> None:
        """Take up what :meth:`save` returned.

        Raises:
            ValueError: it is damaged.
        """
        if data:
            raise ValueError(f"the state of another writer: {', '.join(data)}")

    @abstractmethod
    def steps(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Steps[Told]:
        """As :meth:`write`, sans I/O: events and requests come out, answers go in."""

    def write(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Iterator[Told]:
        """Continue where a transcript ends.

        Args:
            transcript: what was written so far.
            monitor: where the rules stand behind it.
            until: the states that the world writes: right before such a state is written, it is reported as due, and
                that is the end. Their texts are appended by the caller (who keeps them from being taken for markers by
                :meth:`Transcript.to_text`).
            contents: what the texts of states may be; anything for those that are not named.

        Yields:
            For each state :class:`SegmentBegan`, pieces of :class:`Text`, and its :class:`Segment` when it is finished;
            each :class:`Correction` and what was :class:`Spent` when it happened; in the end :class:`Due` where the
            world writes next. Otherwise the run has ended, where the monitor allows it.

        Raises:
            WritingError: a bound was reached before the run could end; nothing can come next.
            InvalidAnswer: the model answers a question with what is no option, again and again.
            LLMError: the model cannot be asked.
        """
        return driven(self.steps(transcript, monitor, until=until, contents=contents), self.llm)

    def awrite(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> AsyncGenerator[Told]:
        """As :meth:`write`, without blocking the event loop; ``async for``."""
        return adriven(self.steps(transcript, monitor, until=until, contents=contents), self.llm)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a writer may take.

    Attributes:
        state_tokens: tokens a state, for all states or for each by its name (the others have the default): then it is
            ended, and a legal marker follows; an answer is never ended so, but an error.
        chunk_tokens: tokens a request, where a model continues a text.
        turn_tokens: tokens a request, where a model chats and writes several states at once.
        thinking_tokens: tokens a request beyond these, for models that think before they write.
        growth: by how much the room of a request may grow where a model's thinking left none for its text.
        drops: streams a run that may break off in the middle before it is an error; they are asked for again.
        corrections: corrections a state, before what is wanted is asked for as a numbered question, or it is an error.
        requests: requests a run, those of the transcript among them; then it is an error.
    """

    state_tokens: int | Mapping[str, int] = 512
    chunk_tokens: int = 256
    turn_tokens: int = 1024
    thinking_tokens: int = 0
    growth: int = 4
    drops: int = 2
    corrections: int = 4
    requests: int = 200

    def __post_init__(self) -> None:
        states = [self.state_tokens] if isinstance(self.state_tokens, int) else [*self.state_tokens.values()]
        counts = (self.chunk_tokens, self.turn_tokens, self.growth, self.corrections, self.requests)
        if min(*states, *counts) < 1 or min(self.thinking_tokens, self.drops) < 0:
            raise ValueError(f"bounds count from 1, not {self}")

    def get_state_tokens(self, state: str | None) -> int:
        """The tokens of a state."""
        if isinstance(self.state_tokens, int):
            return self.state_tokens
        return self.state_tokens.get(state or "", 512)

    def make_request_error(self, state: str) -> WritingError:
        """The error of a run that does not come to its end."""
        what = f"the run took {self.requests} requests and has not ended; give it more, or the rules a limit"
        return WritingError(what, state)


def added(transcript: Transcript, told: Told) -> Transcript:
    """A transcript with the events of a writer: its segments, its corrections, what they took."""
    if isinstance(told, Segment):
        return transcript.plus(told)
    if isinstance(told, Correction):
        return transcript.plus(corrections=(told,))
    return transcript.plus(usage=told.usage, state=told.state) if isinstance(told, Spent) else transcript


def content_of(contents: Mapping[str, ContentOf], state: str, transcript: Transcript) -> Content:
    """What the text of a state may be, behind a transcript."""
    wanted = contents.get(state, FreeText())
    return wanted(transcript) if callable(wanted) else wanted
