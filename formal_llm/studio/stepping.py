"""Being the model on the page: where a walk stands after some answers, and how many plans lie behind each option.

The page keeps the answers, so going back is asking with one answer less; a walk is made anew from them each time. What
is known of where it stands, :class:`~formal_llm.planning.drivers.stepping.Stepping` determines.
"""

from __future__ import annotations

from dataclasses import asdict

from formal_llm.errors import AutomatonError, FormalLLMError, Undecided
from formal_llm.planning import Task, Walk
from formal_llm.planning.drivers.stepping import Stepping
from formal_llm.studio.drawn import drawn
from formal_llm.studio.parts import Asked, BadQuestion, Part, Parts, answers_of, text_of
from formal_llm.studio.rules import ReadRules, asked_rules, problem

#: How many symbols of the stack are shown.
_STACK = 40


def step(asked: Asked) -> Parts:
    """Where a walk stands after some answers: the question, the configuration, the picture, why options are missing."""
    written = asked_rules(asked)
    try:
        here = Stepping(replayed(written, asked), written.rules)
        yield _position(written, here)
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
        return
    yield drawn(here.picture)
    if not here.done:
        yield {"part": "left out", "options": _left_out(here)}


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


def _position(written: ReadRules, here: Stepping) -> Part:
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
        "limits": [asdict(one) for one in here.limits],
    }


def _left_out(here: Stepping) -> list[Part]:
    try:
        return [{"text": one.text, "reason": one.reason} for one in here.left_out]
    except (AutomatonError, Undecided) as error:
        return [{"text": "not looked for", "reason": str(error)}]
