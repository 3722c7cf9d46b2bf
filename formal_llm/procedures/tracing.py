"""Runs of procedures as OpenTelemetry spans.

Spans are as those of plans and agents (:mod:`formal_llm.planning.drivers.tracing`): one ``invoke_workflow`` span for a
run, below it one ``chat`` span for each request to the model and one ``execute_tool`` span for each call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formal_llm.llms.question import Answer, Question
from formal_llm.planning.drivers.tracing import ModelSpans, read_token_counts, write_messages
from formal_llm.procedures.record import MadeCall
from formal_llm.procedures.run import ProcedureOutcome, ProcedureRun, Request, ToolRequest

if TYPE_CHECKING:
    from opentelemetry.trace import Span


@dataclass
class Traced:
    """Something that has a span: a run or a request, and what came of it."""

    span: Span | None = None
    result: object = None


class ProcedureSpans(ModelSpans):
    """Runs as OpenTelemetry spans: ``run_procedure(..., spans=ProcedureSpans("openai:MODEL"))``.

    One object is enough for many runs at once. What a journal replays has no spans. With ``content=True`` spans hold
    texts: the request, questions, arguments and results of calls.
    """

    @contextmanager
    def trace(self, what: ProcedureRun | Request, parent: Span | None = None) -> Iterator[Traced]:
        """Open the span of a run, or of a request below it; people who are asked have none."""
        traced = Traced(self._start(what, parent))
        if traced.span is None:
            yield traced
            return
        try:
            yield traced
        except BaseException as error:
            self.mark_failed(traced.span, error)
            traced.span.end()
            raise
        self._end(traced.span, traced.result)

    def _start(self, what: ProcedureRun | Request, parent: Span | None) -> Span | None:
        match what:
            case ProcedureRun():
                about = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "formal_llm.procedure"}
                about["formal_llm.procedure"] = what.procedure.name
                if self._content:
                    about["gen_ai.input.messages"] = write_messages([("user", what.request)])
                return self.start_child("invoke_workflow formal_llm.procedure", None, about)
            case Question():
                return self.start_chat(parent, what)
            case ToolRequest(call):
                return self.start_call(parent, call.tool, json.dumps(dict(call.arguments), ensure_ascii=False))
        return None

    def _end(self, span: Span, result: object) -> None:
        match result:
            case Answer():
                self.end_chat(span, result)
            case MadeCall():
                shown = result.error or json.dumps(result.value, ensure_ascii=False)
                self.end_call(span, shown, failed=bool(result.error))
            case ProcedureOutcome():
                span.set_attributes(read_token_counts(result.usage))
                span.set_attributes({"formal_llm.ending": result.ending, "formal_llm.goal": result.goal})
                if self._content:
                    span.set_attribute("gen_ai.output.messages", write_messages([("assistant", str(result))]))
                span.end()
