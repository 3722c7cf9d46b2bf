"""What a guard is told, and what it answers: calls, results, texts, decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, cast

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.planning.json_data import JSON

#: What happens to a call: it runs, it runs and is written down, it runs and the model is warned, a person is asked, it
#: does not run. From the mildest to the strictest.
Action = Literal["allow", "log", "warn", "ask", "block"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that an agent wants to make, or has made.

    Attributes:
        tool: the name of the tool.
        arguments: its arguments, as JSON.
        id: what the provider calls it; a result belongs to the call of the same id.
        approved: whether a person has approved it.
        at: when; the guard's clock says it where it is left out.
    """

    tool: str
    arguments: Mapping[str, JSON] = field(default=FrozenDict(), hash=False)
    id: str = ""
    approved: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned.

    Attributes:
        tool: the name of the tool.
        arguments: the arguments of its call.
        value: what it returned, as JSON. A text that is a JSON object or list is read as one.
        id: that of its call.
        error: whether the call failed.
        at: when.
    """

    tool: str
    arguments: Mapping[str, JSON] = field(default=FrozenDict(), hash=False)
    value: JSON = field(default=None, hash=False)
    id: str = ""
    error: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A text: what the user said, or what the assistant answered.

    Attributes:
        role: ``"user"``, ``"assistant"`` or another role that the rules name.
        text: the text.
        at: when.
    """

    role: str
    text: str = ""
    at: datetime | None = None


#: What a guard is told.
GuardEvent = Call | Result | Said


@dataclass(frozen=True, slots=True)
class Decision:
    """What a guard says of a call, or of stopping.

    Attributes:
        action: what is to happen.
        rule: the rule that asks for it; where several rules together do, the first; empty where it is allowed.
        reason: why, in a sentence; empty where there is nothing to say.
        allowed: what could be done instead: the tools that may be called, of those told to the guard, else the letters
            of the rules that may come.
        way: the shortest way to an end that keeps the rules, a step at a time; empty where none is known.
        rules: all the rules that ask for it together.
        certain: False where a bound on the search was hit, so that it is not known whether the rules can be kept.
    """

    action: Action
    rule: str = ""
    reason: str = ""
    allowed: tuple[str, ...] = ()
    way: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    certain: bool = True

    @property
    def runs(self) -> bool:
        """Whether the call is made without asking anybody."""
        return self.action in ("allow", "log", "warn")

    @property
    def message(self) -> str:
        """What the model is told: the rule, what is allowed, and the shortest way on."""
        if self.action in ("allow", "log"):
            return ""
        said = [self.reason]
        if self.action in ("ask", "block"):
            if self.allowed:
                said.append(f"Allowed now: {_join_names(self.allowed)}.")
            if self.way:
                said.append(f"The shortest way on: {', then '.join(self.way)}.")
        return " ".join(said)


#: How many names a message lists.
_LISTED = 12


def _join_names(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


ALLOW = Decision("allow")
UNSURE = Decision("allow", certain=False)


def as_row(event: GuardEvent) -> dict[str, JSON]:
    """An event as plain data for JSON."""
    at = {} if event.at is None else {"at": event.at.isoformat()}
    if isinstance(event, Said):
        return {"said": event.role, "text": event.text, **at}
    kind = "call" if isinstance(event, Call) else "result"
    row: dict[str, JSON] = {kind: event.tool, "arguments": dict(event.arguments), **at}
    if event.id:
        row["id"] = event.id
    if isinstance(event, Call):
        return {**row, "approved": True} if event.approved else row
    row["value"] = event.value
    return {**row, "error": True} if event.error else row


def from_row(row: Mapping[str, JSON]) -> GuardEvent:
    """The event that :func:`as_row` wrote.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    at = datetime.fromisoformat(cast("str", row["at"])) if "at" in row else None
    if "said" in row:
        return Said(str(row["said"]), str(row["text"]), at)
    arguments = cast("Mapping[str, JSON]", row["arguments"])
    if not isinstance(arguments, dict):
        raise TypeError("the arguments are no object")
    name = str(row.get("id", ""))
    if "call" in row:
        return Call(str(row["call"]), arguments, name, row.get("approved") is True, at)
    return Result(str(row["result"]), arguments, row["value"], name, row.get("error") is True, at)
