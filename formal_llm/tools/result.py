"""The result of executing a plan: every step with its value, or the error and the values computed before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from formal_llm.errors import ExecutionError
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.kinds import Value

#: The state of a step.
StepState = Literal["given", "executed", "cached", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one call of a plan.

    Attributes:
        position: its position in the word of the plan, from 0.
        name: the tool or input.
        label: its name for people.
        state: ``"given"`` for an input, ``"executed"``, ``"cached"`` (the result was known, or was being computed for
            another call), ``"failed"`` or ``"not run"``.
        value: its value; None if there is none, or if it was not kept.
        inputs: the positions of its arguments.
        seconds: the time that the tool took.
        tries: how often the tool was called.
    """

    position: int
    name: str
    label: str
    state: StepState
    value: Value | None = None
    inputs: tuple[int, ...] = ()
    seconds: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """The result of executing a plan.

    Attributes:
        steps: one step for each terminal of the word, in order.
        error: the error; None if there was none.
        seconds: the total time of the execution.
        cost: the total cost of the executed tools.
    """

    plan: Plan
    steps: tuple[StepResult, ...]
    error: ExecutionError | None = None
    seconds: float = 0.0
    cost: float = 0.0

    @property
    def value(self) -> Value | None:
        """The value of the plan, typed; None if the plan did not complete."""
        return self.steps[0].value if self.error is None else None

    @property
    def output(self) -> Any:
        """The value of the plan, without its kind, which ``value`` has.

        Raises:
            ExecutionError: the plan did not complete.
        """
        if self.error is not None:
            raise self.error
        value = self.steps[0].value
        assert value is not None
        return value.get()

    def __repr__(self) -> str:
        state = "done" if self.error is None else f"error: {self.error}"
        return f"<Result of {self.plan.call}: {state}>"
