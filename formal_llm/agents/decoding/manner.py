"""How a model is asked to write: its instructions, the words of questions, how much may be taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from formal_llm.agents.decoding.steps import Model
from formal_llm.agents.decoding.writer import Bounds, Writer
from formal_llm.agents.markers import Markers
from formal_llm.automata import Behaviour
from formal_llm.errors import WritesNoText
from formal_llm.llms.question import Message, Question


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
class WritingConfig:
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


def build_chat(instructions: str, *said: str) -> tuple[Message, ...]:
    """A chat: what an agent is told, and what is asked; answers of the model and the user take turns behind it."""
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
        instructions: what the model is told before the run: its task, its tools, examples.
        bounds: how much may be taken.
        phrases: what it is asked in words.
        temperature: 0 for the most probable texts.
        streaming: whether texts are told while they are written, where the model can do that.

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
