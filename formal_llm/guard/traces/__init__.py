"""Readers of recorded traces, which convert them to events of a guard."""

from formal_llm.guard.traces.reading import read_traces, traces_of
from formal_llm.guard.traces.trace import Trace

__all__ = ["Trace", "read_traces", "traces_of"]
