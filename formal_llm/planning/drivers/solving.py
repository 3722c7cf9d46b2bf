"""Solving a task: plan, carry the plan out, and plan around the tools that fail.

Planning knows nothing of tools. What carries plans out is a :class:`Runner`: it reports which terminals it cannot do,
runs a plan, and raises an error with the place of the tool that failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from formal_llm.automata import Limits, Source
from formal_llm.errors import NoPlanWorked, NoValidPlan, ToolError
from formal_llm.planning.drivers.driving import WalkDriver
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.task import Task
from formal_llm.planning.walks.walk import Walk

#: What carrying out a plan gives.
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Runner(Protocol[R_co]):
    """What carries plans out: a toolkit or an executor of :mod:`formal_llm.tools`, or whatever has these methods."""

    def limits(self, source: Source, given: Collection[str] | None = None) -> Limits:
        """Limits of 0 for the terminals that it cannot do, where only the inputs ``given`` are there."""

    def run(self, plan: Plan, inputs: Mapping[str, object]) -> R_co:
        """Carry a plan out; raises :class:`ToolError` with the ``position`` of the tool that failed.

        Where the error has a ``result``, the next plan is run with ``after=result``, so that steps with which it begins
        as the last one did need not be carried out again.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Solution(Generic[R]):
    """A task that was solved.

    Attributes:
        plan: the plan that worked.
        result: what carrying it out gave.
        failures: the errors on the way, in the order in which they came.
        usage: what all planning took, that of the plans which failed included.
    """

    plan: Plan
    result: R
    failures: tuple[ToolError, ...]
    usage: Usage


class TaskSolver(Generic[R]):
    """A task on its way to a solution: has a walk to be driven, takes what became of its plan. No input or output.

    A tool that fails rules out the branch that led to it, and the walk continues from there: perhaps it only failed on
    this input. A tool that has failed ``patience`` times is planned without: a new walk begins in which its limit is 0.
    So every failure brings a tool nearer to being left out, and no plan without the tools that fail is lost.

    Args:
        driver: who plans.
        task, inputs, runner, replans, patience: see :meth:`Planner.solve`.

    Attributes:
        walk: the walk that makes the next plan.
        failures: the errors of tools so far.

    Raises:
        NoValidPlan: nothing follows all the rules with these tools and inputs.
        ValueError: a setting that is none.
    """

    def __init__(
        self,
        driver: WalkDriver,
        task: str | Task,
        inputs: Mapping[str, object],
        runner: Runner[R],
        *,
        replans: int | None,
        patience: int,
    ) -> None:
        if patience < 1:
            raise ValueError(f"patience counts from 1, not {patience}")
        if replans is not None and replans < 0:
            raise ValueError(f"replans counts from 0, not {replans}")
        self.driver = driver
        self.runner = runner
        self.inputs = inputs
        self._patience = patience
        self._replans = replans
        task = Task.of(task)
        self._task = replace(task, limits=task.limits & runner.limits(driver.source, list(inputs)))
        self._spent = Usage()
        self.failures: list[ToolError] = []
        self.walk: Walk = driver.start(self._task)

    def handle_failure(self, error: ToolError | NoValidPlan) -> None:
        """The walk's plan met a tool that failed, or the walk found no plan: continue where another plan parts from it.

        Raises:
            NoPlanWorked: no other plan is left, or the budget of replans is used up.
            NoValidPlan: the error itself, where no tool has failed.
            ToolError: the error itself, where it does not give the place of the tool.
        """
        if isinstance(error, NoValidPlan):
            if not self.failures:
                raise error
            raise NoPlanWorked(self.failures) from error
        if error.position is None:
            raise error
        self.failures.append(error)
        if self._replans is not None and len(self.failures) > self._replans:
            raise NoPlanWorked(self.failures, self._replans) from error
        counts = Counter(failure.tool for failure in self.failures)
        try:
            if counts[error.tool] >= self._patience:
                self._spent += self.walk.usage
                self._task = replace(self._task, limits=self._task.limits & Limits({error.tool: 0}))
                self.walk = self.driver.start(self._task)
            else:
                self.walk.rule_out(error.position)
        except NoValidPlan as nothing:
            raise NoPlanWorked(self.failures) from nothing

    def run_plan(self, plan: Plan) -> R:
        """Carry a plan out, after what was done of the last one."""
        done = self.failures[-1].result if self.failures else None
        after = {} if done is None else {"after": done}
        return self.runner.run(plan, self.inputs, **after)

    def make_solution(self, result: R) -> Solution[R]:
        """The solution, when the walk's plan has been carried out."""
        plan = self.walk.plan
        return Solution(plan, result, tuple(self.failures), self._spent + plan.usage)


def solve_task(solving: TaskSolver[R]) -> Solution[R]:
    """Plan and carry out until a plan works; see :meth:`Planner.solve`."""
    while True:
        try:
            plan = solving.driver.drive(solving.walk)
            result = solving.run_plan(plan)
        except (ToolError, NoValidPlan) as error:
            solving.handle_failure(error)
        else:
            return solving.make_solution(result)


async def asolve_task(solving: TaskSolver[R]) -> Solution[R]:
    """As :func:`solve_task`, without blocking the event loop while the LLM and the tools work."""
    import asyncio  # half of what importing this library would take, and most never need it

    while True:
        try:
            plan = await solving.driver.adrive(solving.walk)
            result = await asyncio.to_thread(solving.run_plan, plan)
        except (ToolError, NoValidPlan) as error:
            solving.handle_failure(error)
        else:
            return solving.make_solution(result)
