"""What the execution of a plan gave: every step with its value, or the error and what was computed before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from formal_llm.errors import ExecutionError
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.kinds import Value

#: What a step came to.
StepState = Literal["given", "executed", "cached", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of one call of a plan.

    Attributes:
        position: its place in the word of the plan, from 0.
        name: the tool or input.
        label: what a person reads for it.
        state: ``"given"`` for an input, ``"executed"``, ``"cached"`` (the result was there, or was being computed for
            another call), ``"failed"`` or ``"not run"``.
        value: what it gave; None where it gave nothing, or where it was not kept.
        inputs: the positions of what it was applied to.
        seconds: how long the tool took.
        tries: how often the tool was called for it.
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
    """What the execution of a plan gave.

    Attributes:
        plan: the plan.
        steps: one for each terminal of the word, in its order.
        error: what went wrong; None if nothing did.
        seconds: from the start of the execution to its end.
        cost: the costs of the tools that were executed.
    """

    plan: Plan
    steps: tuple[StepResult, ...]
    error: ExecutionError | None = None
    seconds: float = 0.0
    cost: float = 0.0

    @property
    def value(self) -> Value | None:
        """What the plan gave, typed; None if it did not end."""
        return self.steps[0].value if self.error is None else None

    @property
    def output(self) -> Any:
        """What the plan gave, whatever it is; ``value`` has its kind, too.

        Raises:
            ExecutionError: it did not end.
        """
        if self.error is not None:
            raise self.error
        value = self.steps[0].value
        assert value is not None
        return value.get()

    def __repr__(self) -> str:
        state = "done" if self.error is None else f"error: {self.error}"
        return f"<Result of {self.plan.call}: {state}>"
