"""What happens while plans are made, as log lines."""

from __future__ import annotations

import logging
from collections.abc import Callable

from formal_llm.llms.generation import Writing
from formal_llm.planning.walks.events import (
    Answered,
    Asked,
    Backtracked,
    Drafted,
    Event,
    Failed,
    Finished,
    Forced,
    Started,
)


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
            case Asked(Writing()):
                log.debug("%sasked for a draft", name)
            case Answered(Writing(), answer):
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
