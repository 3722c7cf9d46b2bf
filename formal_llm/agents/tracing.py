"""What happens while agents run, as OpenTelemetry spans.

Spans follow the semantic conventions for generative AI, as those of plans do
(:mod:`formal_llm.planning.drivers.tracing`): one ``invoke_agent`` span for a run, below it one ``chat`` span for each
request to the model and one ``execute_tool`` span for each call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formal_llm.agents.run_events import (
    Began,
    Called,
    Calling,
    Corrected,
    Ended,
    Received,
    Requested,
    RunEvent,
    ToolCall,
    Wrote,
)
from formal_llm.errors import AgentPaused
from formal_llm.llms.llm import LLM
from formal_llm.planning.drivers.tracing import ModelSpans, read_token_counts, write_messages

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer


@dataclass
class _RunSpans:
    """The open spans of a run.

    Attributes:
        chat: its request, if one is under way.
        tools: the calls that are under way, by tool and input, the earliest first.
        asked: whether the state that began last is written by the user.
    """

    run: Span
    chat: Span | None = None
    tools: dict[tuple[str, str], list[Span]] = field(default_factory=dict)
    asked: bool = False


class AgentSpans(ModelSpans):
    """Events of agents as OpenTelemetry spans: ``Agent(..., on_event=AgentSpans("react", "openai:MODEL"))``.

    One object is enough for many runs at once. A run that pauses has one span up to the pause, and another one from
    where it is resumed. Calls that are carried out at the same time end together.

    Args:
        llm: who answers; names the provider and the model.
        content: whether spans hold the texts: the question, the requests, inputs and results of tools, the answer.
        tracer: where spans go; that of the global tracer provider where left out.

    Raises:
        MissingDependency: the OpenTelemetry API is not installed.
    """

    def __init__(self, agent: str, llm: LLM | str = "", *, content: bool = False, tracer: Tracer | None = None) -> None:
        super().__init__(llm, content=content, tracer=tracer)
        self._agent = agent
        self._runs: dict[int, _RunSpans] = {}  # by the number of the run: names need not differ

    def __call__(self, event: RunEvent) -> None:
        """Begin, note on, or end the spans of the run that the event comes from."""
        spans = self._runs.get(event.id)
        if spans is None:
            spans = self._runs[event.id] = _RunSpans(self._start_run(event))
        match event:
            case Began(_, source):
                spans.asked = source == "user"
            case Wrote(_, text) if spans.asked and self._content:
                spans.run.set_attribute("gen_ai.input.messages", write_messages([("user", text)]))
            case Requested(request):
                self._end_chat(spans)
                spans.chat = self.start_chat(spans.run, request)
            case Received(usage):
                if spans.chat is not None:
                    spans.chat.set_attributes(read_token_counts(usage.token_usage))
                self._end_chat(spans)
            case Calling(tool, given):
                spans.tools.setdefault((tool, given), []).append(self.start_call(spans.run, tool, given))
            case Called(call):
                self._end_call(spans, call)
            case Corrected(correction):
                about = {"text": correction.written, "reason": correction.reason} if self._content else {}
                spans.run.add_event("formal_llm.corrected", about)
            case Ended():
                self._end_run(self._runs.pop(event.id), event)

    def _start_run(self, event: RunEvent) -> Span:
        about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": self._agent, **self._about}
        if event.run:
            about["formal_llm.run"] = event.run
        return self.start_child(f"invoke_agent {self._agent}", None, about)

    def _end_call(self, spans: _RunSpans, call: ToolCall) -> None:
        begun = spans.tools.get((call.tool, call.input))
        span = begun.pop(0) if begun else self.start_call(spans.run, call.tool, call.input)
        self.end_call(span, call.output, failed=not call.ok)

    def _end_chat(self, spans: _RunSpans, error: BaseException | None = None) -> None:
        if spans.chat is not None:
            if error is not None:
                self.mark_failed(spans.chat, error)
            spans.chat.end()
            spans.chat = None

    def _end_run(self, spans: _RunSpans, ended: Ended) -> None:
        error = ended.error
        paused = isinstance(error, AgentPaused)
        self._end_chat(spans, error)
        for span in (one for begun in spans.tools.values() for one in begun):
            if error is not None and not paused:
                self.mark_failed(span, error)
            span.end()
        spans.run.set_attributes(read_token_counts(ended.transcript.usage.token_usage))
        spans.run.set_attribute("formal_llm.corrections", len(ended.transcript.corrections))
        if paused:
            spans.run.set_attribute("formal_llm.paused", True)
        elif error is not None:
            self.mark_failed(spans.run, error)
        elif self._content:
            answer = write_messages([("assistant", ended.transcript.answer)])
            spans.run.set_attribute("gen_ai.output.messages", answer)
        spans.run.end()
