"""What was called in a run, and what came back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from fractions import Fraction
from functools import cached_property
from typing import Any, cast

from formal_llm.guard.rules.data import Undetermined, Value, format_duration, is_equal
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.procedure import ProcedureTool


@dataclass(frozen=True)
class Call:
    """A call of a tool.

    Attributes:
        arguments: its arguments, by the names of the parameters.
    """

    tool: str
    arguments: Mapping[str, JSON]

    @cached_property
    def key(self) -> str:
        """A text that equal calls share."""
        return json.dumps([self.tool, self.arguments], sort_keys=True, ensure_ascii=False, default=str)

    def to_data(self) -> dict[str, JSON]:
        """Return the call as JSON data."""
        return {"tool": self.tool, "arguments": dict(self.arguments)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return f"{self.tool}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


@dataclass(frozen=True, eq=False)
class MadeCall:
    """A call and what came of it. Two calls are different, even if they are equal in all.

    Attributes:
        value: what it returned, as JSON.
        error: why it failed; empty if it did not.
        unclear: whether it may have been done all the same, as after a timeout.
    """

    call: Call
    value: JSON = None
    error: str = ""
    unclear: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether it did not fail, and returned neither false nor nothing."""
        return not self.error and self.value is not False and self.value is not None

    def to_data(self) -> dict[str, JSON]:
        """Return the call as JSON data."""
        if not self.error:
            return {**self.call.to_data(), "value": self.value}
        return {**self.call.to_data(), "error": self.error, **({"unclear": True} if self.unclear else {})}

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> MadeCall:
        """Read what :meth:`to_data` returns.

        Raises:
            LookupError, TypeError, AttributeError: it is something else.
        """
        plain: Any = data
        call = Call(plain["tool"], plain["arguments"])
        return cls(call, plain.get("value"), plain.get("error", ""), plain.get("unclear", False))

    def __str__(self) -> str:
        return f"{self.call} -> {f'failed: {self.error}' if self.error else json.dumps(self.value, ensure_ascii=False)}"


@dataclass
class CallHistory:
    """The calls of a run, in order.

    Args:
        tools: the tools, which determine whose results an action makes obsolete.
    """

    tools: Mapping[str, ProcedureTool]
    calls: list[MadeCall] = field(default_factory=list)

    def add(self, made: MadeCall) -> None:
        """Add a call."""
        self.calls.append(made)

    def find_result(self, call: Call) -> MadeCall | None:
        """Return the last result of a call, unless an action has made it obsolete; None if there is none."""
        for made in reversed(self.calls):
            if made.call == call:
                return made
            if self.tools[made.call.tool].makes_obsolete(call.tool):
                return None
        return None

    def list_from_latest(self, tools: Sequence[str]) -> Iterator[MadeCall]:
        """Yield the calls of some tools, the latest first."""
        return (made for made in reversed(self.calls) if made.call.tool in tools)


def matches_arguments(call: Call, wanted: Mapping[str, Value]) -> bool:
    """Return whether a call has some arguments."""
    try:
        return all(name in call.arguments and is_equal(call.arguments[name], value) for name, value in wanted.items())
    except Undetermined:
        return False


def as_json(value: Value) -> JSON:
    """Return a value as JSON: exact numbers as numbers, dates and durations as texts."""
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    return format_duration(value) if isinstance(value, timedelta) else cast("JSON", value)
