"""Agents that act in free text and tool calls, under rules: what watches them, what they wrote, and they themselves."""

from formal_llm.agents.agent import Agent
from formal_llm.agents.conversation import Conversation, TurnSummary, TurnWindow
from formal_llm.agents.many import AgentOutcome
from formal_llm.agents.markers import Markers, Splitter
from formal_llm.agents.monitor import Event, Monitor
from formal_llm.agents.refusal import Refusal
from formal_llm.agents.transcript import Correction, Segment, Transcript, transcript_picture
from formal_llm.agents.voting import SelfConsistency, Vote
from formal_llm.automata.languages.fronts import Allowed
from formal_llm.pictures.drawable import register_picture

register_picture(Transcript, transcript_picture)

__all__ = [
    "Agent", "AgentOutcome", "Allowed", "Conversation", "Correction", "Event", "Markers", "Monitor", "Refusal",
    "Segment", "SelfConsistency", "Splitter", "Transcript", "TurnSummary", "TurnWindow", "Vote",
]  # fmt: skip
