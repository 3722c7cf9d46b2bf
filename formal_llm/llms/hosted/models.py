"""Models behind an HTTP interface, by pydantic-ai's model layer.

All of them are asked on one event loop in a thread of its own, so any thread and any event loop may ask. An answer is
checked here, whatever the provider promises.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import queue
import random
import re
import warnings
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, aclosing
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.decision import ChoiceQuestion, DecisionModel, DecisionRequest, NoulQuestion
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from formal_llm.errors import InvalidAnswer, ProviderError, UnreadableResponse, WritesNoText
from formal_llm.llms.background import CLIENTS, close_client, run_on_loop
from formal_llm.llms.hosted.chat import convert_chat, convert_tool
from formal_llm.llms.hosted.choice import Reply, choice_schema, read_reply
from formal_llm.llms.hosted.connecting import DEFAULTS, PRESETS, make_model, plain_address
from formal_llm.llms.hosted.failures import describe_failure, find_status, find_wait, find_words, may_pass
from formal_llm.llms.hosted.pace import Pace
from formal_llm.llms.hosted.probabilities import MOST_ALTERNATIVES
from formal_llm.llms.hosted.wire import BoundedClient
from formal_llm.llms.llm import AWAITED, LLM
from formal_llm.llms.question import Answer, CallRequest, Question
from formal_llm.llms.stops import Cutter, first_stop
from formal_llm.llms.text_request import CUT_OFF, FILTERED, REFUSED, Stream, TextGrammar, TextRequest
from formal_llm.llms.usage import TokenUsage

T = TypeVar("T")


#: The instructions of a question to a decision model, and of each option where several may be chosen.
_DECIDE = "Choose the option that answers the last question."
_BELONGS = "The answer to the last question includes option {number}: {text}"
#: The name of the tool by which a model without structured output answers, and of that which takes a grammar.
_TOOL = "answer"
#: How many times more tokens a model may write that used all of them to think.
_ROOM = 4
#: Thoughts that a server did not tell from the text behind them.
_THOUGHTS = re.compile(r"\A.*</think>\s*", re.DOTALL)


# -- models -----------------------------------------------------------------------------------------------------------


class HostedLLM(LLM):
    """A model behind an HTTP interface: it chooses, writes, and calls tools.

    A choice is a JSON schema with an enum of the option numbers, which the provider enforces; of a model without
    structured output it is a tool that must be called; a decision model is asked by its own protocol. Probabilities are
    those of the tokens, where the provider reports them, or those of the decision.

    Args:
        model: ``PROVIDER:MODEL``, a provider of :data:`PRESETS` or of pydantic-ai; or one of pydantic-ai's models.
        base_url: the address of the server; None: that of the provider's variable, or its own.
        api_key: the key; None: that of the provider's variable.
        max_retries: how often a request is repeated after a failure that may pass (6 times).
        deadline: the seconds for a question, all tries and waits together (600).
        max_bytes: the most bytes of a response, after decompression.
        logprobs: whether to request token probabilities; None: until the server refuses them.
        settings: pydantic-ai's settings of each request: ``temperature=0.2``, ``max_tokens=2000``, ``thinking="low"``,
            ``extra_body={...}``, ``cache=False``.

    Raises:
        UnknownProvider: there is no such provider.
        MissingKey: the provider needs a key, and there is none.
        MissingDependency: the provider needs a library that is not installed.
        ProviderError: the address is not valid.
    """

    reads = frozenset({"chat"})
    drafts = True
    at_once = AWAITED
    blocks = False

    def __init__(
        self,
        model: str | Model,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
        max_bytes: int | None = None,
        logprobs: bool | None = None,
        **settings: Any,
    ) -> None:
        defaults = DEFAULTS.get()
        self._given = model, base_url, api_key, max_bytes
        self._max_retries = defaults.max_retries if max_retries is None else max_retries
        self.deadline = defaults.deadline if deadline is None else deadline
        if not self.deadline > 0 or self._max_retries < 0:
            raise ValueError(
                f"a deadline is more than 0 seconds, max_retries counts from 0; not {deadline, max_retries}"
            )
        self._provider = model.partition(":")[0] if isinstance(model, str) else ""
        self._preset = PRESETS.get(self._provider)
        self._settings = settings
        self._asks_logprobs, self._may_drop_logprobs = logprobs is not False, logprobs is None
        self._uses_tool = False
        self._made: dict[int, tuple[Model, Pace]] = {}
        self.name = model if isinstance(model, str) else model.model_id
        shown = {key: value for key, value in settings.items() if key != "extra_headers"}
        self.identity = {"llm": self.name, "address": plain_address(self.model.base_url or ""), **shown}
        kinds = {"choose"}
        if not isinstance(self.model, DecisionModel):
            kinds |= {"write", "object", "call"}
            if self._preset is not None:
                kinds |= {"continue"} if self._preset.continues else set()
                kinds |= {"grammar"} if self._preset.grammar else set()
        self.can = frozenset(kinds)

    def __getstate__(self) -> dict[str, object]:
        if not isinstance(self._given[0], str):
            raise TypeError(f"{self.name} was made of a model of pydantic-ai, which cannot be pickled")
        return {**self.__dict__, "_made": {}}

    @property
    def model(self) -> Model:
        """The model of pydantic-ai; a forked process has its own, since connections cannot be shared."""
        return self._get_made()[0]

    def _get_made(self) -> tuple[Model, Pace]:
        made = self._made.get(os.getpid())
        if made is None:
            model = self._given[0]
            if isinstance(model, str):
                client = BoundedClient(self.deadline, self._given[3])
                model = make_model(model, *self._given[1:3], client)
                CLIENTS.add(client)
                weakref.finalize(self, close_client, client, os.getpid())
            made = self._made[os.getpid()] = model, _PACES.setdefault((os.getpid(), model.base_url), Pace())
        return made

    # -- asking -------------------------------------------------------------------------------------------------------

    def submit(self, requests: Sequence[Question], /) -> list[Future[Answer]]:
        """Ask on the background loop; the futures get the answers, or these errors.

        Raises:
            InvalidAnswer: the model answered something else, refused, or did not finish; has the usage.
            ProviderError: the server gave no answer: no connection, a refused key, an unknown model, a rate limit.
            WritesNoText: the provider does not answer requests of this kind.
        """
        for request in requests:
            _ = request.messages  # computed in the caller's thread
        return [run_on_loop(self._answer(request)) for request in requests]

    def stream(self, request: TextRequest, /) -> Stream:
        """Yield the pieces of a text as they come, and last of all the whole; close the stream to stop early."""
        pieces: queue.SimpleQueue[str | Answer | Exception] = queue.SimpleQueue()
        pumping = run_on_loop(self._pump(request, pieces.put))
        try:
            while True:
                piece = pieces.get()
                if isinstance(piece, Exception):
                    raise piece
                yield piece
                if isinstance(piece, Answer):
                    return
        finally:
            pumping.cancel()

    async def astream(self, request: TextRequest, /) -> AsyncGenerator[str | Answer]:
        """Like :meth:`stream`, without blocking the event loop."""
        pieces: asyncio.Queue[str | Answer | Exception] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        pumping = run_on_loop(self._pump(request, lambda piece: loop.call_soon_threadsafe(pieces.put_nowait, piece)))
        try:
            while True:
                piece = await pieces.get()
                if isinstance(piece, Exception):
                    raise piece
                yield piece
                if isinstance(piece, Answer):
                    return
        finally:
            pumping.cancel()

    async def _pump(self, asked: TextRequest, put: Callable[[str | Answer | Exception], object]) -> None:
        """Hand the pieces of a text over to another thread, and last of all the whole text or the error."""
        cutter = Cutter(asked.stop)
        try:
            async with asyncio.timeout(self.deadline), aclosing(self._write(asked, stream=True)) as parts:
                async for part in parts:
                    if isinstance(part, str):
                        if piece := cutter.feed(part):
                            put(piece)
                        if cutter.ended is None:
                            continue
                        answer = Answer((), text=cutter.whole, usage=TokenUsage(1), ended=cutter.ended)
                    else:
                        if piece := cutter.close():
                            put(piece)
                        answer = part
                    put(answer)
                    return
        except Exception as error:
            put(error if isinstance(error, (ProviderError, InvalidAnswer, WritesNoText)) else self.explain(error))

    async def _answer(self, question: Question) -> Answer:
        """Answer a question within the deadline."""
        failure: Exception
        try:
            async with asyncio.timeout(self.deadline):
                if isinstance(question, TextRequest):
                    async with aclosing(self._write(question)) as parts:
                        return [part async for part in parts if isinstance(part, Answer)][-1]
                if isinstance(self.model, DecisionModel):
                    return await self._decide(self.model, question)
                response, usage = await self._request(question)
                return self.read(question, response, usage)
        except (InvalidAnswer, ProviderError, WritesNoText) as error:
            failure = error
        except Exception as error:
            failure = self.explain(error)
        # Raised here and not above, so that it does not carry the error of the SDK, whose request has the key.
        raise failure

    # -- requests -----------------------------------------------------------------------------------------------------

    def prepare(self, question: Question) -> tuple[dict[str, Any], ModelRequestParameters]:
        """Return pydantic-ai's settings and parameters of a request."""
        grows = any(message.role == "assistant" for message in question.messages)
        settings: dict[str, Any] = {"max_retries": 0, "cache": {"messages": grows}, **self._settings}
        schema: Mapping[str, object] | None = None
        if isinstance(question, TextRequest):
            settings["max_tokens"] = question.max_tokens
            if self._takes_sampling(settings):
                settings["temperature"] = question.temperature
            if question.stop and "stop_sequences" not in self.model.unsupported_settings:
                settings["stop_sequences"] = list(question.stop)
            if question.grammar is not None:
                settings["extra_body"] = {**settings.get("extra_body", {}), **self._hold_to(question.grammar)}
            schema = question.schema
        else:
            local = self._preset is not None and self._preset.url is not None
            schema = choice_schema(question, bounded=local)
            if self._asks_logprobs and not question.several and self._takes_sampling(settings):
                settings |= {"openai_logprobs": True, "openai_top_logprobs": MOST_ALTERNATIVES}
        if isinstance(question, TextRequest) and question.tools is not None:
            tools = [convert_tool(tool) for tool in question.tools]
            settings["tool_choice"] = "required" if question.must_call and tools else "auto"
            if not tools and self.model.system == "anthropic":
                # What was called must be defined, even where nothing may be called any more.
                called = dict.fromkeys(call.name for message in question.messages for call in message.calls)
                tools = [ToolDefinition(name=name, parameters_json_schema={"type": "object"}) for name in called]
                settings["tool_choice"] = "none"
            return settings, ModelRequestParameters(function_tools=tools)
        if schema is None:
            return settings, ModelRequestParameters()
        if self.model.profile.get("supports_json_schema_output") and not self._uses_tool:
            output = OutputObjectDefinition(json_schema=dict(schema), name=_TOOL, strict=True)
            return settings, ModelRequestParameters(output_mode="native", output_object=output)
        tool = ToolDefinition(
            name=_TOOL, parameters_json_schema=dict(schema), description="Gives the answer.", kind="output", strict=True
        )
        return settings, ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)

    def _takes_sampling(self, settings: Mapping[str, Any]) -> bool:
        """Whether the model takes a temperature: models of Anthropic, and those of OpenAI that think, do not."""
        if self.model.system == "anthropic":
            return False
        profile: Mapping[str, Any] = self.model.profile
        thinks = settings.get("thinking", settings.get("openai_reasoning_effort"))
        return not profile.get("openai_supports_reasoning") or (
            bool(profile.get("openai_supports_reasoning_effort_none"))
            and (thinks in (False, "none") if thinks is not None else not profile.get("thinking_enabled_by_default"))
        )

    async def _request(self, question: Question) -> tuple[ModelResponse, TokenUsage]:
        """Return the response to a request; one that holds nothing but thoughts is asked for again with more room."""
        settings, parameters = self.prepare(question)
        try:
            response = await self._send(question, settings, parameters)
        except Exception as error:
            if self._uses_tool or not _refuses_schema(error):
                raise
            self._uses_tool = True
            settings, parameters = self.prepare(question)
            response = await self._send(question, settings, parameters)
        usage = read_usage(response.usage)
        if response.finish_reason == "length" and response.thinking and not (response.text or response.tool_calls):
            settings["max_tokens"] = _ROOM * max(usage.output_tokens, settings.get("max_tokens", 0))
            response = await self._send(question, settings, parameters)
            usage += read_usage(response.usage)
        return response, usage

    async def _send(self, question: Question, settings: dict[str, Any], parameters: Any) -> ModelResponse:

        model, messages = self.model, convert_chat(question.messages)
        request = partial(model_request, model, messages, model_request_parameters=parameters)
        return await self._retry(lambda: request(model_settings=settings), settings)  # type: ignore[arg-type]

    async def _retry(self, send: Callable[[], Awaitable[T]], settings: dict[str, Any]) -> T:
        """Send a request, and again after failures that may pass, or without a setting that was refused."""
        pace, tries, end = self._get_made()[1], 0, monotonic() + self.deadline
        while True:
            sent = await pace.take_turn()
            try:
                answer = await send()
            except Exception as error:
                wait = find_wait(error)
                if find_status(error) == 429:
                    pace.note_refusal(sent, wait)
                if self._drop_refused(error, settings):
                    continue
                if tries >= self._max_retries or not may_pass(error) or (wait or 0) > end - monotonic():
                    raise
            else:
                pace.note_answer()
                return answer
            await asyncio.sleep(min(0.5 * 2.0**tries, 8.0) * random.uniform(0.75, 1) if wait is None else wait)
            tries += 1

    def _drop_refused(self, error: Exception, settings: dict[str, Any]) -> bool:
        """Leave out of a request what the server refused, if it says so; return whether there was something."""
        status = find_status(error)
        words = "" if status is None else find_words(error)
        if "logprob" in words.casefold() and self._may_drop_logprobs and settings.pop("openai_logprobs", None):
            settings.pop("openai_top_logprobs")
            if self._asks_logprobs:  # if several requests are refused at once, only the first one warns
                self._asks_logprobs = False
                warnings.warn(
                    f"{self.name} gives no token probabilities ({self._redact(words)[:300]}): it is asked without them "
                    "from now on, and its answers have no probabilities",
                    stacklevel=2,
                )
            return True
        if status not in (400, 422):
            return False
        if "temperature" in words.casefold() and settings.pop("temperature", None) is not None:
            warnings.warn(f"{self.name} takes no temperature; it writes at its own", stacklevel=2)
            return True
        return "stop" in words.casefold() and settings.pop("stop_sequences", None) is not None

    async def _decide(self, model: Any, question: Question) -> Answer:
        """Answer by a decision model: a distribution over the options, or the probability of each."""
        texts = {str(option.number): option.text for option in question.options}
        if question.several:
            asked = {
                name: NoulQuestion(instructions=_BELONGS.format(number=name, text=text)) for name, text in texts.items()
            }
        else:
            asked = {"choice": ChoiceQuestion(instructions=_DECIDE, criteria=texts)}  # type: ignore[dict-item, arg-type]
        state = "\n\n".join(message.content for message in question.messages)
        request = DecisionRequest(state=state, questions=asked, messages=convert_chat(question.messages))  # type: ignore[arg-type]
        settings = {"max_retries": 0, **self._settings}
        response = await self._retry(lambda: model.decide(request, settings), settings)
        usage = read_usage(response.usage)
        if question.several:
            likely = {int(name): response.answers[name].noul for name in texts}
            return question.select_likely({number: _require_share(share) for number, share in likely.items()}, usage)
        chosen = response.answers["choice"]
        if chosen.choice not in texts:
            text = str(chosen.choice)[:1000]
            raise InvalidAnswer(f"{text[:60]!r} is not the number of an option", [(question.prompt, text)], usage)
        shares = {number: chosen.probabilities.get(str(number), 0.0) for number in map(int, texts)}
        total = math.fsum(map(_require_share, shares.values()))
        known = {number: share / total for number, share in shares.items()} if abs(total - 1) <= 0.02 else None
        return question.check(Answer((int(chosen.choice),), known, chosen.choice, usage))

    # -- texts --------------------------------------------------------------------------------------------------------

    async def _write(self, asked: TextRequest, *, stream: bool = False) -> AsyncGenerator[str | Answer]:
        """Yield the pieces of a text as they come, and last of all the answer."""
        if isinstance(self.model, DecisionModel):
            raise WritesNoText(self, "write this")
        if asked.continues:
            async for part in self._continue(asked):
                yield part
            return
        if stream:
            async for part in self._stream_parts(asked):
                yield part
            return
        response, usage = await self._request(asked)
        yield self.read(asked, response, usage)

    async def _stream_parts(self, asked: TextRequest) -> AsyncGenerator[str | Answer]:

        settings, parameters = self.prepare(asked)
        model, messages = self.model, convert_chat(asked.messages)
        request = partial(model_request_stream, model, messages, model_request_parameters=parameters)
        async with AsyncExitStack() as opened:

            def open_stream() -> Awaitable[StreamedResponse]:
                return opened.enter_async_context(request(model_settings=settings))  # type: ignore[arg-type]

            response = await self._retry(open_stream, settings)
            async for event in response:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart) and event.part.content:
                    yield event.part.content
                elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                    yield event.delta.content_delta
            whole = response.get()
            yield self.read(asked, whole, read_usage(whole.usage))

    async def _continue(self, asked: TextRequest) -> AsyncGenerator[str | Answer]:
        """Continue a text by ``/completions``; the stops are found here, since not all servers say which it was."""
        if not (self._preset and self._preset.continues):
            raise WritesNoText(self, "continue a text")
        client: Any = self.model.client  # type: ignore[attr-defined]
        cutter, usage, finish = Cutter(asked.stop), TokenUsage(1), None
        settings = {"temperature": asked.temperature}
        extra = {**self._settings.get("extra_body", {}), **self._hold_to(asked.grammar)}

        request = partial(
            client.with_options(max_retries=0).completions.create,
            model=self.model.model_name, prompt=asked.messages[-1].content, max_tokens=asked.max_tokens,
            stream=True, stream_options={"include_usage": True}, extra_body=extra,
        )  # fmt: skip

        async with await self._retry(lambda: request(**settings), settings) as events:
            async for event in events:
                if event.usage is not None:
                    usage = TokenUsage(1, event.usage.prompt_tokens, event.usage.completion_tokens)
                for choice in event.choices:
                    finish = choice.finish_reason or finish
                    if piece := cutter.feed(choice.text):
                        yield piece
                if cutter.ended is not None:
                    break
        if piece := cutter.close():
            yield piece
        ended = cutter.ended if cutter.ended is not None else None if finish == "length" else ""
        stopped = CUT_OFF if cutter.ended is None and finish == "length" else ""
        yield Answer((), text=cutter.whole, usage=usage, ended=ended, stopped=stopped)

    def _hold_to(self, grammar: TextGrammar | None) -> dict[str, Any]:
        """Return the fields of a request that hold a text to a grammar; none if there is no grammar.

        Raises:
            ProviderError: the provider takes no grammar.
        """
        if grammar is None:
            return {}
        match self._preset.grammar if self._preset else "":
            case "":
                raise ProviderError(f"{self.name} takes no grammar; vllm:, sglang:, llamacpp: and openai: do")
            case "lark":  # a tool whose argument is a text by the grammar
                form = {"type": "grammar", "grammar": {"syntax": "lark", "definition": grammar.lark}}
                tool = {"type": "custom", "custom": {"name": _TOOL, "description": "Gives the answer.", "format": form}}
                return {"tools": [tool], "tool_choice": {"type": "custom", "custom": {"name": _TOOL}}}
            case "structured_outputs":
                return {"structured_outputs": {"grammar": grammar.gbnf}}
            case field:
                return {field: grammar.gbnf}

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, question: Question, response: ModelResponse, usage: TokenUsage) -> Answer:
        """Read the answer in a response.

        Raises:
            InvalidAnswer: it is no answer to the question.
            UnreadableResponse: the provider broke off with an error.
        """
        details = response.provider_details or {}
        if "error" in (response.finish_reason, details.get("finish_reason")):
            raise UnreadableResponse(f"{self.name}: the provider broke off with an error")
        refusal = str(details.get("refusal") or "")
        stopped = _STOPPED.get(response.finish_reason or "", "")
        if refusal or details.get("finish_reason") == "refusal":
            stopped = REFUSED
        text = _THOUGHTS.sub("", response.text or "", count=1) or refusal
        if not isinstance(question, TextRequest):
            logprobs = details.get("logprobs")
            for part in response.parts:
                logprobs = logprobs or (getattr(part, "provider_details", None) or {}).get("logprobs")
            return read_reply(question, Reply(_find_object(response, text), usage, stopped, logprobs))
        calls: tuple[CallRequest, ...] = ()
        if question.tools is not None:
            calls = _read_calls(response)
        elif question.schema is not None or question.grammar is not None:
            text = _find_object(response, text)
        if (found := first_stop(text, question.stop)) is not None:
            return Answer((), text=text[: found[0]], usage=usage, ended=found[1], calls=calls)
        ended = "" if response.finish_reason == "stop" and not question.stop else None
        return Answer((), text=text, usage=usage, ended=ended, stopped=stopped, calls=calls)

    def explain(self, error: Exception) -> ProviderError:
        """Return the error for a failed request: what failed, what the server said, and what to do about it."""
        key, url = (
            (self._preset.key_variable, self._preset.url_variable) if self._preset else ("its key", "its address")
        )
        failure, what = describe_failure(error, key, url, plain_address(self.model.base_url or ""), self.deadline)
        return failure(self._redact(f"{self.name}: {what}"))

    def _redact(self, text: str) -> str:
        """Replace all keys in a text: that which was given, and those of the environment."""
        keys: set[object] = {value for name, value in os.environ.items() if name.endswith(("_KEY", "_TOKEN"))}
        keys |= {self._given[2], getattr(getattr(self.model, "client", None), "api_key", None)}
        for key in keys:
            if isinstance(key, str) and len(key) > 7:
                text = text.replace(key, "***")
        return text


