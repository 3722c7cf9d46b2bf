"""The state of a run that has paused, as JSON: another process resumes it with the same behaviour and rules.

A run pauses when it is asked to, and when it waits for the world: for a person who has to approve a call, or for the
result of a tool that takes long. What was written, what was carried out and what was paid for is part of the state, so
nothing is asked and no tool is called twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from formal_llm.agents.run_events import ToolCall
from formal_llm.agents.transcript import Transcript
from formal_llm.authored.tables import AlternativeShape, Items, Keys, NamedEntries, Shape, problems
from formal_llm.errors import AgentPaused, Pending, RecordError
from formal_llm.llms.question import Answer
from formal_llm.llms.recorded import answer_from_data, answer_to_data
from formal_llm.planning.json_data import JSON

_FORMAT = "formal-llm run 1"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that a run waits for.

    Attributes:
        id: its name, by which :meth:`Agent.resume` is given its outcome.
        kind: ``"approval"`` if a person has to approve the call; ``"result"`` if its result comes later.
        input: what it is called with.
        question: what the tool asks for; empty for an approval.
    """

    id: str
    kind: Literal["approval", "result"]
    tool: str
    input: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class InnerRun:
    """A run of an agent that was called as a tool, at its end.

    Attributes:
        position: the number of segments of the outer run before its result.
        transcript: what was written.
        calls: the calls of tools that the rules of the outer run know.
    """

    position: int
    tool: str
    transcript: Transcript
    calls: tuple[str, ...] = ()


class InnerPaused(Pending):
    """A run of an agent that was called as a tool has paused.

    Attributes:
        waiting: the calls that it waits for.
    """

    def __init__(self, paused: AgentPaused) -> None:
        self.state = paused.state
        self.waiting = paused.waiting
        super().__init__(str(paused))


@dataclass(slots=True)
class WaitingRun:
    """A run of an agent that was called as a tool, and that has paused.

    Attributes:
        approved: what a person decided about its calls, by their names.
        results: the results of its calls, by their names.
    """

    state: str
    approved: dict[str, bool | str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)

    def take_up(self, call: str, given: bool | str, *, is_approval: bool) -> None:
        """Take up what was decided about a call, or its result."""
        if is_approval:
            self.approved[call] = given
        else:
            self.results[call] = str(given)


@dataclass(slots=True)
class WorldRecord:
    """What was done for the state that the environment is writing, so that a run that pauses does not repeat it.

    Attributes:
        calls_before: the number of calls recorded before.
        carried: the calls that were carried out, by their numbers.
        answers: what the model answered.
        approved: what a person decided about calls, by their numbers.
        acted: the number of actions since the function that writes the state began.
        asked: the number of requests since then.
        paused: the runs of agents that have paused, by the numbers of their calls.
        noted: what the agent that is being called has called.
    """

    calls_before: int = 0
    carried: dict[int, ToolCall] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)
    approved: dict[int, bool | str] = field(default_factory=dict)
    acted: int = 0
    asked: int = 0
    paused: dict[int, WaitingRun] = field(default_factory=dict)
    noted: list[str] = field(default_factory=list)


def read_number(name: str) -> int:
    """The number of a call within its turn, by the name that :class:`Waiting` has for it."""
    return int(name.rpartition(".")[2])


