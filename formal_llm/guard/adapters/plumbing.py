"""Functions that the adapters share: values as JSON, the legal tools, messages to the model."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias, cast

from pydantic_core import to_jsonable_python

from formal_llm.guard.events import Decision
from formal_llm.guard.live import GuardedRun

#: A value as JSON, as the rules see it.
Plain: TypeAlias = Any


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
