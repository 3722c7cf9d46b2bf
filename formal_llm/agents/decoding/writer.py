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
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from formal_llm.agents.decoding.contents import Content, FreeText
from formal_llm.agents.decoding.steps import Going, IncomingText, Step, Steps, adriven, driven, relay_steps
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata import Behaviour
from formal_llm.errors import AutomatonError, ProviderError, WritesNoText, WritingError
from formal_llm.llms.llm import LLM, asking
from formal_llm.llms.question import Message, Question
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage


@dataclass(frozen=True, slots=True)
class SegmentBegan:
    """A state has begun. The same state again, before its segment has come: its text is written anew.

    Attributes:
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
WriterEvent: TypeAlias = SegmentBegan | Text | Segment | Correction | Spent | Due
#: What the text of a state may be; a function finds it when the state begins, from what was written before.
ContentOf: TypeAlias = Content | Callable[[Transcript], Content]


#: What is in a correction for a text that would have gone on.
GOES_ON = "…"


class Writer(ABC):
    """Has a model write the states of an agent."""

    llm: LLM

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
    ) -> Steps[WriterEvent]:
        """As :meth:`write`, sans I/O: events and requests come out, answers go in."""

    def write(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Iterator[WriterEvent]:
        """Continue where a transcript ends.

        Args:
            transcript: what was written so far.
            monitor: the state of the rules after it.
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
    ) -> AsyncGenerator[WriterEvent]:
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


def added(transcript: Transcript, event: WriterEvent) -> Transcript:
    """A transcript with the events of a writer: its segments, its corrections, what they took."""
    if isinstance(event, Segment):
        return transcript.plus(event)
    if isinstance(event, Correction):
        return transcript.plus(corrections=(event,))
    return transcript.plus(usage=event.usage, state=event.state) if isinstance(event, Spent) else transcript


def get_content(contents: Mapping[str, ContentOf], state: str, transcript: Transcript) -> Content:
    """What the text of a state may be, behind a transcript."""
    wanted = contents.get(state, FreeText())
    return wanted(transcript) if callable(wanted) else wanted


# -- how a model is asked ----------------------------------------------------------------------------------------------


class NextStates(NamedTuple):
    """What may come next.

    Attributes:
        states: for each legal marker its state, in the order of the alphabet.
        world: the states, where only the world can continue.
        shortest: the marker that begins a shortest way to an end; empty where that is to end at once.
    """

    states: Mapping[str, str]
    may_end: bool
    world: tuple[str, ...]
    shortest: str

    @property
    def markers(self) -> tuple[str, ...]:
        """The legal markers."""
        return tuple(self.states)

    @property
    def only_state(self) -> str | None:
        """The state that comes next where nothing else can; None where there is a choice."""
        return next(iter(self.states.values())) if len(self.states) == 1 and not self.may_end else None

    @property
    def prefix(self) -> str:
        """How all legal markers begin."""
        return find_common_prefix(self.markers)


def find_common_prefix(texts: Iterable[str]) -> str:
    """The longest text that all begin with; empty for none."""
    least, most = min(found := list(texts), default=""), max(found, default="")
    return next((least[:place] for place, sign in enumerate(least) if most[place : place + 1] != sign), least)


def find_next_states(monitor: Monitor, markers: Markers, until: Collection[str] = ()) -> NextStates:
    """What may come next where a monitor stands.

    Of states that share a marker, the first one that is legal is meant, as it is where a transcript is read. What is
    not known to lead to an end is left out where something else is.

    Raises:
        AutomatonError: a legal state has no marker.
        WritingError: nothing can come, and the run cannot end.
    """
    allowed = monitor.allowed()
    known = {name: way for name, way in allowed.items() if way.certain} or allowed
    states: dict[str, str] = {}
    for name in known:
        marker = markers.marker(name)
        if marker is None:
            raise AutomatonError(f"the state {name} has no marker, so it cannot be known when it is written")
        states.setdefault(marker, name)
    may_end = monitor.may_stop()
    if not states and not may_end:
        refused = monitor.why()
        raise WritingError(f"nothing can come next: {refused.reason if refused is not None else 'no way is known'}")
    lengths = {marker: known[name].shortest for marker, name in states.items()}
    longest = {marker: length for marker, length in lengths.items() if length is not None}
    shortest = "" if may_end else min(longest or states, key=lambda marker: longest.get(marker, 0))
    world = tuple(states.values()) if not may_end and all(name in until for name in states.values()) else ()
    return NextStates(states, may_end, world, shortest)


@dataclass(frozen=True, slots=True)
class Phrases:
    """What a model is asked in words.

    Attributes:
        next: which state comes next.
        end: the option that nothing comes.
        among: which of several texts comes after ``{marker}``.
        again: why a text behind ``{marker}`` could not be used: ``{problem}``.
        refused: why what was written could not be used: ``{problem}``.
        go_on: how to continue: with one of ``{legal}``.
        instruction: how a question is answered: ``{count}`` is the number of its options.
    """

    next: str = "What comes next?"
    end: str = "nothing: this is the end"
    among: str = "Which text stands behind {marker}?"
    again: str = "This could not be used: {problem}. Write the text behind {marker} again, and nothing else."
    refused: str = "What you wrote next could not be used: {problem}."
    go_on: str = "Continue right there, without repeating anything. What may come next: {legal}."
    instruction: str = "Answer with the number of your choice, an integer from 1 to {count}, and nothing else."


