"""The result of executing a plan: every step with its value, or the error and the values computed before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from formal_llm.errors import ExecutionError
from formal_llm.llms.usage import NO_TOKENS, TokenUsage
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.kinds import Value

#: The state of a step.
StepState = Literal["given", "decided", "executed", "cached", "failed", "not run"]


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one call of a plan.

    Attributes:
        position: its position in the word of the plan, from 0.
        name: the tool or input.
        label: its name for people.
        state: ``"given"`` for an input, ``"decided"`` for the answer to a decision, ``"executed"``, ``"cached"`` (the
            result of a pure tool was known, or was being computed for another call), ``"failed"`` or ``"not run"``.
        value: its value; None if there is none, or if it was not kept.
        inputs: the positions of the steps whose results it took.
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
        usage: what a model that wrote arguments has used.
    """

    plan: Plan
    steps: tuple[StepResult, ...]
    error: ExecutionError | None = None
    seconds: float = 0.0
    cost: float = 0.0
    usage: TokenUsage = NO_TOKENS

    @property
    def last(self) -> StepResult | None:
        """The step that is carried out last, decisions aside; None for a plan without steps."""
        steps = self.steps if self.plan.order == "prefix" else self.steps[::-1]
        return next((step for step in steps if step.state != "decided"), None)

    @property
    def value(self) -> Value | None:
        """The value of the last step, typed; None if the plan did not complete, or has no step."""
        return self.last.value if self.error is None and self.last is not None else None

    @property
    def output(self) -> Any:
        """The value of the last step, without its kind, which ``value`` has; None for a plan without steps.

        Raises:
            ExecutionError: the plan did not complete.
        """
        if self.error is not None:
            raise self.error
        return None if self.value is None else self.value.get()

    def __repr__(self) -> str:
        state = "done" if self.error is None else f"error: {self.error}"
        return f"<Result of {self.plan.call or ' '.join(step.name for step in self.steps)}: {state}>"


#: What can happen to a step.
ProgressEvent = Literal["started", "executed", "cached", "failed"]


@dataclass(frozen=True, slots=True)
class Progress:
    """An event of a step.

    Attributes:
        event: ``"started"`` when its tool is called; how the step ended.
        job: the position of its plan among those executed together.
        position: the position of the step in the word of that plan.
        done: the number of steps with tools that have ended, of all plans in progress.
        total: the number of steps with tools of all plans in progress.
        seconds: the time that the tool took.
    """

    event: ProgressEvent
    tool: str
    job: int
    position: int
    done: int
    total: int
    seconds: float = 0.0


#: Called with each event.
OnProgress = Callable[[Progress], None]
