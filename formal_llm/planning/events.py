"""What happens while a plan is made, for those who want to watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formal_llm.llms.question import Answer, Question
from formal_llm.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Asked:
    """A question goes to the LLM."""

    question: Question


@dataclass(frozen=True, slots=True)
class Answered:
    """A legal answer came."""

    question: Question
    answer: Answer


@dataclass(frozen=True, slots=True)
class Forced:
    """A choice was taken without a question: the rules leave only this one.

    Attributes:
        text: the option.
        left_out: how many other options the automaton has there, from which no valid plan could be finished.
    """

    text: str
    left_out: int


@dataclass(frozen=True, slots=True)
class Backtracked:
    """A dead end: the walk went back to an earlier choice and ruled out the branch it came from.

    Attributes:
        text: the option that was ruled out.
        word: the plan's terminals at the place it went back to.
    """

    text: str
    word: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """The plan is finished."""

    plan: Plan


Event = Asked | Answered | Forced | Backtracked | Finished
EventCallback = Callable[[Event], None]
