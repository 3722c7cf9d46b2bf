"""What a run asks of tools: the texts of its actions, labels and inputs, put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from formal_llm.agents.roles import Roles
from formal_llm.agents.transcript import Segment


class Action(NamedTuple):
    """What a run asks of a tool.

    Attributes:
        tool: the name in the action.
        input: the text behind it.
        label: its label, where it has one.
        refused: why the tool cannot be called; empty where it can.
    """

    tool: str = ""
    input: str = ""
    label: str = ""
    refused: str = ""


def actions_of(
    segments: Sequence[Segment], roles: Roles, refused: Mapping[int, str], tools: Iterable[str]
) -> list[Action]:
    """What is asked of tools since the environment wrote last, each with all that is known of it.

    Args:
        segments: what was written.
        roles: which state is an action, a label, an input, the environment's.
        refused: why actions cannot be carried out, by their places among the segments.
        tools: the tools that there are, for an input without an action.
    """
    found: list[Action] = []
    begin = max((at for at, one in enumerate(segments, 1) if one.state in roles.worlds), default=0)
    open_ = Action()
    for at, segment in enumerate(segments[begin:], begin):
        if segment.state == roles.label:
            open_ = open_._replace(label=segment.text.strip())
        elif segment.state == roles.action:
            open_ = open_._replace(tool=segment.text.strip(), refused=refused.get(at, ""))
        elif segment.state == roles.input:
            without = f"no action stands before this input; name one of {', '.join(tools)}"
            found.append(open_._replace(input=segment.text.strip(), refused=open_.refused if open_.tool else without))
            open_ = Action()
    return found
