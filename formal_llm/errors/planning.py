"""What can go wrong while a plan is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from formal_llm.errors.base import FormalLLMError
from formal_llm.errors.execution import ToolError


class UnfinishedPlan(Protocol):
    """A plan, finished or not: a ``formal_llm.Plan``."""

    @property
    def word(self) -> tuple[str, ...]:
        """Its terminals."""
        ...

    @property
    def complete(self) -> bool:
        """Whether it is finished."""
        ...


class PlanningError(FormalLLMError):
    """Base of what can go wrong while a plan is made."""


class NoValidPlan(PlanningError):
    """No plan follows all the rules.

    Attributes:
        reason: why, in words.
        symbols: the grammar symbols that cannot be completed, where they are to blame.
        limits: the limits that clash, as they would be written in a grammar file, where they are to blame.
        constraints: the names of the constraints that clash, with each other or with those limits.
        remedy: a smallest set of limits and constraints without which there is a plan; empty where none is known.
    """

    def __init__(
        self,
        reason: str,
        *,
        symbols: Sequence[str] = (),
        limits: Sequence[str] = (),
        constraints: Sequence[str] = (),
        remedy: Sequence[str] = (),
    ) -> None:
        self.reason = reason
        self.symbols = tuple(symbols)
        self.limits = tuple(limits)
        self.constraints = tuple(constraints)
        self.remedy = tuple(remedy)
        super().__init__(f"no valid plan: {reason}")


class RunStopped(PlanningError):
    """A run of many tasks was stopped before this plan was finished; the same run continues it."""

    def __init__(self) -> None:
        super().__init__("the run was stopped before this plan was finished")


class BudgetExceeded(PlanningError):
    """A walk used up one of its budgets. Raise the budget on the walk and it continues from where it is.

    A best-first search does not continue but starts anew; what it has found is in ``plan``.

    Attributes:
        kind: ``"questions"``, ``"steps"``, ``"backtracks"``, ``"requests"``, ``"tokens"`` or ``"cost"``.
        budget: the number that was allowed.
        plan: the partial plan; its ``complete`` is False. Of a best-first search the best finished plan found so far,
            its ``complete`` True, or the most probable partial plan where none is finished yet.
        needed: the budget that would do at least, where that is known.
        decided: False where it was looked for and not found within the search time.
        shared: whether it is the budget of many plans together.
        hard: where options were offered undecided: how many, by which rule it takes long to search, and what to set.
    """

    def __init__(
        self,
        kind: str,
        budget: float,
        plan: UnfinishedPlan,
        needed: int | None = None,
        *,
        shared: bool = False,
        decided: bool = True,
        hard: str = "",
    ) -> None:
        self.kind = kind
        self.budget = budget
        self.plan: Any = plan
        self.needed = needed
        self.shared = shared
        self.decided = decided
        self.hard = hard
        least = "" if decided else "; how many are needed was not found within the search time"
        if needed is not None:
            least = f"; at least {needed} are needed"
        if plan.complete:
            found = f"; a plan of {len(plan.word)} terminals is finished (error.plan), there may be a more probable one"
        else:
            found = f" with {len(plan.word)} terminals in the plan"
        amount = f"a cost of {budget:g}" if kind == "cost" else f"{budget} {kind}"
        wider = f"budget=Budget({kind}=...)"
        whose, where = ("shared ", f"plan_all({wider})") if shared else ("", f"walk.budget, or Planner({wider})")
        why = f". {hard}" if hard else ""
        super().__init__(f"the {whose}budget of {amount} is used up{found}{least}; raise it ({where}) to go on{why}")


class WalkError(PlanningError):
    """A walk was asked for what it cannot do now: an answer without a question, a plan that is not finished."""


class ResultsError(PlanningError):
    """A results file that another run is writing, that belongs to another run, or that is damaged."""


class NoPlanWorked(PlanningError):
    """Plans were made and run, each met a tool that failed, and no plan is left or the budget of replans is used up.

    Attributes:
        failures: the errors of the tools, in the order in which they came.
        tools: the tools that failed, each once, in that order.
        replans: the budget that is used up; None where no plan is left.
    """

    def __init__(self, failures: Sequence[ToolError], replans: int | None = None) -> None:
        self.failures = tuple(failures)
        self.tools = tuple(dict.fromkeys(error.tool for error in self.failures))
        self.replans = replans
        why = "no other plan is left" if replans is None else f"the budget of {replans} replans is used up"
        last = {error.tool: error.problem for error in self.failures}
        listed = "; ".join(f"{tool} {problem}" for tool, problem in last.items())
        super().__init__(f"no plan could be carried out, and {why}: {listed}")


class TooManyPlans(PlanningError):
    """A task has more plans than shall be listed.

    Attributes:
        task: the description of the task.
        limit: how many were allowed.
        count: how many there are; infinite where there is no end to them, None where only that there are more is known.
    """

    def __init__(self, task: str, limit: int, count: float | None = None) -> None:
        self.task = task
        self.limit = limit
        self.count = count
        many = "more than that" if count is None else "infinitely many" if count == float("inf") else f"{count:,}"
        super().__init__(
            f"{limit:,} plans may be listed, and the task {task!r} has {many}; raise the limit, or tighten the rules"
        )


class SnapshotError(PlanningError, ValueError):
    """A snapshot that is damaged or was taken from a walk over another automaton."""


class QueryError(PlanningError, ValueError):
    """Wishes in words that contain too little, contradict each other, or name what is not there.

    Attributes:
        text: what was written.
        problems: what is wrong, each with the field that it concerns, and a way out or None.
    """

    def __init__(self, text: str, problems: Sequence[tuple[str, str, str | None]]) -> None:
        self.text = text
        self.problems = tuple(problems)
        listed = "\n".join(f"  {problem}" + (f"; {way_out}" if way_out else "") for _, problem, way_out in problems)
        super().__init__(f"this query cannot be used:\n{listed}")
