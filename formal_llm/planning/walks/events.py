"""The events that are reported while a plan is made, and log lines of them.

When many walks are in progress at once, each event carries the name of its walk; for a single walk the name is empty.
Names need not be unique. The ``id`` is: a number that identifies a walk within this process. Comparisons of events
ignore it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from formal_llm.automata import Word
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import TextRequest
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


def logged(logger: logging.Logger | None = None, *, content: bool = False) -> Callable[[Event], None]:
    """An event callback that writes log lines: plans at level INFO, questions at DEBUG, failures at WARNING.

    A line begins with the name of its walk (``walk 7:``), or with its own number where it has none (``walk #7:``).

    Args:
        logger: where to; the logger ``formal_llm`` where left out.
        content: whether the texts of tasks, options and errors are recorded.
    """
    log = logger if logger is not None else logging.getLogger("formal_llm")

    def log_event(event: Event) -> None:
        name = f"walk {event.walk or f'#{event.id}'}: "
        match event:
            case Started(task):
                log.info("%splanning%s", name, f": {task.description}" if content else "")
            case Asked(TextRequest()):
                log.debug("%sasked for a draft", name)
            case Answered(TextRequest(), answer):
                log.debug("%sgot a draft%s", name, f": {answer.text}" if content else "")
            case Drafted(_, taken, problem):
                suffix = f": {problem}" if problem and content else ""
                log.debug("%stook %d choices from the draft%s", name, taken, suffix)
            case Asked(question):
                log.debug("%sasked a question with %d options", name, len(question.options))
            case Answered(question, answer):
                chosen = ", ".join(map(str, answer.numbers))
                texts = "; ".join(question.options[number - 1].text for number in answer.numbers)
                log.debug("%sanswered %s%s", name, chosen, f": {texts}" if content else "")
            case Forced(text, left_out):
                log.debug("%sa choice left one option of %d%s", name, left_out + 1, f": {text}" if content else "")
            case Backtracked(text, word):
                log.info("%sdead end, back to terminal %d%s", name, len(word), f", without: {text}" if content else "")
            case Finished(plan):
                count = len(plan.word)
                log.info("%splan of %d terminals after %d questions", name, count, plan.usage.questions)
            case Failed(error, usage):
                suffix = f": {error}" if content else ""
                log.warning("%sno plan after %d questions: %s%s", name, usage.questions, type(error).__name__, suffix)

    return log_event
