"""Functions that the adapters share: values as JSON, the legal tools, messages to the model."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias, cast

from pydantic_core import to_jsonable_python

from formal_llm.guard.events import Decision
from formal_llm.guard.guard import Guard
from formal_llm.guard.live import GuardedRun

#: A value as JSON, as the rules see it.
Plain: TypeAlias = Any


class OuterCall(NamedTuple):
    """A call of a guarded agent whose tool is running: an agent that the tool runs belongs to the same run.

    Attributes:
        prefix: the prefix of the ids of the inner agent's calls, since ids are unique only within one agent.
    """

    run: GuardedRun
    prefix: str


_OUTER: ContextVar[OuterCall | None] = ContextVar("formal_llm_outer_call", default=None)


def find_outer_call(guard: Guard) -> OuterCall | None:
    """Find the call of an agent under the same guard within which this code runs."""
    outer = _OUTER.get()
    return outer if outer is not None and outer.run.guard is guard else None


@contextmanager
def within_call(run: GuardedRun, call_id: str) -> Iterator[None]:
    """Let agents under the same guard that are run meanwhile belong to a run, within a call with this id."""
    before = _OUTER.set(OuterCall(run, f"{call_id}/"))
    try:
        yield
    finally:
        _OUTER.reset(before)


def read_arguments(raw: object) -> dict[str, Plain] | None:
    """Read the arguments of a call as JSON from a framework's value; return None if they are not a JSON object."""
    if isinstance(raw, str | bytes):
        try:
            raw = json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            return None
    return cast("dict[str, Plain]", to_json_value(raw)) if isinstance(raw, Mapping) else None


def to_json_value(value: object) -> Plain:
    """Convert a value to JSON; anything else is represented by its text."""
    return to_jsonable_python(value, fallback=str)


def find_legal_tools(run: GuardedRun, names: Collection[str]) -> frozenset[str]:
    """Find the tools of an agent for which some call is legal now."""
    state = run.state
    return frozenset(name for name in names if state.allows_tool(name))


def append_warning(text: str, decision: Decision) -> str:
    """Append the warning of a rule to the result of a call, for the model to read."""
    return f"{text}\n\n{format_warning(decision)}" if decision.action == "warn" else text


def format_warning(decision: Decision) -> str:
    """Write the message to the model about a call that was made against a rule that only warns."""
    return f"Warning: {decision.message}"


def format_refusal(decision: Decision) -> str:
    """Write the message to the model about a call that was not made."""
    if decision.action == "ask":
        return f"{decision.message} Nobody could be asked, so the call was not made."
    return decision.message