@dataclass(frozen=True)
class PausedRun:
    """The state of a run.

    Attributes:
        fingerprint: the fingerprint of the agent's rules.
        transcript: what was written.
        calls: the calls of earlier turns of the environment.
        refused: why actions cannot be carried out, by their positions among the segments.
        narrowed: the bounds on states that were added during the run.
        world: the state that the environment is writing; empty if it is the model's turn.
        carried: the calls that were carried out for it, by their numbers.
        answers: what the model answered for it.
        approved: what a person decided about calls, by their numbers: True, or False or a reason.
        waiting: the calls that the run waits for.
        inner: the runs of agents that were called as tools.
        paused: the states of those that have paused, by the numbers of their calls.
    """

    fingerprint: str
    question: str
    transcript: Transcript
    calls: tuple[ToolCall, ...] = ()
    refused: Mapping[int, str] = field(default_factory=dict)
    writer: Mapping[str, JSON] = field(default_factory=dict)
    narrowed: Mapping[str, int] = field(default_factory=dict)
    world: str = ""
    carried: Mapping[int, ToolCall] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    approved: Mapping[int, bool | str] = field(default_factory=dict)
    waiting: tuple[Waiting, ...] = ()
    tools: JSON = None
    inner: tuple[InnerRun, ...] = ()
    paused: Mapping[int, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the state as JSON text."""
        data = {
            "format": _FORMAT,
            "rules": self.fingerprint,
            "question": self.question,
            "transcript": self.transcript.to_jsonl(),
            "calls": [call.to_data() for call in self.calls],
            "refused": {str(place): reason for place, reason in self.refused.items()},
            "writer": dict(self.writer),
            "narrowed": dict(self.narrowed),
            "world": self.world,
            "carried": {str(number): call.to_data() for number, call in self.carried.items()},
            "answers": [answer_to_data(answer) for answer in self.answers],
            "approved": {str(number): given for number, given in self.approved.items()},
            "waiting": [asdict(one) for one in self.waiting],
            "tools": self.tools,
            "inner": [
                {"position": one.position, "tool": one.tool, "calls": [*one.calls],
                 "transcript": one.transcript.to_jsonl()}
                for one in self.inner
            ],
            "paused": {str(number): state for number, state in self.paused.items()},
        }  # fmt: skip
        return json.dumps(data, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str, fingerprint: str) -> PausedRun:
        """Read the state of a run under rules with this fingerprint.

        Raises:
            RecordError: it is damaged, or belongs to other rules.
            RecordError: its transcript is damaged.
        """
        try:
            data: Any = json.loads(text)
        except ValueError as error:
            raise RecordError(f"the state of the run is damaged: {error}") from error
        for found in problems(data, _SHAPE):
            raise RecordError(f"the state of the run is damaged: {found.problem}")
        if data["rules"] != fingerprint:
            raise RecordError(
                f"the run was paused under rules with the fingerprint {data['rules']}, and this agent's have "
                f"{fingerprint}: its behaviour, its rules, its limits or the names of its tools differ"
            )
        try:
            return cls(
                fingerprint,
                data["question"],
                Transcript.from_jsonl(data["transcript"]),
                tuple(ToolCall(**call) for call in data["calls"]),
                {int(place): reason for place, reason in data["refused"].items()},
                data["writer"],
                data["narrowed"],
                data["world"],
                {int(number): ToolCall(**call) for number, call in data["carried"].items()},
                tuple(map(answer_from_data, data["answers"])),
                {int(number): given for number, given in data["approved"].items()},
                tuple(Waiting(**one) for one in data["waiting"]),
                data["tools"],
                tuple(
                    InnerRun(one["position"], one["tool"], Transcript.from_jsonl(one["transcript"]), (*one["calls"],))
                    for one in data["inner"]
                ),
                {int(number): state for number, state in data["paused"].items()},
            )
        except (TypeError, ValueError) as error:
            raise RecordError(f"the state of the run is damaged: {error}") from error


_CALL = Keys(
    {"position": int, "tool": str, "input": str, "output": str, "ok": bool, "label": str},
    needed=("position", "tool", "input", "output"),
)
_KINDS = AlternativeShape(texts=("approval", "result"))
_WAITING = Keys({"id": str, "kind": _KINDS, "tool": str, "input": str, "question": str}, needed=("id", "kind"))
_INNER: dict[str, Shape] = {"position": int, "tool": str, "transcript": str, "calls": Items(str)}
_SHAPE = Keys(
    {
        "format": AlternativeShape(texts=(_FORMAT,)), "rules": str, "question": str, "transcript": str,
        "calls": Items(_CALL), "refused": NamedEntries(str), "writer": NamedEntries(object),
        "narrowed": NamedEntries(int), "world": str,
        "carried": NamedEntries(_CALL), "answers": Items(object),
        "approved": NamedEntries(AlternativeShape((bool, str))), "waiting": Items(_WAITING), "tools": object,
        "inner": Items(Keys(_INNER, needed=(*_INNER,))), "paused": NamedEntries(str),
    },
    needed=(
        "format", "rules", "question", "transcript", "calls", "refused", "writer", "narrowed", "world", "carried",
        "answers", "approved", "waiting", "tools", "inner", "paused",
    ),
)  # fmt: skip
