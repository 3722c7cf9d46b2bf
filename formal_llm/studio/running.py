"""A run with a provider, watched: what is asked, what is answered, and the plan that comes out."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from formal_llm.errors import FormalLLMError
from formal_llm.llms.driven import resumed
from formal_llm.llms.llm import answered
from formal_llm.llms.question import Answer
from formal_llm.planning import Planner
from formal_llm.planning.drivers.driving import try_answer
from formal_llm.planning.walks.events import Answered, Asked, Backtracked, Event, Forced
from formal_llm.studio import parts
from formal_llm.studio.parts import BadQuestion, Part, Parts, text_of
from formal_llm.studio.rules import MAX_STATES, ReadRules, asked_rules, problem


def run(asked: parts.Asked) -> Parts:
    """A plan made by a provider, question by question, each part as it happens."""
    written = asked_rules(asked)
    name = text_of(asked, "llm")
    if name.strip() == "person":
        raise BadQuestion('"person" answers on a terminal; here, answer the questions under "Be the model"')
    try:
        yield from _run(written, name.strip(), text_of(asked, "task", ""))
    except (FormalLLMError, ValueError, OSError) as error:
        shown = error if isinstance(error, FormalLLMError) else FormalLLMError(str(error))
        yield {"part": "problems", "problems": [problem(shown)]}


def _run(written: ReadRules, name: str, task: str) -> Parts:
    happened: list[Event] = []
    planner = Planner(written.source, llm=name, max_states=MAX_STATES, on_event=happened.append)
    walk = planner.start(task)
    steps = planner.steps(walk)
    answers: list[list[int]] = []
    straight = True
    with suppress(StopIteration):
        given: Answer | Exception | None = None
        while True:
            question = resumed(steps, given)
            for event in happened:
                straight = straight and not isinstance(event, Backtracked)
                yield from _told(event, answers)
            happened.clear()
            given = try_answer(partial(answered, planner.llm), question)
    for event in happened:
        yield from _told(event, answers)
    # After a dead end the answers alone do not lead to the plan again.
    yield {
        "part": "finished", "word": written.word(walk.word), "plan": str(walk.plan), "questions": walk.usage.questions,
        "answers": [*answers] if straight else None,
    }  # fmt: skip


def _told(event: Event, answers: list[list[int]]) -> Parts:
    """What happened, as the page shows it; an answer joins the others."""
    if isinstance(event, Asked):
        yield {"part": "asked", "prompt": event.question.prompt}
    elif isinstance(event, Answered):
        numbers = list(event.answer.numbers)
        answers.append(numbers)
        text = ", ".join(event.question.options[number - 1].text for number in numbers)
        found: Part = {"part": "answered", "answer": numbers, "text": text, "answers": [*answers]}
        yield found
    elif isinstance(event, Forced):
        yield {"part": "forced", "text": event.text, "left_out": event.left_out}
    elif isinstance(event, Backtracked):
        yield {"part": "backtracked", "text": event.text}
