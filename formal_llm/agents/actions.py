"""Actions: the tool calls that a run requests, by its states or within a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from formal_llm.agents.roles import Roles
from formal_llm.agents.transcript import Segment
from formal_llm.errors import did_you_mean


class Action(NamedTuple):
    """A tool call that a run requests.

    Attributes:
        tool: the name in the action.
        input: the text after it.
        label: the label, if there is one.
        refused: why the tool cannot be called; empty if it can.
    """

    tool: str = ""
    input: str = ""
    label: str = ""
    refused: str = ""


def actions_of(
    segments: Sequence[Segment], roles: Roles, refused: Mapping[int, str], tools: Iterable[str]
) -> list[Action]:
    """List the tool calls requested since the environment last wrote, each with everything known about it.

    Args:
        segments: the segments written so far.
        roles: which states are actions, labels, inputs, or written by the environment.
        refused: why actions cannot be carried out, by their positions among the segments.
        tools: the available tools, which the error for an input without an action names.
    """
    found: list[Action] = []
    begin, tools = max((at for at, one in enumerate(segments, 1) if one.state in roles.worlds), default=0), tuple(tools)
    open_ = Action()
    for at, segment in enumerate(segments[begin:], begin):
        if segment.state == roles.label:
            open_ = open_._replace(label=segment.text.strip())
        elif segment.state == roles.action:
            open_ = open_._replace(tool=segment.text.strip(), refused=refused.get(at, ""))
        elif segment.state == roles.calls:
            found += find_calls(segment.text, tools)
        elif segment.state == roles.input:
            without = f"no action stands before this input; name one of {', '.join(tools)}"
            found.append(open_._replace(input=segment.text.strip(), refused=open_.refused if open_.tool else without))
            open_ = Action()
    return found


_CALL = re.compile(r"\[Action\](.*?)\[Action Input\](.*?)(?=\[Action\]|\n\s*\[|\Z)", re.DOTALL)


def find_calls(text: str, tools: Sequence[str]) -> list[Action]:
    """List the tool calls in a text: ``[Action] search [Action Input] Danube``; refused where there is no such tool."""
    calls = [Action(name.strip(), given.strip()) for name, given in _CALL.findall(text)]
    return [call if call.tool in tools else call._replace(refused=report_unknown_tool(call.tool, tools, tools))
            for call in calls]  # fmt: skip


def report_unknown_tool(named: str, tools: Sequence[str], legal: Sequence[str]) -> str:
    """Explain that there is no such tool, in the words that the agent reads."""
    near = did_you_mean(named, tools)
    guess = f" (did you mean {near}?)" if near else ""
    return f"there is no tool {named[:100]!r}{guess}; the tools are {', '.join(legal)}"
