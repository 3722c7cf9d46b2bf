"""Agents that act in free text and tool calls, under rules: what watches them, what they wrote."""

from formal_llm.agents.events import Event
from formal_llm.agents.markers import Markers, Splitter
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.refusal import Refusal
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata.languages.front import Allowed

__all__ = ["Allowed", "Correction", "Event", "Markers", "Monitor", "Refusal", "Segment", "Splitter", "Transcript"]
