"""What happens while a plan is made, for those who want to watch.

Where many walks are under way at once, each event has the name of the one that it comes from; for a single walk the
name is empty. Names need not differ. What identifies a walk for sure is the ``id``: a number that each walk of this
process has for itself. Events are compared without it.
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
class _WalkEvent:
    id: int = field(default=0, kw_only=True, compare=False)


@dataclass(frozen=True, slots=True)
class Started(_WalkEvent):
    """A walk begins: a valid plan exists, and nothing has been asked yet."""

    task: Task
    walk: str = ""


@dataclass(frozen=True, slots=True)
class _QuestionEvent(_WalkEvent):
    question: Question

    @property
    def walk(self) -> str:
        """The name of the walk."""
        return self.question.walk


@dataclass(frozen=True, slots=True)
class Asked(_QuestionEvent):
    """A question goes to the LLM."""


@dataclass(frozen=True, slots=True)
class Answered(_QuestionEvent):
    """A legal answer came."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Forced(_WalkEvent):
    """A choice was taken without a question: the rules leave only this one.

    Attributes:
        text: the option.
        left_out: how many other options the automaton has there, from which no valid plan could be finished; of a
            selection, how many other sets.
    """

    text: str
    left_out: int
    walk: str = ""


@dataclass(frozen=True, slots=True)
class Backtracked(_WalkEvent):
    """A dead end: the walk went back to an earlier choice and ruled out the branch it came from.

    Attributes:
        text: the option that was ruled out.
        word: the plan's terminals at the place it went back to.
    """

    text: str
    word: Word
    walk: str = ""


@dataclass(frozen=True, slots=True)
class Drafted(_WalkEvent):
    """A draft of the whole plan came and was followed.

    Attributes:
        text: the draft.
        taken: how many choices were taken from it.
        problem: why it is no plan; empty where it can be read as one, whether or not it keeps the limits.
    """

    text: str
    taken: int
    problem: str = ""
    walk: str = ""


@dataclass(frozen=True, slots=True)
class Finished(_WalkEvent):
    """The plan is finished."""

    plan: Plan
    walk: str = ""


@dataclass(frozen=True, slots=True)
class Failed(_WalkEvent):
    """No plan was made.

    Attributes:
        error: why.
        usage: what it took all the same.
    """

    error: BaseException
    usage: Usage
    walk: str = ""


Event = Started | Asked | Answered | Forced | Backtracked | Drafted | Finished | Failed
EventCallback = Callable[[Event], None]