_STOPPED = {"length": CUT_OFF, "content_filter": FILTERED}


def _find_object(response: ModelResponse, text: str) -> str:
    """Return the text of a structured answer: of the one call, or what some servers put where the thoughts belong."""
    calls = response.tool_calls
    if calls:
        return _show_arguments(calls[0]) if len(calls) == 1 else ""
    return text or (response.thinking or "").strip()


def _read_calls(response: ModelResponse) -> tuple[CallRequest, ...]:
    """Return the calls of a turn; ids that occur twice are told apart."""
    found: dict[str, CallRequest] = {}
    for call in response.tool_calls:
        name = call.tool_call_id if call.tool_call_id not in found else f"{call.tool_call_id}_{len(found)}"
        found[name] = CallRequest(name, call.tool_name, _show_arguments(call))
    return tuple(found.values())


def _show_arguments(call: ToolCallPart) -> str:
    return call.args if isinstance(call.args, str) else json.dumps(call.args or {}, ensure_ascii=False)


def read_usage(counted: RequestUsage) -> TokenUsage:
    """Return the usage of one request, from the counts of pydantic-ai."""
    read = max(counted.input_tokens, 0)
    cached = min(max(counted.cache_read_tokens, 0), read)
    return TokenUsage(
        1, read, max(counted.output_tokens, 0), cached, min(max(counted.cache_write_tokens, 0), read - cached)
    )


def _require_share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1.02:
        raise ValueError(f"{value!r} is no probability")
    return min(float(value), 1.0)


def _refuses_schema(error: Exception) -> bool:
    return find_status(error) in (400, 422) and bool(_SCHEMA_WORDS.search(find_words(error)))


_SCHEMA_WORDS = re.compile(r"response_format|json_schema|structured.?output", re.IGNORECASE)
#: The pace of each server, of this process.
_PACES: dict[tuple[int, str | None], Pace] = {}
