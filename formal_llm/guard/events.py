"""The inputs and outputs of a guard: calls, results, texts, decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, cast

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.planning.json_data import JSON

#: What happens to a call, from the mildest to the strictest: it runs, it runs and is logged, it runs and the model is
#: warned, a person is asked, it does not run.
Action = Literal["allow", "log", "warn", "ask", "block"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that an agent wants to make, or has made.

    Attributes:
        tool: the name of the tool.
        arguments: its arguments, as JSON.
        id: the provider's identifier; a result belongs to the call with the same id.
        approved: whether a person has approved it.
        at: its time, in UTC if it has no time zone; by default the time of the guard's clock.
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
        value: the returned value, as JSON. A text that is a JSON object or list is read as one.
        id: the id of its call.
        error: whether the call failed.
        at: its time.
    """

    tool: str
    arguments: Mapping[str, JSON] = field(default=FrozenDict(), hash=False)
    value: JSON = field(default=None, hash=False)
    id: str = ""
    error: bool = False
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A text of the user or the assistant.

    Attributes:
        role: ``"user"``, ``"assistant"`` or another role that the rules name.
        text: the text.
        at: its time.
    """

    role: str
    text: str = ""
    at: datetime | None = None


#: An event that a guard is notified of.
GuardEvent = Call | Result | Said


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a guard about a call, or about stopping.

    Attributes:
        action: what has to happen.
        rule: the rule that requires it, the first one if several do; empty if it is allowed.
        reason: a sentence that explains it; empty if there is nothing to explain.
        allowed: the tools that may be called instead, out of the tools of the guard, or else of those that the rules
            name.
        way: the steps of the shortest way to an end that keeps the rules; empty if none is known.
        rules: all the rules that require it together.
        certain: False if the search hit a bound, so that it is unknown whether the rules can be kept.
        refused: the tool of the call; if it is among the allowed ones, other calls of it may be made.
    """

    action: Action
    rule: str = ""
    reason: str = ""
    allowed: tuple[str, ...] = ()
    way: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    certain: bool = True
    refused: str = ""

    @property
    def runs(self) -> bool:
        """Whether the call is made without asking a person."""
        return self.action in ("allow", "log", "warn")

    @property
    def message(self) -> str:
        """The message to the model: the rule, what is allowed, and the shortest way on."""
        if self.action in ("allow", "log"):
            return ""
        sentences = [self.reason]
        if self.action in ("ask", "block"):
            if self.allowed:
                names = [f"{one} (if called differently)" if one == self.refused else one for one in self.allowed]
                sentences.append(f"Allowed now: {_join_names(names)}.")
            if self.way:
                sentences.append(f"The shortest way on: {', then '.join(self.way)}.")
        return " ".join(sentences)


#: The maximum number of names in a message.
_LISTED = 12


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


ALLOW = Decision("allow")


def as_row(event: GuardEvent) -> dict[str, JSON]:
    """Convert an event to plain data for JSON."""
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
    """Read an event from the data that :func:`as_row` wrote.

    Raises:
        KeyError, TypeError, ValueError: the data is not an event.
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
