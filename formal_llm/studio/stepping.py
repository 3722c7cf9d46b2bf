"""Walks on the page: answered by who looks at it, or by a provider while the page watches.

The page keeps the answers, so going back means asking with one answer less; each time a new walk is built from them.
:class:`~formal_llm.planning.drivers.stepping.Stepping` describes the position that it has reached.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from functools import partial

from formal_llm.errors import AutomatonError, FormalLLMError, Undecided
from formal_llm.llms.driven import resumed
from formal_llm.llms.llm import answered
from formal_llm.llms.question import Answer
from formal_llm.planning import Planner, Task, Walk
from formal_llm.planning.drivers.driving import try_answer
from formal_llm.planning.drivers.stepping import Stepping
from formal_llm.planning.walks.events import Answered, Backtracked, Event, Forced
from formal_llm.planning.walks.events import Asked as AskedEvent
from formal_llm.studio.drawn import drawn
from formal_llm.studio.parts import Asked, BadQuestion, Part, Parts, answers_of, text_of
from formal_llm.studio.rules import MAX_STATES, ReadRules, asked_rules, problem

#: How many symbols of the stack are shown.
_STACK = 40


def step(asked: Asked) -> Parts:
    """A walk after some answers: the question, the configuration, the picture, and why options are missing."""
    written = asked_rules(asked)
    try:
        here = Stepping(replayed(written, asked), written.rules)
        yield _describe_position(written, here)
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
        return
    yield drawn(here.picture)
    if not here.done:
        yield {"part": "left out", "options": _explain_left_out(here)}


def branches(asked: Asked) -> Parts:
    """The options after some answers, one at a time, each with how many plans lie behind it."""
    written = asked_rules(asked)
    try:
        for one in Stepping(replayed(written, asked), written.rules).branches():
            if one is None:
                yield {"part": "more branches"}
            else:
                yield {
                    "part": "branch", "answer": list(one.numbers), "text": one.text, "done": one.done,
                    "plans": None if one.plans is None else str(one.plans), "longest": one.longest,
                }  # fmt: skip
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}


def replayed(written: ReadRules, asked: Asked) -> Walk:
    """The walk after the answers that are asked about.

    Raises:
        FormalLLMError: there is no plan, or an answer is none.
    """
    walk = Walk(written.table, Task(text_of(asked, "task", "")), wording=written.wording)
    for answer in answers_of(asked):
        if walk.question is None:
            raise BadQuestion("there are more answers than questions")
        walk.answer(answer)
    return walk


def _describe_position(written: ReadRules, here: Stepping) -> Part:
    question, stack = here.question, here.stack
    return {
        "part": "position",
        "done": here.done,
        "word": written.word(here.walk.word),
        "steps": [str(one) for one in here.plan.steps] if here.done else [],
        "prompt": question.prompt if question is not None else "",
        "several": question is not None and question.several,
        "options": [{"number": one.number, "text": one.text} for one in here.options],
        "state": here.state,
        "stack": list(stack[:_STACK]),
        "deeper": max(0, len(stack) - _STACK),
        "limits": [{**asdict(one), "amount": one.amount} for one in here.limits],
    }


def _explain_left_out(here: Stepping) -> list[Part]:
    try:
        return [{"text": one.text, "reason": one.reason} for one in here.left_out]
    except (AutomatonError, Undecided) as error:
        return [{"text": "not looked for", "reason": str(error)}]


def run(asked: Asked) -> Parts:
    """A plan made by a provider, question by question, each part as it happens."""
    written = asked_rules(asked)
    name = text_of(asked, "llm")
    if name.strip() == "person":
        raise BadQuestion('"person" answers on a terminal; here, answer the questions under "Be the model"')
    try:
        yield from _run_provider(written, name.strip(), text_of(asked, "task", ""))
    except (FormalLLMError, ValueError, OSError) as error:
        shown = error if isinstance(error, FormalLLMError) else FormalLLMError(str(error))
        yield {"part": "problems", "problems": [problem(shown)]}


def _run_provider(written: ReadRules, name: str, task: str) -> Parts:
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
                yield from _report_event(event, answers)
            happened.clear()
            given = try_answer(partial(answered, planner.llm), question)
    for event in happened:
        yield from _report_event(event, answers)
    # After a dead end the answers alone do not lead to the plan again.
    yield {
        "part": "finished", "word": written.word(walk.word), "plan": str(walk.plan), "questions": walk.usage.questions,
        "answers": [*answers] if straight else None,
    }  # fmt: skip


def _report_event(event: Event, answers: list[list[int]]) -> Parts:
    """What happened, as the page shows it; an answer is added to the others."""
    if isinstance(event, AskedEvent):
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
