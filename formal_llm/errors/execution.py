"""What can go wrong when a plan is carried out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from formal_llm.errors.base import FormalLLMError


class NumberedStep(Protocol):
    """A step of a plan: a ``formal_llm.Step``."""

    @property
    def number(self) -> int:
        """Its place, from 1."""
        ...


class ExecutionError(FormalLLMError):
    """Base of what can go wrong when a plan is executed."""


class ToolkitError(ExecutionError, ValueError):
    """Tools that contradict each other, the grammar or the plan.

    Attributes:
        problems: everything that is wrong, one sentence each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        start = "\n  " if len(self.problems) > 1 else " "
        super().__init__("the tools do not fit:" + start + "\n  ".join(self.problems))


class InputError(ExecutionError, ValueError):
    """An input that cannot be used: missing, too large, damaged, outside its folder, of another kind."""


class ToolError(ExecutionError):
    """A tool that failed while a plan was executed.

    Attributes:
        reason: ``"failed"`` (it raised), ``"timeout"``, ``"memory"`` (it used or returned too much) or ``"kind"`` (what
            it returned is not what it declares).
        problem: what happened, in words, without the name of the tool.
        position: its place in the word of the plan, from 0; None outside a plan.
        step: the step of the plan, where there is one for it.
        cause: what the tool raised, if it did.
        result: what was computed before (a :class:`~formal_llm.tools.Result`); None outside a plan.
    """

    def __init__(
        self,
        tool: str,
        problem: str,
        *,
        reason: str = "failed",
        position: int | None = None,
        step: NumberedStep | None = None,
        cause: BaseException | None = None,
        result: object = None,
    ) -> None:
        self.tool = tool
        self.problem = problem
        self.reason = reason
        self.position = position
        self.step: Any = step
        self.cause = cause
        self.result: Any = result
        where = f" (step {step.number})" if step is not None else ""
        super().__init__(f"{tool}{where} {problem}")

    def at(self, position: int, step: NumberedStep | None) -> ToolError:
        """The same error at a place in a plan."""
        return ToolError(self.tool, self.problem, reason=self.reason, position=position, step=step, cause=self.cause)


class CheckpointError(ExecutionError):
    """The model of a tool cannot be had, or does not fit the tool.

    Attributes:
        tool: the tool, or the tools that share the model, with commas between.
        checkpoint: its name on the hub, or its folder.
        remedy: what to do about it.
    """

    def __init__(self, tool: str, checkpoint: str, problem: str, remedy: str) -> None:
        self.tool = tool
        self.checkpoint = checkpoint
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{tool}: the checkpoint {checkpoint!r} {problem}; {remedy}")


class Pending(ExecutionError):
    """Raised by a tool of an agent whose result comes later: from a person, or from work that takes long.

    The run then pauses (:class:`AgentPaused`), and is resumed with the result.

    Attributes:
        question: what is waited for, in words.
    """

    def __init__(self, question: str) -> None:
        self.question = question
        super().__init__(question)


class Cancelled(ExecutionError):
    """An execution was cancelled.

    Attributes:
        result: what was computed before (a :class:`~formal_llm.tools.Result`), where it is a single plan's.
    """

    def __init__(self, result: object = None) -> None:
        self.result: Any = result
        super().__init__("the execution was cancelled")
