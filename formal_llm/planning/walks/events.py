"""The events that are reported while a plan is made.

When many walks are in progress at once, each event carries the name of its walk; for a single walk the name is empty.
Names need not be unique. The ``id`` is: a number that identifies a walk within this process. Comparisons of events
ignore it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from formal_llm.automata import Word
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.task import Task


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """An event with the number of the walk, or of the run, from which it comes."""

    id: int = field(default=0, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Started(NumberedEvent):
    """A walk begins: a valid plan exists, and no question has been asked yet."""

    task: Task
    walk: str = ""


@dataclass(frozen=True, slots=True)
class _QuestionEvent(NumberedEvent):
    question: Question

    @property
    def walk(self) -> str:
        """The name of the walk."""
        return self.question.walk


@dataclass(frozen=True, slots=True)
class Asked(_QuestionEvent):
    """A question is sent to the LLM."""


@dataclass(frozen=True, slots=True)
class Answered(_QuestionEvent):
    """A legal answer was received."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Forced(NumberedEvent):
    """A choice was made without a question because the rules allow only this one.

    Attributes:
        left_out: how many other options the automaton has there after which no valid plan can be finished; for a
            selection, how many other sets.
    """

    text: str
    left_out: int
    walk: str = ""


@dataclass(frozen=True, slots=True)
class Backtracked(NumberedEvent):
    """A dead end: the walk returned to an earlier choice and ruled out the branch it came from.

    Attributes:
        text: the option that was ruled out.
        word: the plan's terminals at the choice to which it returned.
    """

    text: str
    word: Word
    walk: str = ""


@dataclass(frozen=True, slots=True)
class Drafted(NumberedEvent):
    """A draft of the whole plan was received and followed.

    Attributes:
        taken: how many choices were taken from it.
        problem: why it is not a plan; empty if it can be read as one, whether or not it keeps the limits.
    """

    text: str
    taken: int
    problem: str = ""
    walk: str = ""


@dataclass(frozen=True, slots=True)
class Finished(NumberedEvent):
    """The plan is finished."""

    plan: Plan
    walk: str = ""


@dataclass(frozen=True, slots=True)
class Failed(NumberedEvent):
    """No plan was made.

    Attributes:
        usage: what was used nevertheless.
    """

    error: BaseException
    usage: Usage
    walk: str = ""


Event = Started | Asked | Answered | Forced | Backtracked | Drafted | Finished | Failed
EventCallback = Callable[[Event], None]
