"""What became of a question among many, and its line in a results file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from formal_llm.agents.happenings import ToolCall
from formal_llm.agents.transcript import Transcript
from formal_llm.errors import AgentError, InvalidAnswer, ToolError, WritingError
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.task import Task


@dataclass(frozen=True, slots=True, eq=False)
class AgentOutcome:
    """What became of a question among many.

    Attributes:
        index: its place among the questions, from 0.
        task: the question.
        transcript: the run, or as far as it came.
        error: why it is not whole; None where it is.
        calls: the calls of tools.
    """

    index: int
    task: Task
    transcript: Transcript
    error: Exception | None = None
    calls: tuple[ToolCall, ...] = ()

    @property
    def usage(self) -> Usage:
        """What it took."""
        return self.transcript.usage

    def unwrap(self) -> Transcript:
        """The whole transcript; raises the error if there is none."""
        if self.error is not None:
            raise self.error
        return self.transcript


def outcome_to_data(outcome: AgentOutcome) -> dict[str, JSON] | None:
    """The line of an outcome, as JSON data; None for a failure that may pass before anything was asked.

    What may succeed at another time (the provider could not be reached, the money was used up) is ``stopped``.
    """
    error = outcome.error
    data: dict[str, Any] = {"index": outcome.index, "task": outcome.task.description}
    if error is None:
        data["status"] = "planned"
    else:
        lasting = isinstance(error, (AgentError, InvalidAnswer, ToolError)) and not getattr(error, "shared", False)
        if not lasting and not outcome.usage.requests and not outcome.usage.questions:
            return None
        data |= {"status": "failed" if lasting else "stopped", "error": type(error).__name__, "message": str(error)}
    calls = [call.to_data() for call in outcome.calls]
    return {**data, "transcript": outcome.transcript.to_jsonl(), "calls": calls, "usage": asdict(outcome.usage)}


def outcome_from_data(line: dict[str, Any]) -> AgentOutcome:
    """The outcome that a line tells; of a failure the error is one that says what was said then."""
    transcript = Transcript.from_jsonl(line["transcript"])
    error = None if line["status"] == "planned" else WritingError(line.get("message", line["status"]))
    calls = tuple(ToolCall(**call) for call in line.get("calls", ()))
    return AgentOutcome(line["index"], Task(line["task"]), transcript, error, calls)
