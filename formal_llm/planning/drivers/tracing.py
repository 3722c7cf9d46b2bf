"""What happens while plans are made, as OpenTelemetry spans or as log lines.

Both are event callbacks for ``Planner(on_event=...)``. The texts of tasks, questions and answers are left out unless
``content=True``: they may be confidential, and a collector may be somebody else's.

Spans follow the semantic conventions for generative AI (OpenTelemetry, in development as of version 1.41): one
``invoke_workflow`` span for a plan, and below it one ``chat`` span for each question.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from formal_llm.errors import MissingDependency
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.walks.events import (
    Answered,
    Asked,
    Backtracked,
    Drafted,
    Event,
    Failed,
    Finished,
    Forced,
    Started,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from formal_llm.planning.plans.plan import Plan

#: How the conventions call providers that we call otherwise.
_PROVIDERS = {"llamacpp": "llama.cpp"}


class ModelSpans:
    """What spans of plans and of agents share: where they go, and the model whose requests are among them.

    Args:
        llm: who answers; names the provider and the model.
        content: whether spans hold texts.
        tracer: where spans go; that of the global tracer provider where left out.

    Raises:
        MissingDependency: the OpenTelemetry API is not installed.
    """

    def __init__(self, llm: LLM | str = "", *, content: bool = False, tracer: Tracer | None = None) -> None:
        try:
            from opentelemetry import trace
        except ImportError as error:
            raise MissingDependency("tracing needs the OpenTelemetry API: pip install 'formal-llm[otel]'") from error
        self._trace = trace
        self._tracer = tracer if tracer is not None else trace.get_tracer("formal_llm")
        self._content = content
        name = llm if isinstance(llm, str) else str(getattr(llm, "name", type(llm).__name__))
        provider, _, model = name.partition(":")
        self._model = model or name
        self._about = {"gen_ai.provider.name": _PROVIDERS.get(provider, provider)} if name else {}
        if self._model:
            self._about["gen_ai.request.model"] = self._model

    def start_child(
        self, name: str, parent: Span | None, about: Mapping[str, str | int], *, is_request: bool = False
    ) -> Span:
        """Start a span below another one."""
        kinds = self._trace.SpanKind
        return self._tracer.start_span(
            name,
            context=self._trace.set_span_in_context(parent) if parent is not None else None,
            kind=kinds.CLIENT if is_request else kinds.INTERNAL,
            attributes=about,
        )

    def start_chat(self, parent: Span | None, question: Question) -> Span:
        """Start the span of a request."""
        about: dict[str, str | int] = {"gen_ai.operation.name": "chat", **self._about}
        if not isinstance(question, Writing):
            about["formal_llm.options"] = len(question.options)
        if self._content:
            about["gen_ai.input.messages"] = write_messages([(m.role, m.content) for m in question.messages])
        return self.start_child(f"chat {self._model}".strip(), parent, about, is_request=True)

    def end_chat(self, span: Span, answer: Answer) -> None:
        """End the span of a request that was answered."""
        span.set_attributes(read_token_counts(answer.usage))
        if answer.numbers:
            span.set_attribute("formal_llm.answer", list(answer.numbers))
        if answer.probabilities is not None and len(answer.numbers) == 1:
            span.set_attribute("formal_llm.probability", answer.probabilities.get(answer.numbers[0], 0.0))
        if self._content and answer.text:
            span.set_attribute("gen_ai.output.messages", write_messages([("assistant", answer.text)]))
        span.end()

    def start_call(self, parent: Span | None, tool: str, given: str) -> Span:
        """Start the span of a call of a tool, with its arguments as a text."""
        about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
        if self._content:
            about["gen_ai.tool.call.arguments"] = given
        return self.start_child(f"execute_tool {tool}", parent, about)

    def end_call(self, span: Span, result: str, *, failed: bool) -> None:
        """End the span of a call, with its result or its error as a text."""
        if failed:
            span.set_attribute("error.type", "ToolError")
            span.set_status(self._trace.StatusCode.ERROR, result if self._content else None)
        if self._content:
            span.set_attribute("gen_ai.tool.call.result", result)
        span.end()

    def mark_failed(self, span: Span, error: BaseException) -> None:
        """Record the kind of an error; its words may quote the question, so they need ``content=True``."""
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(self._trace.StatusCode.ERROR, str(error) if self._content else None)


class Spans(ModelSpans):
    """Events of plans as OpenTelemetry spans; see :class:`ModelSpans` for the arguments."""

    def __init__(self, llm: LLM | str = "", *, content: bool = False, tracer: Tracer | None = None) -> None:
        super().__init__(llm, content=content, tracer=tracer)
        self._plans: dict[int, Span] = {}  # by the walk's own number: names need not differ
        self._questions: dict[int, Span] = {}

    def __call__(self, event: Event) -> None:
        """Begin, note on, or end the spans of the walk that the event comes from."""
        match event:
            case Started(task, walk):
                self._end_spans(event.id, TokenUsage(), None)  # where a walk begins again
                about = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": "formal_llm.plan"}
                if walk:
                    about["formal_llm.walk"] = walk
                if self._content:
                    about["formal_llm.task"] = task.description
                self._plans[event.id] = self._tracer.start_span("invoke_workflow formal_llm.plan", attributes=about)
            case Asked(question):
                self._questions[event.id] = self.start_chat(self._plans.get(event.id), question)
            case Answered(_, answer):
                self._end_question(event.id, answer)
            case Forced(text, left_out):
                self._add_event(event.id, "formal_llm.forced", {"left_out": left_out}, text)
            case Drafted(text, taken, problem):
                self._add_event(event.id, "formal_llm.drafted", {"taken": taken, "legible": not problem}, text)
            case Backtracked(text, word):
                self._add_event(event.id, "formal_llm.backtracked", {"terminals": len(word)}, text)
            case Finished(plan):
                self._note_plan(event.id, plan)
                self._end_spans(event.id, plan.usage.token_usage, None)
            case Failed(error, usage):
                self._end_spans(event.id, usage.token_usage, error)

    def _end_question(self, walk: int, answer: Answer) -> None:
        span = self._questions.pop(walk, None)
        if span is None:
            return
        self.end_chat(span, answer)

    def _note_plan(self, walk: int, plan: Plan) -> None:
        span = self._plans.get(walk)
        if span is None:
            return
        span.set_attribute("formal_llm.questions", plan.usage.questions)
        if plan.usage.drafts:
            span.set_attribute("formal_llm.drafts", plan.usage.drafts)
        if self._content:
            span.set_attribute("formal_llm.plan", " ".join(plan.word))

    def _add_event(self, walk: int, name: str, about: dict[str, Any], text: str) -> None:
        if walk in self._plans:
            self._plans[walk].add_event(name, {**about, **({"text": text} if self._content else {})})

    def _end_spans(self, walk: int, usage: TokenUsage, error: BaseException | None) -> None:
        for spans in (self._questions, self._plans):
            span = spans.pop(walk, None)
            if span is None:
                continue
            if error is not None:
                self.mark_failed(span, error)
            if spans is self._plans:
                span.set_attributes(read_token_counts(usage))
            span.end()


def read_token_counts(usage: TokenUsage) -> dict[str, int]:
    """The tokens of a request, as attributes of its span."""
    if not usage.requests:
        return {}
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def write_messages(messages: list[tuple[str, str]]) -> str:
    """Messages, each with its role, as the conventions have them."""
    parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in messages]
    return json.dumps(parts, ensure_ascii=False)


def logged(logger: logging.Logger | None = None, *, content: bool = False) -> Callable[[Event], None]:
    """An event callback that writes log lines: plans at level INFO, questions at DEBUG, failures at WARNING.

    A line begins with the name of its walk (``walk 7:``), or with its own number where it has none (``walk #7:``).

    Args:
        logger: where to; the logger ``formal_llm`` where left out.
        content: whether the texts of tasks, options and errors are recorded.
    """
    log = logger if logger is not None else logging.getLogger("formal_llm")

    def log_event(event: Event) -> None:
        name = f"walk {event.walk or f'#{event.id}'}: "
        match event:
            case Started(task):
                log.info("%splanning%s", name, f": {task.description}" if content else "")
            case Asked(Writing()):
                log.debug("%sasked for a draft", name)
            case Answered(Writing(), answer):
                log.debug("%sgot a draft%s", name, f": {answer.text}" if content else "")
            case Drafted(_, taken, problem):
                suffix = f": {problem}" if problem and content else ""
                log.debug("%stook %d choices from the draft%s", name, taken, suffix)
            case Asked(question):
                log.debug("%sasked a question with %d options", name, len(question.options))
            case Answered(question, answer):
                chosen = ", ".join(map(str, answer.numbers))
                texts = "; ".join(question.options[number - 1].text for number in answer.numbers)
                log.debug("%sanswered %s%s", name, chosen, f": {texts}" if content else "")
            case Forced(text, left_out):
                log.debug("%sa choice left one option of %d%s", name, left_out + 1, f": {text}" if content else "")
            case Backtracked(text, word):
                log.info("%sdead end, back to terminal %d%s", name, len(word), f", without: {text}" if content else "")
            case Finished(plan):
                count = len(plan.word)
                log.info("%splan of %d terminals after %d questions", name, count, plan.usage.questions)
            case Failed(error, usage):
                suffix = f": {error}" if content else ""
                log.warning("%sno plan after %d questions: %s%s", name, usage.questions, type(error).__name__, suffix)

    return log_event
