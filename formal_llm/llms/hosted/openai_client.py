"""The common base of the adapters that use OpenAI's SDK: clients, and chat completions.

The SDK is also used for other servers than OpenAI's, and for other protocols (with its generic ``post``), so that
retries after temporary failures, the growing waits between them (which respect a server's ``retry-after``), timeouts
and connections are the same everywhere.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar, Unpack

from formal_llm.authored.files import lines_of
from formal_llm.errors import MissingKey
from formal_llm.llms.generation import CUT_OFF, FILTERED, REFUSED
from formal_llm.llms.hosted.adapter import HostedLLM, chat_data, token_usage, tool_data
from formal_llm.llms.hosted.bounds import RequestBounds, fill_defaults
from formal_llm.llms.hosted.choice_schema import Reply, read_reply
from formal_llm.llms.hosted.logprobs import MOST_ALTERNATIVES
from formal_llm.llms.hosted.settings import (
    check_plain,
    checked_address,
    either_client_or,
    from_environment,
    given,
    list_own_headers,
)
from formal_llm.llms.hosted.text import ContinuedText, StreamedText
from formal_llm.llms.hosted.text_request import CallPart, Part, TextRequest
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.schemas import Schema, portable
from formal_llm.llms.usage import TokenUsage

if TYPE_CHECKING:
    import openai

    OpenAIClient = TypeVar("OpenAIClient", openai.OpenAI, openai.AsyncOpenAI)


#: The fields that request a stream with the usage at its end.
STREAMS = {"stream": True, "stream_options": {"include_usage": True}}
_STOPPED = {"length": CUT_OFF, "content_filter": FILTERED}


class Connection(TypedDict, total=False):
    """The connection to a server, as all adapters that use OpenAI's SDK take it.

    Attributes:
        base_url: the address of the server; None: from the environment, or the default one.
        api_key: the key; None: from the environment.
        timeout: the seconds for which a server may be silent; None: the SDK's default (ten minutes).
        max_retries: how often a request is repeated after a temporary failure; None: the SDK's default (twice).
        deadline: the seconds that a question may take, including all tries and waits; None: 600, or the timeout if that
            is longer.
        max_bytes: the maximum size of a response after decompression; None: 16 million.
        client: a client of the SDK, instead of these six settings; you must close it, and it has its own bounds.
        async_client: an asynchronous client; None: one like ``client`` is created for each event loop.
    """

    base_url: str | None
    api_key: str | None
    timeout: float | None
    max_retries: int | None
    deadline: float | None
    max_bytes: int | None
    client: openai.OpenAI | None
    async_client: openai.AsyncOpenAI | None


class OpenAIClientLLM(HostedLLM):
    """A model that is used through OpenAI's SDK.

    Args:
        base_url, api_key, timeout, max_retries, deadline, max_bytes, client, async_client: see :class:`Connection`.
        settings, logprobs: see :class:`~formal_llm.llms.hosted.adapter.HostedLLM`.

    Raises:
        MissingKey: the provider needs a key, and there is none.
        ProviderError: the address is not valid.
    """

    #: The provider in the provider string.
    provider: ClassVar[str]
    #: The default address of the server; None: that of the SDK.
    default_url: ClassVar[str | None] = None
    #: Whether a key is required.
    needs_key: ClassVar[bool] = False

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
        client: openai.OpenAI | None = None,
        async_client: openai.AsyncOpenAI | None = None,
        settings: Mapping[str, object] | None = None,
        logprobs: bool | None = False,
    ) -> None:
        # Imported here: the SDK takes longer to import than the rest of the library.
        import openai

        either_client_or(
            (client, async_client), base_url=base_url, api_key=api_key, timeout=timeout, max_retries=max_retries,
            deadline=deadline, max_bytes=max_bytes,
        )  # fmt: skip
        max_retries, timeout, deadline = fill_defaults(max_retries, timeout, deadline)
        bounds = None
        name = f"{self.provider}:{model}"
        self.model = model
        self.headers: dict[str, Any] = {}  # beyond those of the client
        if client is None and async_client is not None:
            client = _copy_client(async_client, openai.OpenAI)
        if client is None:
            key = api_key or (from_environment(self.key_variable) if self.key_variable else None)
            # Checked here instead of by the SDK, which also accepts a key for administration alone.
            if key is None and self.needs_key:
                raise MissingKey(name, self.key_variable)
            url = base_url or from_environment(self.url_variable, self.default_url)
            if url is not None:
                url = checked_address(name, self._build_address(url), self.url_variable)
            if not self.needs_key:
                self.headers = self._own_headers(key)
            from formal_llm.llms.hosted.transport import sync_client

            bounds = RequestBounds.of(deadline, max_bytes, timeout)
            # The SDK requires some key; if there is none, its header is left out.
            client = openai.OpenAI(http_client=sync_client(openai, bounds), **given(
                base_url=url, api_key=key or "none", timeout=timeout, max_retries=max_retries
            ))  # fmt: skip
        super().__init__(name, client, settings or {}, async_client=async_client, logprobs=logprobs, bounds=bounds)

    def _build_address(self, url: str) -> str:
        return url

    def _own_headers(self, key: str | None) -> dict[str, Any]:
        """Return the headers for another server than OpenAI's, without the environment's settings for OpenAI."""
        from openai import omit

        lines = lines_of(os.environ.get("OPENAI_CUSTOM_HEADERS", ""))
        others = [line.partition(":")[0].strip() for line in lines if ":" in line]
        headers: dict[str, Any] = dict.fromkeys([*others, "OpenAI-Organization", "OpenAI-Project"], omit)
        return {**headers, "Authorization": f"Bearer {key}" if key else omit}

    def _count_usage(self, response: Any) -> TokenUsage:
        return counted_usage(response)

    def _sdk_error(self) -> type[Exception]:
        import openai

        return openai.OpenAIError

    def _make_async_client(self) -> openai.AsyncOpenAI:
        import openai

        from formal_llm.llms.hosted.transport import async_client

        return _copy_client(self.client, openai.AsyncOpenAI, async_client(openai, self.bounds or RequestBounds()))

    def _make_client(self) -> openai.OpenAI:
        import openai

        from formal_llm.llms.hosted.transport import sync_client

        return _copy_client(self._client, openai.OpenAI, sync_client(openai, self.bounds or RequestBounds()))


def _copy_client(client: Any, kind: type[OpenAIClient], http_client: Any = None) -> OpenAIClient:
    """Create a synchronous or asynchronous client with the same settings; see :func:`check_plain`."""
    import openai

    own = not getattr(client, "api_key", None) or getattr(client, "workload_identity", None) is not None
    check_plain(client, openai.OpenAI, openai.AsyncOpenAI, own=own)
    made = kind(
        api_key=client.api_key,
        admin_api_key=client.admin_api_key,
        organization=client.organization,
        project=client.project,
        base_url=client.base_url,
        timeout=client.timeout,
        max_retries=client.max_retries,
        http_client=http_client,
        default_query=client.default_query,
    )
    headers = list_own_headers(client.default_headers, made.default_headers)
    return made.with_options(default_headers=headers) if headers else made


class ChatCompletionsLLM(OpenAIClientLLM, StreamedText):
    """A model used through OpenAI's chat completions, with the guarantee that its server supports.

    Args:
        temperature: the sampling temperature; None sends none.
        max_completion_tokens: the maximum number of tokens written and thought for a choice; None sends none.
        extra_body: further fields of each request.
        model, logprobs, connection: see :class:`OpenAIClientLLM`.
    """

    #: The names of the token limits for choices and for free text: OpenAI's own, or the older one.
    choice_limit: ClassVar[str] = "max_completion_tokens"
    text_limit: ClassVar[str] = "max_tokens"

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = None,
        max_completion_tokens: int | None = None,
        logprobs: bool | None = None,
        extra_body: Mapping[str, object] | None = None,
        **connection: Unpack[Connection],
    ) -> None:
        sampling = {"temperature": temperature, self.choice_limit: max_completion_tokens}
        self._sampling = given(**sampling)
        self._extra_body = dict(extra_body or {})
        own = {**sampling, "logprobs": logprobs, "extra_body": self._extra_body or None}
        super().__init__(model, settings=own, logprobs=logprobs, **connection)

    @abstractmethod
    def _restrict_choice(self, question: Question) -> dict[str, Any]:
        """Return the arguments of the request that restrict the model to legal answers."""

    def _send_question(self, client: Any, question: Question) -> Any:
        request = {**self._sampling, **self._restrict_choice(question)}
        if self.asks_logprobs and not question.several:
            request |= {"logprobs": True, "top_logprobs": MOST_ALTERNATIVES}
        return self._create_completion(client, question.messages, request)

    def _create_completion(self, client: Any, messages: Sequence[Message], request: dict[str, Any]) -> Any:
        """Make the request, with the fields that all requests of this model have.

        It is made by the SDK's generic ``post``: the request is the same, but the SDK's own ``create`` examines all its
        types at each request and response, which takes longer than everything else together.
        """
        extra = {**self._extra_body, **request.pop("extra_body", {})}
        body = {"model": self.model, "messages": chat_data(messages), **request, **extra}
        return self._post_json(client, "/chat/completions", body)

    def _post_json(self, client: Any, path: str, body: dict[str, Any]) -> Any:
        options = {"security": {"bearer_auth": True}, "headers": self.headers}
        if not body.get("stream"):
            return client.post(path, cast_to=object, body=body, options=options)
        import openai

        # The size of a stream is bounded before decompression, so it must not be compressed.
        options["headers"] = {**self.headers, "Accept-Encoding": "identity"}
        kind = openai.AsyncStream[object] if isinstance(client, openai.AsyncOpenAI) else openai.Stream[object]
        return client.post(path, cast_to=object, body=body, options=options, stream=True, stream_cls=kind)

    def _read_answer(self, question: Question, response: Any) -> Answer:
        choice = response["choices"][0]
        message, usage = choice["message"], counted_usage(response)
        if refusal := message.get("refusal"):
            return read_reply(question, Reply(str(refusal), usage, REFUSED))
        content = message.get("content")
        if not isinstance(content, (str, type(None))):
            raise TypeError("the content of a message is a text")
        logprobs = choice.get("logprobs")
        tokens = logprobs.get("content") if isinstance(logprobs, dict) else None
        stopped = _STOPPED.get(str(choice.get("finish_reason")), "")
        return read_reply(question, Reply(content or "", usage, stopped, tokens if isinstance(tokens, list) else None))

    def _send_text(self, client: Any, request: TextRequest) -> Any:
        asked = given(temperature=request.temperature, stop=list(request.stop) or None)
        asked |= STREAMS if request.streams else {}
        asked |= {} if request.schema is None else self._object_guarantee(request.schema)
        if request.tools:
            asked["tools"] = [tool_data(tool) for tool in request.tools]
            asked["tool_choice"] = "required" if request.must_call else "auto"
        return self._create_completion(client, request.messages, {self.text_limit: request.max_tokens, **asked})

    def _object_guarantee(self, schema: Schema) -> dict[str, Any]:
        """Return the arguments of the request that enforce a schema."""
        json_schema = {"name": "answer", "strict": True, "schema": portable(schema)}
        return {"response_format": {"type": "json_schema", "json_schema": json_schema}}

    def _read_part(self, event: Any, request: TextRequest) -> Part:
        choice: dict[str, Any] = next(iter(event.get("choices") or ()), {})
        delta = choice.get("delta") or {}
        ended = "" if choice.get("finish_reason") == "stop" and not request.stop else None
        counted = counted_usage(event) if event.get("usage") else None
        text = delta.get("content") or delta.get("refusal") or ""
        stopped = REFUSED if delta.get("refusal") else _STOPPED.get(str(choice.get("finish_reason")), "")
        calls = _call_parts(delta.get("tool_calls"))
        return Part(text, ended, counted, choice.get("finish_reason") is not None, stopped, calls)

    def _read_text(self, response: Any) -> tuple[Any, TokenUsage]:
        message = response["choices"][0]["message"]
        return message.get("content") or message.get("refusal") or "", counted_usage(response)

    def _find_stop(self, response: Any) -> str:
        choice = response["choices"][0]
        return REFUSED if choice["message"].get("refusal") else _STOPPED.get(str(choice.get("finish_reason")), "")

    def _read_calls(self, response: Any) -> tuple[CallPart, ...]:
        return _call_parts(response["choices"][0]["message"].get("tool_calls"))


def _call_parts(calls: Any) -> tuple[CallPart, ...]:
    """Read the calls of a message, or the parts of calls in a part of a stream."""
    parts = []
    for place, call in enumerate(calls or ()):
        function = call.get("function") or {}
        where = call.get("index")
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        if not (isinstance(name, str) and isinstance(arguments, str)):
            raise TypeError("a call has a name and the text of its arguments")
        parts.append(CallPart(place if where is None else where, str(call.get("id") or ""), name, arguments))
    return tuple(parts)


def counted_usage(response: dict[str, Any]) -> TokenUsage:
    """Return the usage of a response, as far as it is reported."""
    counted = response.get("usage")
    if not isinstance(counted, dict):
        return token_usage(None, None)
    details = counted.get("prompt_tokens_details")
    of = details.get if isinstance(details, dict) else {}.get
    # The newer names are those of the endpoints for decisions.
    read = counted.get("input_tokens", counted.get("prompt_tokens"))
    written = counted.get("output_tokens", counted.get("completion_tokens"))
    return token_usage(read, written, of("cached_tokens"), of("cache_write_tokens"))


class CompletionsLLM(ChatCompletionsLLM, ContinuedText):
    """A model that uses chat completions, and continues a text through ``/completions``."""

    def _send_text(self, client: Any, request: TextRequest) -> Any:
        return self._request_completion(client, request) if request.continues else super()._send_text(client, request)

    def _read_part(self, event: Any, request: TextRequest) -> Part:
        return self._read_completion(event, request) if request.continues else super()._read_part(event, request)

    def _read_whole(self, response: Any, request: TextRequest) -> Part:
        return self._read_completion(response, request) if request.continues else super()._read_whole(response, request)

    def _request_completion(self, client: Any, request: TextRequest) -> Any:
        asked = given(temperature=request.temperature, stop=list(request.stop) or None)
        asked |= {"include_stop_str_in_output": True} if request.stop else {}  # the text shows which stop it was
        body = {"model": self.model, "prompt": request.messages[-1].content, "max_tokens": request.max_tokens, **asked}
        return self._post_json(
            client, "/completions", {**body, **(STREAMS if request.streams else {}), **self._extra_body}
        )

    def _read_completion(self, response: Any, request: TextRequest) -> Part:
        choices = response["choices"]
        choice = choices[0] if choices or not request.streams else {"text": ""}
        stop_reason, ended = choice.get("stop_reason"), None
        if choice.get("finish_reason") == "stop":
            ended = stop_reason if stop_reason in request.stop else ""
        usage = counted_usage(response) if response.get("usage") else None
        stopped = CUT_OFF if choice.get("finish_reason") == "length" else ""
        return Part(choice["text"], ended, usage, choice.get("finish_reason") is not None, stopped)
