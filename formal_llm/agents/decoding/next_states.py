"""Which states may come next, how their markers begin, and the questions by which a model decides between them."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from formal_llm.agents.decoding.writer import Bounds, Spent
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.automata import Behaviour
from formal_llm.errors import AutomatonError, WritingError
from formal_llm.llms.generation import Generated, Stream
from formal_llm.llms.llm import LLM, ask
from formal_llm.llms.question import Message, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.plans.usage import Usage


class Next(NamedTuple):
    """What may come next.

    Attributes:
        states: for each legal marker its state, in the order of the alphabet.
        may_end: whether the run may end.
        world: the states, where the world alone goes on.
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
    def only(self) -> str | None:
        """The state that comes next where nothing else can; None where there is a choice."""
        return next(iter(self.states.values())) if len(self.states) == 1 and not self.may_end else None

    @property
    def prefix(self) -> str:
        """How all legal markers begin."""
        return common_prefix(self.markers)


def common_prefix(texts: Iterable[str]) -> str:
    """The longest text that all begin with; empty for none."""
    least, most = min(found := list(texts), default=""), max(found, default="")
    return next((least[:place] for place, sign in enumerate(least) if most[place : place + 1] != sign), least)


def next_states(monitor: Monitor, markers: Markers, until: Collection[str] = ()) -> Next:
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
    told = {marker: length for marker, length in lengths.items() if length is not None}
    shortest = "" if may_end else min(told or states, key=lambda marker: told.get(marker, 0))
    world = tuple(states.values()) if not may_end and all(name in until for name in states.values()) else ()
    return Next(states, may_end, world, shortest)


def markers_of(markers: Markers | Behaviour) -> Markers:
    """The markers of a behaviour, or those that are given."""
    return Markers.of(markers) if isinstance(markers, Behaviour) else markers


# -- questions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Phrases:
    """What a model is asked in words.

    Attributes:
        next: which state comes next.
        end: the option that nothing comes.
        among: which of several texts stands behind ``{marker}``.
        text: the text behind ``{marker}``.
        again: why a text could not be used: ``{problem}``.
        instruction: how a question is answered: ``{count}`` is the number of its options.
    """

    next: str = "What comes next?"
    end: str = "nothing: this is the end"
    among: str = "Which text stands behind {marker}?"
    text: str = "Write the text behind {marker}: the text alone, without a marker."
    again: str = "This could not be used: {problem}. Write the text again."
    instruction: str = "Answer with the number of your choice, an integer from 1 to {count}, and nothing else."


@dataclass(frozen=True, slots=True)
class Manner:
    """How a model is asked.

    Attributes:
        markers: the markers of all states.
        instructions: what it is told before the run.
        bounds: how much may be taken.
        phrases: what it is asked in words.
        temperature: 0 for the most probable texts.
        streaming: whether texts are told while they are written.
    """

    markers: Markers
    instructions: str
    bounds: Bounds
    phrases: Phrases
    temperature: float
    streaming: bool


def talk(instructions: str, *said: str) -> tuple[Message, ...]:
    """A chat: what an agent is told, and what is asked; answers of the model and the user take turns behind it."""
    system = (Message("system", instructions),) if instructions else ()
    return (*system, *(Message(("user", "assistant")[place % 2], text) for place, text in enumerate(said)))


def choose(
    llm: LLM, so_far: str, asked: str, options: Iterable[str], *, instructions: str = "", phrases: Phrases | None = None
) -> tuple[int, TokenUsage]:
    """The place of the option that a model chooses, from 0, and what that took.

    Args:
        llm: the model.
        so_far: the run so far.
        asked: the question.
        options: what can be chosen, two at least.
        instructions: what the model is told before.
        phrases: the words.

    Raises:
        InvalidAnswer: the model answers something else, again and again.
    """
    texts = list(options)
    lines = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
    how = (phrases or Phrases()).instruction.replace("{count}", str(len(texts)))
    prompt = f"{so_far}\n{asked}\n{lines}\n\n{how}" if so_far else f"{asked}\n{lines}\n\n{how}"
    answer = ask(llm, Question(prompt, texts, messages=talk(instructions)))
    return answer.number - 1, answer.usage


def rest_of(coming: Stream, text: str, *, streaming: bool) -> Generated:
    """The whole of a text of which enough has come: what is streamed is closed, and counted as one request."""
    made = None if streaming else next((came for came in coming if isinstance(came, Generated)), None)
    if isinstance(coming, Generator):
        coming.close()
    return made or Generated(text, TokenUsage(1))


#: That a marker was put there, since no other one was legal.
FORCED = Spent("", Usage(forced=1))
