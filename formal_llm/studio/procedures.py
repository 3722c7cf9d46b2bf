"""A procedure in the studio: what is wrong with it, what its goals can come to, and where a run is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import cast

from formal_llm.errors import AuditError, FormalLLMError, InputError, Undecided
from formal_llm.guard.audit import FORMAT, read_lines
from formal_llm.pictures.drawable import picture_of
from formal_llm.pictures.parts import cut_around
from formal_llm.planning.drivers.strategies import Strategy, mark_way
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.overlay import MOST
from formal_llm.procedures import Procedure, ProcedureOutcome
from formal_llm.procedures.foreseeing import FollowedRun, follow_run, measure_strategy
from formal_llm.procedures.record import MadeCall
from formal_llm.studio.drawn import drawn
from formal_llm.studio.parts import Asked, Part, Parts, build_verdict, text_of
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
        rows.append({"name": strategy.task.partition(" (")[0], "value": ways})
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
    """Where a run is in the strategy of its goal: of an outcome or of evidence, as JSON, or of a journal."""
    procedure, plan, goals = asked_procedure(asked), text_of(asked, "plan"), ""
    is_journal = FORMAT in plan[:200]
    try:
        if is_journal:
            # It names neither its goal, which is that whose strategy it follows farthest, nor what is still to be used.
            runs = []
            for one in _read_journal(procedure, plan):
                with suppress(Undecided):  # another goal may be too large
                    runs.append(_follow_outcome(procedure, one, sorted(procedure.names)))
            if not runs:
                raise InputError("there is no goal with a strategy that is small enough to follow the run")
            ranks = [(len(followed.taken), f'"tool":"{outcome.goal}"' in plan) for outcome, _, followed in runs]
            runs = [run for run, rank in zip(runs, ranks, strict=True) if rank == max(ranks)]
            (outcome, strategy, followed), goals = runs[0], " or ".join(run[0].goal for run in runs[:3])
            goals += f" or {len(runs) - 3} others" if len(runs) > 3 else ""
        else:
            outcome = ProcedureOutcome.from_data(json.loads(plan))
            known = sorted(outcome.known.keys() & procedure.names)
            outcome, strategy, followed = _follow_outcome(procedure, outcome, known)
    except (FormalLLMError, ValueError, LookupError, TypeError, AttributeError) as error:
        shown = (
            error
            if isinstance(error, FormalLLMError)
            else FormalLLMError("this is no journal, and no outcome of a run as JSON: act --json prints it")
        )
        yield {"part": "problems", "problems": [problem(shown)]}
        return
    place = strategy.nodes[followed.node]
    calls: Part = {
        "names": [made.call.tool for made in outcome.calls],
        "labels": [str(made.call) for made in outcome.calls],
    }
    valid = is_journal or place.question.startswith(outcome.ending)
    reason = f"under way to {goals}; now: {place.question}" if is_journal and place.branches else place.question
    yield build_verdict(valid, reason, calls) | {"may_stop": not place.branches}
    yield drawn(mark_way(strategy, followed.taken, MOST))


def _follow_outcome(
    procedure: Procedure, outcome: ProcedureOutcome, known: Collection[str]
) -> tuple[ProcedureOutcome, Strategy, FollowedRun]:
    strategy = procedure.strategy(outcome.goal, known, most=_DECISIONS)
    return outcome, strategy, follow_run(procedure, strategy, outcome, known)


def _read_journal(procedure: Procedure, text: str) -> list[ProcedureOutcome]:
    """Read a journal, as a run to each goal; what the user gave is what calls were made with."""
    reading = read_lines(text.encode())
    if reading.faults:
        raise AuditError(f"the journal was changed: {reading.faults[0]}")
    begun = [cast("Mapping[str, Mapping[str, JSON]]", entry.row.get("calling", {})) for entry in reading.entries]
    known = {name: value for call in begun for name, value in call.get("arguments", {}).items()}
    replies = (entry.row["reply"] for entry in reading.entries if entry.row.get("asked") == "call")
    made = tuple(MadeCall.from_data(cast("Mapping[str, object]", reply)) for reply in replies)
    return [ProcedureOutcome("handed over", tool.name, calls=made, known=known) for tool in procedure.goals]
