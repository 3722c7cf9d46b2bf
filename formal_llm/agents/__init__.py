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

#: For each module the names that it defines. A guard needs few of these modules, and a hook of one starts often.
_HOMES = {
    "agent": "Agent",
    "conversation": "Conversation TurnWindow",
    "many": "AgentOutcome",
    "markers": "Markers Splitter",
    "monitor": "Allowed Event Monitor",
    "refusal": "Refusal",
    "transcript": "Correction Segment Transcript",
    "voting": "SelfConsistency Vote",
}

__getattr__ = export_lazily(__name__, _HOMES)

__all__ = [
    "Agent", "AgentOutcome", "Allowed", "Conversation", "Correction", "Event", "Markers", "Monitor", "Refusal",
    "Segment", "SelfConsistency", "Splitter", "Transcript", "TurnWindow", "Vote",
]  # fmt: skip
