"""Traces that others recorded, read into the events that a guard looks at."""

from formal_llm.guard.traces.reading import read_traces, traces_of
from formal_llm.guard.traces.trace import Trace

__all__ = ["Trace", "read_traces", "traces_of"]
