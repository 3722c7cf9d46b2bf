"""What the execution of a plan gave: every step with its value, or the error and what was computed before it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from formal_llm.errors import Cancelled, ExecutionError, ToolError
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.kinds import Kind
from formal_llm.tools.values import Value

#: What a step came to.
State = Literal["given", "executed", "cached", "failed", "not run"]


@dataclass(frozen=True, slots=True, eq=False)
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
    state: State
    value: Value | None = None
    inputs: tuple[int, ...] = ()
    seconds: float = 0.0
    tries: int = 0


@dataclass(frozen=True, slots=True, eq=False)
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
        """What the plan gave.

        Raises:
            ExecutionError: it did not end.
        """
        return self.unwrap()

    def unwrap(self) -> Any:
        """What the plan gave; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        value = self.steps[0].value
        assert value is not None
        return value.get()

    def __repr__(self) -> str:
        state = "done" if self.error is None else f"error: {self.error}"
        return f"<Result of {self.plan.call}: {state}>"

    def to_html(self) -> str:
        """A page that shows every step; see :mod:`formal_llm.tools.report`."""
        from formal_llm.tools.report import report

        return report(self)

    def save(self, path: str | Path) -> Path:
        """Write :meth:`to_html` to a file."""
        path = Path(path)
        path.write_text(self.to_html(), encoding="utf-8")
        return path

    # -- as data, for other processes ---------------------------------------------------------------------------

    def to_data(self) -> dict[str, Any]:
        """The result as JSON data; values as the bytes of their kinds, an error as its facts."""
        error: dict[str, Any] | None = None
        if isinstance(self.error, ToolError):
            error = {key: getattr(self.error, key) for key in ("tool", "problem", "reason", "position")}
        elif self.error is not None:
            error = {}
        return {
            "plan": self.plan.to_json(),
            "seconds": self.seconds,
            "cost": self.cost,
            "error": error,
            "steps": [
                {
                    "position": step.position,
                    "name": step.name,
                    "label": step.label,
                    "state": step.state,
                    "inputs": list(step.inputs),
                    "seconds": step.seconds,
                    "tries": step.tries,
                    "value": None if step.value is None else value_to_data(step.value),
                }
                for step in self.steps
            ],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any], kind: Callable[[str], Kind]) -> Result:
        """The result that :meth:`to_data` wrote.

        Args:
            data: the data.
            kind: the kind of a name.
        """
        plan = Plan.from_json(data["plan"])
        steps = tuple(
            StepResult(
                row["position"],
                row["name"],
                row["label"],
                row["state"],
                None if row["value"] is None else value_from_data(row["value"], kind),
                tuple(row["inputs"]),
                row["seconds"],
                row["tries"],
            )
            for row in data["steps"]
        )
        error: ExecutionError | None = None
        told = data["error"]
        if told:
            step = next((step for step in plan.steps if step.position == told["position"]), None)
            error = ToolError(
                told["tool"], told["problem"], reason=told["reason"], position=told["position"], step=step
            )
        elif told is not None:
            error = Cancelled()
        result = cls(plan, steps, error, data["seconds"], data["cost"])
        if isinstance(error, (ToolError, Cancelled)):
            error.result = result
        return result


def value_to_data(value: Value) -> dict[str, str]:
    """A value as JSON data."""
    return {
        "kind": value.kind.name,
        "key": value.key,
        "bytes": base64.b64encode(value.dump()).decode("ascii"),
    }


def value_from_data(data: Mapping[str, str], kind: Callable[[str], Kind]) -> Value:
    """The value that :func:`value_to_data` wrote."""
    return Value(kind(data["kind"]), key=data["key"], payload=base64.b64decode(data["bytes"]))
