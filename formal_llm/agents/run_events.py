"""The events that are reported while an agent runs, to those who watch: the terminal, a page, a log.

When many runs are in progress at once, each event carries the name of its run, and a number (``id``), as the events of
plans do (:mod:`formal_llm.planning.walks.events`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from formal_llm.agents.transcript import Author, Correction, Transcript
from formal_llm.llms.question import Question
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.walks.events import NumberedEvent


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, as it was carried out or refused.

    Attributes:
        position: the number of segments before its result, or before the text that was made of its result.
        tool: the name that stood in the action, whether or not there is such a tool.
        input: the text behind it.
        output: what came back, or why nothing did.
        ok: whether the tool was called and returned.
        label: the label of the call, where the agent gives labels.
    """

    position: int
    tool: str
    input: str
    output: str
    ok: bool = True
    label: str = ""

    def to_data(self) -> dict[str, JSON]:
        """As JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Began(NumberedEvent):
    """A state begins."""

    state: str
    source: Author = "model"
    run: str = ""


@dataclass(frozen=True, slots=True)
class Wrote(NumberedEvent):
    """Text was written in the state that began last, or a piece of it."""

    state: str
    text: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class Withdrawn(NumberedEvent):
    """The state that began last is taken back, with its text: what is written belongs elsewhere, or is written anew.

    So whoever appends the text of each :class:`Wrote` to the state that began last, and drops that state here, has the
    transcript.
    """

    state: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class Requested(NumberedEvent):
    """The model is asked: for a text, a turn, or an answer to a numbered question."""

    request: Question
    run: str = ""


@dataclass(frozen=True, slots=True)
class Received(NumberedEvent):
    """The model has answered the request before."""

    usage: Usage
    run: str = ""


@dataclass(frozen=True, slots=True)
class Calling(NumberedEvent):
    """A tool is about to be called; its :class:`Called` follows."""

    tool: str
    input: str
    run: str = ""


@dataclass(frozen=True, slots=True)
class Called(NumberedEvent):
    """A tool was called, or refused."""

    call: ToolCall
    run: str = ""


@dataclass(frozen=True, slots=True)
class Corrected(NumberedEvent):
    """What was written was not what the rules allow."""

    correction: Correction
    run: str = ""


@dataclass(frozen=True, slots=True)
class Ended(NumberedEvent):
    """The run is over: whole, or as far as it came, with the reason in ``error``."""

    transcript: Transcript
    error: BaseException | None = None
    run: str = ""


RunEvent = Began | Wrote | Withdrawn | Requested | Received | Calling | Called | Corrected | Ended
RunEventCallback = Callable[[RunEvent], None]
