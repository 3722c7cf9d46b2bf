"""What the adapters share: values as JSON, which tools are listed, what a model reads."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias, cast

from pydantic_core import to_jsonable_python

from formal_llm.guard.events import Decision
from formal_llm.guard.live import GuardedRun

#: A value as JSON, which the rules read.
Plain: TypeAlias = Any


def read_arguments(raw: object) -> dict[str, Plain] | None:
    """The arguments of a call as JSON, from what a framework holds; None where they are no JSON object."""
    if isinstance(raw, str | bytes):
        try:
            raw = json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            return None
    return cast("dict[str, Plain]", to_json_value(raw)) if isinstance(raw, Mapping) else None


def to_json_value(value: object) -> Plain:
    """A value as JSON; what is none is told as its text."""
    return to_jsonable_python(value, fallback=str)


def find_legal_tools(run: GuardedRun, names: Collection[str]) -> frozenset[str]:
    """Of the tools of an agent, those for which some call is legal now."""
    state = run.state
    return frozenset(name for name in names if state.allows_tool(name))


def append_warning(text: str, decision: Decision) -> str:
    """The result of a call as a model reads it, with the warning of a rule behind it."""
    return f"{text}\n\n{format_warning(decision)}" if decision.action == "warn" else text


def format_warning(decision: Decision) -> str:
    """What a model reads of a call that was made against a rule that only warns."""
    return f"Warning: {decision.message}"


def format_refusal(decision: Decision) -> str:
    """What a model reads of a call that was not made."""
    if decision.action == "ask":
        return f"{decision.message} Nobody could be asked, so the call was not made."
    return decision.message
