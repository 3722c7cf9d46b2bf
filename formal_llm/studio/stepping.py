"""Being the model: a walk that the page answers, where it stands, and how many plans lie behind each option.

The page keeps the answers, so going back is asking with one answer less; a walk is made anew from them each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

from formal_llm.automata import Lookahead
from formal_llm.automata.languages.how_many import FURTHER
from formal_llm.automata.lookahead.limited import LimitedAutomaton, LimitedConfiguration
from formal_llm.errors import AutomatonError, FormalLLMError, InfiniteLanguage, InvalidAnswer, NoValidPlan, Undecided
from formal_llm.planning import Task, Walk
from formal_llm.planning.checking.reasons import Reasons
from formal_llm.studio.drawn import drawn, plan_picture, standing_picture
from formal_llm.studio.parts import Asked, BadQuestion, Part, Parts, answers_of, text_of
from formal_llm.studio.rules import Written, asked_rules, problem

#: How many symbols of the stack, and how many options with their counts, are shown.
_STACK, _BRANCHES = 40, 60


def step(asked: Asked) -> Parts:
    """Where a walk stands after some answers: the question, the configuration, the picture, why options are missing."""
    written = asked_rules(asked)
    try:
        walk = replayed(written, asked)
        yield _position(written, walk)
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
        return
    if walk.done:
        yield drawn(plan_picture(written, walk.word))
        return
    yield drawn(standing_picture(written, written.lookahead.uncounted(walk.configuration)))
    yield {"part": "left out", "options": _left_out(written, walk)}


def branches(asked: Asked) -> Parts:
    """The options after some answers, one at a time, each with how many plans lie behind it."""
    written = asked_rules(asked)
    try:
        walk = replayed(written, asked)
        yield from _branches(written, walk)
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}


def replayed(written: Written, asked: Asked) -> Walk:
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


def _position(written: Written, walk: Walk) -> Part:
    question = walk.question
    state, stack = written.lookahead.uncounted(walk.configuration)
    plan = walk.partial
    return {
        "part": "position",
        "done": walk.done,
        "word": written.word(walk.word),
        "steps": [str(one) for one in plan.steps] if walk.done else [],
        "prompt": question.prompt if question is not None else "",
        "several": question is not None and question.several,
        "options": [] if question is None else [{"number": one.number, "text": one.text} for one in question.options],
        "state": _said(state),
        "stack": list(islice(stack, _STACK)),
        "deeper": max(0, len(stack) - _STACK),
        "limits": [*_limits(written.lookahead, walk.configuration)],
    }


def _said(state: object) -> str:
    """A state as it is shown; a product's is a pair."""
    return ", ".join(map(_said, state)) if isinstance(state, tuple) else str(state)


def _limits(lookahead: Lookahead, configuration: object) -> Iterator[Part]:
    """What is left of each limit: uses of a terminal as a number, sums as a part of the whole."""
    automaton = lookahead.automaton
    if not isinstance(automaton, LimitedAutomaton) or not isinstance(configuration, LimitedConfiguration):
        return
    counters = automaton.counters
    for bound, (shift, mask) in zip(counters.bounds, counters.fields, strict=True):
        upper = bound.most is not None
        whole = bound.most if bound.most is not None else bound.least
        now = (configuration.remaining if upper else configuration.needed) >> shift & mask
        yield {
            "line": bound.line, "terminal": bound.terminal, "kind": "left" if upper else "needed", "now": now,
            "whole": whole,
        }  # fmt: skip


def _left_out(written: Written, walk: Walk) -> list[Part]:
    try:
        return [{"text": one.text, "reason": one.reason} for one in Reasons(written.table).left_out(walk)]
    except (AutomatonError, Undecided) as error:
        return [{"text": "not looked for", "reason": str(error)}]


def _branches(written: Written, walk: Walk) -> Parts:
    question = walk.question
    if question is None:
        return
    lookahead = written.lookahead
    # One bound for all branches, so that the counts of an infinite language can be compared.
    longest = len(walk.word) + (lookahead.shortest(walk.configuration) or 0) + FURTHER
    sets: Iterator[tuple[int, ...]] = ((one.number,) for one in question.options)
    if question.several:
        numbers = [one.number for one in question.options]
        sets = (chosen for size in range(1, len(numbers) + 1) for chosen in combinations(numbers, size))
    shown = 0
    for chosen in sets:
        twin = walk.fork()
        try:
            twin.answer(chosen)
        except (InvalidAnswer, NoValidPlan):
            continue  # a set that the rules do not have, or a dead end that is found only now: no plan lies there
        if shown == _BRANCHES:
            yield {"part": "more branches"}
            return
        shown += 1
        text = ", ".join(question.options[number - 1].text for number in chosen)
        plans, bounded = _count(lookahead, twin, longest)
        yield {
            "part": "branch", "answer": list(chosen), "text": text, "plans": plans, "done": twin.done,
            "longest": longest if bounded else None,
        }  # fmt: skip


def _count(lookahead: Lookahead, walk: Walk, longest: int) -> tuple[str | None, bool]:
    """How many plans begin as a walk does, and whether only those of a bounded length; None where it is not counted."""
    try:
        return str(lookahead.count(walk.configuration)), False
    except InfiniteLanguage:
        pass
    except Undecided:
        return None, False
    try:
        return str(lookahead.count(walk.configuration, max_length=max(0, longest - len(walk.word)))), True
    except Undecided:
        return None, True
