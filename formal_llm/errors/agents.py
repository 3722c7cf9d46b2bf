"""What can go wrong with agents: what they do, and what is read of what they did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from formal_llm.errors.base import FormalLLMError


class RefusedEvent(Protocol):
    """Why something cannot come now: a ``formal_llm.agents.Refusal``."""

    @property
    def reason(self) -> str:
        """In a sentence for a person, or for a model."""
        ...

    @property
    def limits(self) -> Sequence[str]:
        """The limits to blame, as lines of the grammar notation."""
        ...

    @property
    def constraints(self) -> Sequence[str]:
        """The constraints to blame, by name."""
        ...


class AgentError(FormalLLMError):
    """Base of what can go wrong with agents."""


class NotAllowed(AgentError):
    """An event after which the rules cannot be kept any more.

    Attributes:
        refusal: the event, the rules to blame, and what is allowed instead.
    """

    def __init__(self, refusal: RefusedEvent) -> None:
        self.refusal = refusal
        super().__init__(refusal.reason)


class EarlyStop(Protocol):
    """Why a run may not end yet: a ``formal_llm.guard.Decision``."""

    @property
    def rule(self) -> str:
        """The rule that is not kept yet."""
        ...

    @property
    def message(self) -> str:
        """The text that the model received."""
        ...


class EarlyAnswer(AgentError):
    """A guarded agent answered too early once more than it may.

    Attributes:
        decision: why it may not end yet.
        times: how many of its answers were sent back.
    """

    def __init__(self, decision: EarlyStop, times: int) -> None:
        self.decision = decision
        self.times = times
        super().__init__(
            f"the agent answered too early {times + 1} times and was sent back {times} times (most_early={times}): "
            f"{decision.message}"
        )


class TranscriptError(AgentError, ValueError):
    """A transcript that cannot be read, or that its agent could not have written."""


class WritingError(AgentError):
    """A model did not get to an end within the bounds of its writer, or nothing can come next.

    Attributes:
        state: the state that was being written; empty where the next one was looked for.
        wrote: what the model wrote last.
        legal: what it could have written.
    """

    def __init__(self, problem: str, state: str = "", wrote: str = "", legal: Sequence[str] = ()) -> None:
        self.problem = problem
        self.state = state
        self.wrote = wrote
        self.legal = tuple(legal)
        super().__init__(problem)


class AgentTranscript(Protocol):
    """What an agent wrote: a ``formal_llm.agents.Transcript``."""

    def __len__(self) -> int:
        """The number of segments."""
        ...


class AgentStopped(AgentError):
    """A run of an agent used up its budget.

    Attributes:
        kind: ``"questions"``, ``"requests"``, ``"tokens"``, ``"cost"`` or ``"steps"``.
        budget: how much was allowed.
        transcript: the run as far as it came.
        shared: whether it is the budget of many runs together.
        run: of a modular agent, all that is known of the run; else None.
    """

    def __init__(
        self, kind: str, budget: float, transcript: AgentTranscript, *, shared: bool = False, run: object = None
    ) -> None:
        self.kind = kind
        self.budget = budget
        self.transcript: Any = transcript
        self.shared = shared
        self.run: Any = run
        amount = f"a cost of {budget:g}" if kind == "cost" else f"{budget:,} {kind}"
        whose = "shared " if shared else ""
        what, more = ("steps", "RunBudget") if run is not None else ("segments", "Budget")
        super().__init__(
            f"the {whose}budget of {amount} is used up after {len(transcript)} {what} (error.transcript); raise it "
            f"(budget={more}({kind}=...))"
            + (", and with its journal the run goes on where it stands" if run is not None else "")
        )


class WaitingCall(Protocol):
    """A call that a run waits for: a ``formal_llm.agents.pausing.Waiting``."""

    @property
    def id(self) -> str:
        """Its name."""
        ...

    @property
    def kind(self) -> str:
        """``"approval"`` or ``"result"``."""
        ...

    @property
    def tool(self) -> str:
        """The tool."""
        ...

    @property
    def input(self) -> str:
        """What it is called with."""
        ...

    @property
    def question(self) -> str:
        """What the tool asks for."""
        ...


class AgentPaused(AgentError):
    """A run of an agent has paused: it was asked to, or it waits for a person or for the result of a tool.

    Attributes:
        state: the state of the run as JSON text, with which an agent of the same behaviour and rules resumes it.
        transcript: the run as far as it came.
        waiting: the calls that it waits for (:class:`~formal_llm.agents.pausing.Waiting`).
    """

    def __init__(self, state: str, transcript: AgentTranscript, waiting: Sequence[WaitingCall] = ()) -> None:
        self.state = state
        self.transcript: Any = transcript
        self.waiting = tuple(waiting)
        needs = {one.id: "an approval" if one.kind == "approval" else one.question for one in self.waiting}
        why = ": " + "; ".join(f"{one.tool} ({one.id}) waits for {needs[one.id]}" for one in self.waiting)
        why = why if self.waiting else ""
        super().__init__(
            f"the run has paused after {len(transcript)} segments{why}; resume it: agent.resume(error.state)"
        )


class AuditError(AgentError, ValueError):
    """The log of a guard cannot be used: the file, and what to do."""


class TraceError(AgentError, ValueError):
    """A trace of an agent cannot be read: the file, the line or place in it, and what was expected."""