def build_chat(instructions: str, *texts: str) -> tuple[Message, ...]:
    """A chat: the instructions of an agent, the question, and the texts of the model and the user in turn."""
    system = (Message("system", instructions),) if instructions else ()
    return (*system, *(Message(("user", "assistant")[place % 2], text) for place, text in enumerate(texts)))


class MarkedWriter(Writer):
    """A writer that knows states by their markers.

    Args:
        markers: the markers of all states, or the behaviour that has them.
        instructions: the text that the model reads before the run: its task, its tools, examples.
        bounds: how much may be taken.
        phrases: what it is asked in words.
        temperature: 0 for the most probable texts.
        streaming: whether texts are streamed while they are written, where the model can do that.

    Raises:
        WritesNoText: the model does not write as it has to.
    """

    #: The kind of requests that the model has to answer, and what it is to do by them.
    needs: ClassVar[str]
    ability: ClassVar[str] = "write as an agent"

    def __init__(
        self,
        llm: LLM,
        markers: Markers | Behaviour,
        instructions: str = "",
        *,
        bounds: Bounds | None = None,
        phrases: Phrases | None = None,
        temperature: float = 0.0,
        streaming: bool = False,
    ) -> None:
        if self.needs not in llm.can:
            raise WritesNoText(llm, self.ability)
        self.llm = llm
        markers = Markers.of(markers) if isinstance(markers, Behaviour) else markers
        self.markers, self.instructions, self.phrases = markers, instructions, phrases or Phrases()
        self.bounds, self.temperature, self.streaming = bounds or Bounds(), temperature, streaming

    def steps(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Steps[WriterEvent]:
        """Continue where a transcript ends, see :meth:`Writer.steps`."""
        run = self._get_run_type()(self, transcript, monitor, frozenset(until), contents or {})
        return run.relay_to_end()

    @abstractmethod
    def _get_run_type(self) -> type[WriterRun]:
        """What continues a transcript."""

    def build_question(self, so_far: str, asked: str, options: Iterable[str]) -> Question:
        """The question which of some texts comes next.

        Args:
            so_far: the run so far.
            asked: the question, in words.
            options: what can be chosen, two at least.
        """
        texts = list(options)
        lines = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
        end = self.phrases.instruction.replace("{count}", str(len(texts)))
        prompt = f"{so_far}\n{asked}\n{lines}\n\n{end}" if so_far else f"{asked}\n{lines}\n\n{end}"
        return Question(prompt, texts, messages=build_chat(self.instructions))


#: That a marker was put there, since no other one was legal.
FORCED = Spent("", Usage(forced=1))


class WriterRun(ABC):
    """A run that continues where a transcript ends.

    Attributes:
        writer: the writer, which determines how the model is asked.
        transcript: what is there so far.
        monitor: the state of the rules after it.
        until: the states that the world writes.
    """

    def __init__(
        self,
        writer: MarkedWriter,
        transcript: Transcript,
        monitor: Monitor,
        until: frozenset[str],
        contents: Mapping[str, ContentOf],
    ) -> None:
        self.writer, self.markers, self.bounds = writer, writer.markers, writer.bounds
        self.transcript, self.monitor, self.until, self._contents = transcript, monitor, until, contents
        self._requests = self._drops = 0

    def relay_to_end(self) -> Steps[WriterEvent]:
        """Continue to the end, or to where the world writes; the transcript has what was written."""
        return relay_steps(self._generate_steps(), self._record_step)

    def _record_step(self, step: WriterEvent | Step) -> bool:
        if not isinstance(step, Step):
            self.transcript = added(self.transcript, step)
        return True

    @abstractmethod
    def _generate_steps(self) -> Steps[WriterEvent]:
        """The events and requests of the run."""

    def _find_next_states(self) -> NextStates:
        return find_next_states(self.monitor, self.markers, self.until)

    def _get_content(self, state: str, transcript: Transcript) -> Content:
        """What the text of a state may be, behind a transcript."""
        return get_content(self._contents, state, transcript)

    def _count_request(self, state: str) -> None:
        """Count one more request.

        Raises:
            WritingError: there were too many.
        """
        self._requests = max(self._requests, self.transcript.usage.requests) + 1  # not all models count theirs
        if self._requests > self.bounds.requests:
            raise self.bounds.make_request_error(state)

    def _open_text(self, asked: TextRequest) -> IncomingText:
        return IncomingText(asked, streaming=self.writer.streaming)

    def _read_piece(self, coming: IncomingText, state: str) -> Going[WriterEvent | Step, str | None]:
        """The next piece of a text; None where its stream broke off, so that the model is asked again.

        Raises:
            ProviderError: it broke off at its beginning, or too often.
        """
        try:
            return (yield from coming.read_next())
        except ProviderError:
            self._drops += 1
            if coming.text:
                yield Spent.from_tokens(state, coming.give_up().usage)
            if not coming.text or self._drops > self.bounds.drops:
                raise
            return None

    def _ask_choice(
        self, state: str, so_far: str, asked: str, options: Iterable[str]
    ) -> Going[WriterEvent | Step, int]:
        """The place of the option that the model chooses, from 0.

        Raises:
            InvalidAnswer: it answers something else, again and again.
        """
        answer = yield from asking(self.writer.build_question(so_far, asked, options))
        yield Spent.from_tokens(state, answer.usage, questions=1)
        return answer.number - 1
