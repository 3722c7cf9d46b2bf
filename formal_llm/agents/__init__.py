"""Agents that act in free text and tool calls, under rules: what watches them, what they wrote, and they themselves."""

from typing import TYPE_CHECKING

from formal_llm.exports import export_lazily

if TYPE_CHECKING:
    from formal_llm.agents.agent import Agent
    from formal_llm.agents.conversation import Conversation, TurnWindow
    from formal_llm.agents.many import AgentOutcome
    from formal_llm.agents.markers import Markers, Splitter
    from formal_llm.agents.monitor import Allowed, Event, Monitor
    from formal_llm.agents.refusal import Refusal
    from formal_llm.agents.transcript import Correction, Segment, Transcript
    from formal_llm.agents.voting import SelfConsistency, Vote

#: For each name the module that defines it. A guard needs few of these modules, and a hook of one starts often.
_HOMES = {
    "Agent": "agent",
    "AgentOutcome": "many",
    "Allowed": "monitor",
    "Conversation": "conversation",
    "Correction": "transcript",
    "Event": "monitor",
    "Markers": "markers",
    "Monitor": "monitor",
    "Refusal": "refusal",
    "Segment": "transcript",
    "SelfConsistency": "voting",
    "Splitter": "markers",
    "Transcript": "transcript",
    "TurnWindow": "conversation",
    "Vote": "voting",
}

__getattr__ = export_lazily(__name__, _HOMES)

__all__ = [
    "Agent", "AgentOutcome", "Allowed", "Conversation", "Correction", "Event", "Markers", "Monitor", "Refusal",
    "Segment", "SelfConsistency", "Splitter", "Transcript", "TurnWindow", "Vote",
]  # fmt: skip
