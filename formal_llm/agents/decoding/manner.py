"""How a model is asked to write: its instructions, the words of questions, how much may be taken."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from formal_llm.agents.decoding.contents import Content
from formal_llm.agents.decoding.steps import Going, IncomingText, Model, Step, Steps, relay_steps
from formal_llm.agents.decoding.writer import Bounds, ContentOf, Spent, Told, Writer, added, content_of
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Transcript
from formal_llm.automata import Behaviour
from formal_llm.errors import AutomatonError, WritesNoText, WritingError
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import asking
from formal_llm.llms.question import Message, Question
from formal_llm.planning.plans.usage import Usage


class NextStates(NamedTuple):
    """What may come next.

    Attributes:
        states: for each legal marker its state, in the order of the alphabet.
        may_end: whether the run may end.
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
        among: which of several texts stands behind ``{marker}``.
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


@dataclass(frozen=True, slots=True)
class WritingConfig:
    """How a model is asked.

    Attributes:
        markers: the markers of all states.
        instructions: the text that it reads before the run.
        bounds: how much may be taken.
        phrases: what it is asked in words.
        temperature: 0 for the most probable texts.
        streaming: whether texts are streamed while they are written.
    """

    markers: Markers
    instructions: str
    bounds: Bounds
    phrases: Phrases
    temperature: float
    streaming: bool


def build_chat(instructions: str, *said: str) -> tuple[Message, ...]:
    """A chat: the instructions of an agent, the question, and the texts of the model and the user in turn."""
    system = (Message("system", instructions),) if instructions else ()
    return (*system, *(Message(("user", "assistant")[place % 2], text) for place, text in enumerate(said)))


def build_question(so_far: str, asked: str, options: Iterable[str], how: WritingConfig) -> Question:
    """The question which of some texts comes next.

    Args:
        so_far: the run so far.
        asked: the question, in words.
        options: what can be chosen, two at least.
        how: how the model is asked.
    """
    texts = list(options)
    lines = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
    end = how.phrases.instruction.replace("{count}", str(len(texts)))
    prompt = f"{so_far}\n{asked}\n{lines}\n\n{end}" if so_far else f"{asked}\n{lines}\n\n{end}"
    return Question(prompt, texts, messages=build_chat(how.instructions))


class MarkedWriter(Writer):
    """A writer that knows states by their markers.

    Args:
        llm: the model.
        markers: the markers of all states, or the behaviour that has them.
        instructions: the text that the model reads before the run: its task, its tools, examples.
        bounds: how much may be taken.
        phrases: what it is asked in words.
        temperature: 0 for the most probable texts.
        streaming: whether texts are streamed while they are written, where the model can do that.

    Raises:
        WritesNoText: the model does not write as it has to.
    """

    #: The protocol of the model.
    needs: ClassVar[type]

    def __init__(
        self,
        llm: Model,
        markers: Markers | Behaviour,
        *,
        instructions: str = "",
        bounds: Bounds | None = None,
        phrases: Phrases | None = None,
        temperature: float = 0.0,
        streaming: bool = False,
    ) -> None:
        if not isinstance(llm, self.needs):
            raise WritesNoText(llm, "write as an agent")
        self.llm = llm
        markers = Markers.of(markers) if isinstance(markers, Behaviour) else markers
        self.manner = WritingConfig(
            markers, instructions, bounds or Bounds(), phrases or Phrases(), temperature, streaming
        )


#: That a marker was put there, since no other one was legal.
FORCED = Spent("", Usage(forced=1))


class WriterRun(ABC):
    """A run that continues where a transcript ends.

    Attributes:
        transcript: what stands there so far.
        monitor: where the rules stand behind it.
        until: the states that the world writes.
    """

    def __init__(
        self,
        how: WritingConfig,
        transcript: Transcript,
        monitor: Monitor,
        until: frozenset[str],
        contents: Mapping[str, ContentOf],
    ) -> None:
        self.how, self.markers, self.bounds = how, how.markers, how.bounds
        self.transcript, self.monitor, self.until, self._contents = transcript, monitor, until, contents
        self._requests = 0

    def relay_to_end(self) -> Steps[Told]:
        """Continue to the end, or to where the world writes; the transcript has what was written."""
        return relay_steps(self._generate_steps(), self._record_step)

    def _record_step(self, told: Told | Step) -> bool:
        if not isinstance(told, Step):
            self.transcript = added(self.transcript, told)
        return True

    @abstractmethod
    def _generate_steps(self) -> Steps[Told]:
        """The events and requests of the run."""

    def _find_next_states(self) -> NextStates:
        return find_next_states(self.monitor, self.markers, self.until)

    def _get_content(self, state: str) -> Content:
        return content_of(self._contents, state, self.transcript)

    def _count_request(self, state: str) -> None:
        """Count one more request.

        Raises:
            WritingError: there were too many.
        """
        self._requests = max(self._requests, self.transcript.usage.requests) + 1  # not all models count theirs
        if self._requests > self.bounds.requests:
            raise self.bounds.make_request_error(state)

    def _open_text(self, asked: Writing) -> IncomingText:
        return IncomingText(asked, streaming=self.how.streaming)

    def _ask_choice(self, state: str, so_far: str, asked: str, options: Iterable[str]) -> Going[Told | Step, int]:
        """The place of the option that the model chooses, from 0.

        Raises:
            InvalidAnswer: it answers something else, again and again.
        """
        answer = yield from asking(build_question(so_far, asked, options, self.how))
        yield Spent.from_tokens(state, answer.usage, questions=1)
        return answer.number - 1
