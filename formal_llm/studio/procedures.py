"""A procedure in the studio: what is wrong with it, what its goals can come to, and where a run is."""

from __future__ import annotations

import json

from formal_llm.errors import FormalLLMError, InputError, Undecided
from formal_llm.pictures.drawable import picture_of
from formal_llm.pictures.parts import cut_around
from formal_llm.planning.drivers.strategies import Strategy, mark_way
from formal_llm.planning.plans.overlay import MOST
from formal_llm.procedures import Procedure, ProcedureOutcome
from formal_llm.procedures.foreseeing import follow_run, measure_strategy
from formal_llm.studio.drawn import drawn
from formal_llm.studio.parts import Asked, Part, Parts, text_of
from formal_llm.studio.rules import asked_procedure, problem

#: The most decisions of a strategy.
_DECISIONS = 1_000


def check_procedure(asked: Asked) -> Parts:
    """The problems of a procedure, and the strategy of the goal that is named, or of the first."""
    try:
        procedure = asked_procedure(asked)
    except FormalLLMError as error:
        yield {"part": "problems", "problems": [problem(error)]}
        return
    holes = [
        problem(FormalLLMError(f"{name}: not understood: {text}")) | {"kind": "warning"}
        for name, text in procedure.holes
    ]
    names = [tool.name for tool in procedure.goals]
    rows: list[Part] = [{"name": "goals", "value": ", ".join(names) or "none"}]
    try:
        strategy = _find_strategy(procedure, text_of(asked, "near", ""))
        calls, cost = measure_strategy(procedure, strategy)
        ways = f"{strategy.count():,} ways; at most {calls} calls, cost {cost:g}"
        rows.append({"name": strategy.task, "value": ways})
        shown = drawn(cut_around(picture_of(strategy), ["start"], MOST))
    except (InputError, Undecided) as error:
        shown = {"part": "undecided", "reason": str(error)}
    yield {"part": "problems", "problems": holes, "facts": rows}
    yield shown


def picture_procedure(asked: Asked) -> Parts:
    """The strategy of the goal that is named."""
    strategy = _find_strategy(asked_procedure(asked), text_of(asked, "near", ""))
    yield drawn(cut_around(picture_of(strategy), ["start"], MOST))


def _find_strategy(procedure: Procedure, goal: str) -> Strategy:
    """Make the strategy of a goal, or of the first, where the user gives all values."""
    names = [tool.name for tool in procedure.goals]
    if not names:
        raise InputError("the procedure has no goal")
    return procedure.strategy(goal if goal in names else names[0], sorted(procedure.names), most=_DECISIONS)


def judge_run(asked: Asked) -> Parts:
    """Where a run is in the strategy of its goal: of an outcome, or of evidence, as JSON."""
    procedure = asked_procedure(asked)
    try:
        outcome = ProcedureOutcome.from_data(json.loads(text_of(asked, "plan")))
        known = sorted(outcome.known.keys() & procedure.names)
        strategy = procedure.strategy(outcome.goal, known, most=_DECISIONS)
        followed = follow_run(procedure, strategy, outcome, known)
    except (FormalLLMError, ValueError, LookupError, TypeError, AttributeError) as error:
        shown = (
            error
            if isinstance(error, FormalLLMError)
            else FormalLLMError("this is no outcome of a run as JSON: act --json prints it")
        )
        yield {"part": "problems", "problems": [problem(shown)]}
        return
    place = strategy.nodes[followed.node]
    calls = {"names": [made.call.tool for made in outcome.calls], "labels": [str(made.call) for made in outcome.calls]}
    yield {
        "part": "verdict", "valid": place.question.startswith(outcome.ending), "reason": place.question, "word": calls,
        "position": None, "line": None, "allowed": [], "may_stop": not place.branches, "nearest": None, "changes": [],
        "skipped": [], "answers": None,
    }  # fmt: skip
    yield drawn(mark_way(strategy, followed.taken, MOST))
