"""Models of Anthropic."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from formal_llm.errors import MissingKey
from formal_llm.llms.generation import CUT_OFF, REFUSED, ToolOffer
from formal_llm.llms.hosted import adapter
from formal_llm.llms.hosted.adapter import token_count
from formal_llm.llms.hosted.bounds import RequestBounds, fill_defaults
from formal_llm.llms.hosted.choice_schema import Reply, choice_schema, read_reply
from formal_llm.llms.hosted.settings import (
    check_plain,
    checked_address,
    either_client_or,
    from_environment,
    given,
    list_own_headers,
)
from formal_llm.llms.hosted.text import StreamedText
from formal_llm.llms.hosted.text_request import CallPart, Part, TextRequest, read_arguments
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.schemas import Schema, is_portable, portable
from formal_llm.llms.usage import TokenUsage

if TYPE_CHECKING:
    import anthropic

    AnthropicClient = TypeVar("AnthropicClient", anthropic.Anthropic, anthropic.AsyncAnthropic)

_STOPPED = {"refusal": REFUSED, "max_tokens": CUT_OFF, "model_context_window_exceeded": CUT_OFF}
_TOOL = "choose"


class AnthropicLLM(StreamedText):
    """A model used through the messages endpoint; a JSON schema with an enum of the option numbers is enforced.

    The schema is that of its output, or that of a strict tool which it is forced to use. It has no probabilities, and
    sampling parameters are never sent, since the SDK's call has none.

    *Prompt caching.* Breakpoints are set explicitly, after the system message and after the last message before the
    prompt, since later questions share these messages. The SDK's automatic ``cache_control`` marks the last block of
    the request, which is the prompt here: it differs in every question, so each request would pay for writing it to the
    cache, and none would find it there. Texts that are too short to be cached cost nothing extra. The schema is part of
    the cached text, so questions with the same number of options share an entry.

    Args:
        base_url, api_key, timeout, max_retries, deadline, max_bytes, client, async_client: the connection, see
            :class:`~formal_llm.llms.hosted.openai_client.Connection` (here with clients of Anthropic's SDK); by default
            at ``ANTHROPIC_BASE_URL``, or Anthropic's address, with ``ANTHROPIC_API_KEY`` or another credential that the
            SDK finds.
        method: ``"schema"``: structured output; ``"tool"``: a strict tool, for models that only support that.
        max_tokens: the maximum number of tokens to write, including thinking. Some models think without being asked, so
            the default is far more than an answer needs. Above about 21000 the SDK requires a timeout.
        effort: how much effort the model makes (``"low"``, ...); None sends none.
        cache: how long the cached part of the prompt is kept; None to cache nothing.

    Raises:
        MissingKey: there is no client and no key, and the SDK finds no credential.
        ProviderError: the address is not valid, or the SDK found credentials that it cannot use.
    """

    key_variable = "ANTHROPIC_API_KEY"
    url_variable = "ANTHROPIC_BASE_URL"
    batches = "anthropic"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        deadline: float | None = None,
        max_bytes: int | None = None,
        client: anthropic.Anthropic | None = None,
        async_client: anthropic.AsyncAnthropic | None = None,
        method: Literal["schema", "tool"] = "schema",
        max_tokens: int = 8192,
        effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None,
        cache: Literal["5m", "1h"] | None = "5m",
    ) -> None:
        # Imported here: the SDK takes longer to import than the rest of the library.
        import anthropic

        if method not in ("schema", "tool") or cache not in ("5m", "1h", None):
            raise ValueError(f"method is 'schema' or 'tool', cache '5m', '1h' or None; not {method!r} and {cache!r}")
        either_client_or(
            (client, async_client), base_url=base_url, api_key=api_key, timeout=timeout, max_retries=max_retries,
            deadline=deadline, max_bytes=max_bytes,
        )  # fmt: skip
        max_retries, timeout, deadline = fill_defaults(max_retries, timeout, deadline)
        self.bounds = None
        name = f"anthropic:{model}"
        self.model = model
        self.method = method
        self.max_tokens = max_tokens
        self.effort = effort
        self.cache = cache
        settings = {"method": method, "max_tokens": max_tokens, "effort": effort}
        sdk_client = client
        if sdk_client is None and async_client is not None:
            sdk_client = _copy_client(async_client, anthropic.Anthropic)
        elif sdk_client is None:
            url = base_url or from_environment(self.url_variable)
            if url is not None:
                url = checked_address(name, url, self.url_variable)
            key = api_key or from_environment(self.key_variable)
            from formal_llm.llms.hosted.transport import sync_client

            self.bounds = RequestBounds.of(deadline, max_bytes, timeout)
            try:
                sdk_client = anthropic.Anthropic(http_client=sync_client(anthropic, self.bounds), **given(
                    base_url=url, api_key=key, timeout=timeout, max_retries=max_retries
                ))  # fmt: skip
            except anthropic.AnthropicError as error:
                self.name = name
                raise adapter.provider_error(self, error) from error
            # The SDK does not report a missing credential before the first request.
            if not ((sdk_client.api_key or "").strip() or sdk_client.auth_token or sdk_client.credentials):
                sdk_client.close()
                raise MissingKey(name, self.key_variable)
        super().__init__(name, sdk_client, settings, async_client=async_client, bounds=self.bounds)

    def _send_question(self, client: Any, question: Question) -> Any:
        messages = self._build_chat(question.messages)
        request: dict[str, Any] = {"model": self.model, "max_tokens": self.max_tokens, **messages}
        description = "Gives the answer to the question: the number of the chosen option, or the numbers."
        return client.messages.create(**request, **self._build_guarantee(choice_schema(question), description))

    def _build_guarantee(self, schema: Schema | None, description: str) -> dict[str, Any]:
        """Return the arguments that enforce a schema and set the effort."""
        config: dict[str, Any] = {"effort": self.effort} if self.effort else {}
        arguments: dict[str, Any] = {}
        if schema is not None and self.method == "schema":
            config["format"] = {"type": "json_schema", "schema": schema}
        elif schema is not None:
            arguments["tools"] = [{"name": _TOOL, "description": description, "input_schema": schema, "strict": True}]
            arguments["tool_choice"] = {"type": "tool", "name": _TOOL, "disable_parallel_tool_use": True}
        return {**arguments, "output_config": config} if config else arguments

    def _build_chat(self, messages: tuple[Message, ...]) -> dict[str, Any]:
        """Return the chat, with breakpoints after the parts that later questions share."""
        system = "\n\n".join(message.content for message in messages if message.role == "system")
        chat = _chat_data([message for message in messages if message.role != "system"])
        if len(chat) > 1 and isinstance(chat[-2]["content"], str):
            chat[-2]["content"] = self._mark_cached(chat[-2]["content"])
        elif len(chat) > 1 and self.cache is not None:
            chat[-2]["content"][-1]["cache_control"] = self._cache_control
        return {**({"system": self._mark_cached(system)} if system else {}), "messages": chat}

    def _mark_cached(self, text: str) -> Any:
        """Mark a text to be cached together with everything before it."""
        # An empty text cannot be marked.
        if self.cache is None or not text.strip():
            return text
        return [{"type": "text", "text": text, "cache_control": self._cache_control}]

    @property
    def _cache_control(self) -> dict[str, Any]:
        return {"type": "ephemeral"} if self.cache == "5m" else {"type": "ephemeral", "ttl": self.cache}

    def _read_answer(self, question: Question, response: Any) -> Answer:
        text, usage = self._read_text(response)
        used = [block.input for block in response.content if block.type == "tool_use" and block.name == _TOOL]
        if self.method == "tool" and used:
            text = json.dumps(used[0])
        stopped = _STOPPED.get(str(response.stop_reason), "")
        if stopped == REFUSED and not text and response.stop_details:
            text = response.stop_details.explanation or ""
        if len(used) > 1 and not stopped:
            raise adapter.invalid(question, f"it was given {len(used)} times", json.dumps(used)[:1000], usage)
        return read_reply(question, Reply(text, usage, stopped))

    def _send_text(self, client: Any, request: TextRequest) -> Any:
        # No temperature: the SDK's call has none.
        asked: dict[str, Any] = {"model": self.model, "max_tokens": request.max_tokens}
        asked |= self._build_chat(request.messages)
        if request.stop:
            asked["stop_sequences"] = list(request.stop)
        schema = None if request.schema is None else portable(request.schema)
        asked |= self._build_guarantee(schema, "Gives the answer, as an object.")
        if request.tools:
            asked["tools"] = [*map(_tool_data, request.tools)]
            asked["tool_choice"] = {"type": "any" if request.must_call else "auto"}
        elif called := dict.fromkeys(call.name for message in request.messages for call in message.calls):
            # What was called must be defined, even where nothing may be called any more.
            asked["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in called]
            asked["tool_choice"] = {"type": "none"}
        if request.streams:  # not compressed, so that its size can be bounded while streaming
            asked |= {"stream": True, "extra_headers": {"Accept-Encoding": "identity"}}
        return client.messages.create(**asked)

    def _read_object(self, response: Any) -> tuple[Any, TokenUsage]:
        text, usage = self._read_text(response)
        used = [block.input for block in response.content if block.type == "tool_use" and block.name == _TOOL]
        # Several calls are joined to a text that is no single object, so reading it raises an error.
        return ("".join(map(json.dumps, used)) if self.method == "tool" and used else text), usage

    def _read_part(self, event: Any, request: TextRequest) -> Part:  # noqa: ARG002
        if event.type == "message_start":
            return Part("", None, replace(self._count_usage(event.message), output_tokens=0))
        if event.type == "message_delta":
            written = getattr(getattr(event, "usage", None), "output_tokens", None)
            ended, stopped = _read_stop(event.delta)
            return Part("", ended, TokenUsage(0, 0, token_count(written)), True, stopped)
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            return Part(calls=(CallPart(event.index, event.content_block.id, event.content_block.name),))
        if event.type == "content_block_delta" and event.delta.type == "text_delta":
            return Part(event.delta.text)
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            return Part(calls=(CallPart(event.index, arguments=event.delta.partial_json),))
        return Part()

    def _read_whole(self, response: Any, request: TextRequest) -> Part:
        return super()._read_whole(response, request)._replace(ended=_read_stop(response)[0])

    def _find_stop(self, response: Any) -> str:
        return _read_stop(response)[1]

    def _read_calls(self, response: Any) -> tuple[CallPart, ...]:
        used = [block for block in response.content if block.type == "tool_use"]
        return tuple(CallPart(place, one.id, one.name, json.dumps(one.input)) for place, one in enumerate(used))

    def _read_text(self, response: Any) -> tuple[Any, TokenUsage]:
        # Other blocks hold the model's thinking.
        text = "".join(block.text for block in response.content if block.type == "text")
        return text, self._count_usage(response)

    def _count_usage(self, response: Any) -> TokenUsage:
        return _read_usage(getattr(response, "usage", None))

    def _sdk_error(self) -> type[Exception]:
        import anthropic

        return anthropic.AnthropicError

    def _make_async_client(self) -> anthropic.AsyncAnthropic:
        import anthropic

        from formal_llm.llms.hosted.transport import async_client

        return _copy_client(
            self.client, anthropic.AsyncAnthropic, async_client(anthropic, self.bounds or RequestBounds())
        )

    def _make_client(self) -> anthropic.Anthropic:
        import anthropic

        from formal_llm.llms.hosted.transport import sync_client

        return _copy_client(self._client, anthropic.Anthropic, sync_client(anthropic, self.bounds or RequestBounds()))


def _read_stop(message: Any) -> tuple[str | None, str]:
    """Return what ended a message, if it is known, and why it is not whole."""
    reason = str(getattr(message, "stop_reason", None))
    if reason == "stop_sequence":
        return getattr(message, "stop_sequence", None), ""
    return "" if reason == "end_turn" else None, _STOPPED.get(reason, "")


def _tool_data(tool: ToolOffer) -> dict[str, Any]:
    data = {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
    strict = {"input_schema": portable(tool.parameters), "strict": True} if is_portable(tool.parameters) else {}
    return {**data, **strict}


def _chat_data(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return a chat in Anthropic's form: calls and their results are blocks, the results in one message of the user."""
    chat: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "tool":
            block = {"type": "tool_result", "tool_use_id": message.answers, "content": message.content}
            if chat and chat[-1]["role"] == "user" and isinstance(chat[-1]["content"], list):
                chat[-1]["content"].append(block)
            else:
                chat.append({"role": "user", "content": [block]})
        elif message.calls:
            blocks: list[dict[str, Any]] = [{"type": "text", "text": message.content}] if message.content else []
            blocks += [
                {"type": "tool_use", "id": one.id, "name": one.name, "input": read_arguments(one.arguments)}
                for one in message.calls
            ]
            chat.append({"role": "assistant", "content": blocks})
        elif chat and chat[-1]["role"] == message.role and isinstance(chat[-1]["content"], list):
            chat[-1]["content"].append({"type": "text", "text": message.content})
        elif chat and chat[-1]["role"] == message.role:
            chat[-1]["content"] += f"\n\n{message.content}"
        else:
            chat.append({"role": message.role, "content": message.content})
    return chat


def _read_usage(counted: Any) -> TokenUsage:
    """Return the usage of a message; cached tokens, read or written, are not part of ``input_tokens``."""
    cached = token_count(getattr(counted, "cache_read_input_tokens", None))
    stored = token_count(getattr(counted, "cache_creation_input_tokens", None))
    read = token_count(getattr(counted, "input_tokens", None)) + cached + stored
    return adapter.token_usage(read, getattr(counted, "output_tokens", None), cached, stored)


def _copy_client(client: Any, kind: type[AnthropicClient], http_client: Any = None) -> AnthropicClient:
    """Create a synchronous or asynchronous client with the same settings; see :func:`check_plain`."""
    import anthropic

    check_plain(client, anthropic.Anthropic, anthropic.AsyncAnthropic)
    # At most one of the three credentials may be set.
    key = {"api_key": client.api_key} if client.api_key else given(auth_token=client.auth_token)
    made = kind(
        **(key or {"credentials": client.credentials}),
        base_url=client.base_url,
        timeout=client.timeout,
        max_retries=client.max_retries,
        http_client=http_client,
        default_query=client.default_query,
    )
    headers = list_own_headers(client.default_headers, made.default_headers)
    return made.with_options(default_headers=headers) if headers else made
