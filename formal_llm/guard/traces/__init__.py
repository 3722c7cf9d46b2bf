"""Readers of recorded traces, which convert them to events of a guard."""

from typing import TYPE_CHECKING

from formal_llm.exports import export_lazily
from formal_llm.guard.traces.trace import Trace

if TYPE_CHECKING:
    from formal_llm.guard.traces.reading import read_traces, traces_of

__getattr__ = export_lazily(__name__, {"reading": "read_traces traces_of"})

__all__ = ["Trace", "read_traces", "traces_of"]
