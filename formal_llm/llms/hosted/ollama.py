"""Models on an Ollama server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Unpack

from formal_llm.llms.generation import CUT_OFF, Generated
from formal_llm.llms.hosted.adapter import ReportedError, chat_data, token_usage, tool_data
from formal_llm.llms.hosted.choice_schema import Reply, choice_schema, read_reply
from formal_llm.llms.hosted.logprobs import MOST_ALTERNATIVES
from formal_llm.llms.hosted.openai_client import Connection, OpenAIClientLLM
from formal_llm.llms.hosted.settings import given
from formal_llm.llms.hosted.text import ContinuedText
from formal_llm.llms.hosted.text_request import CallPart, Part, TextRequest, read_arguments
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.schemas import portable
from formal_llm.llms.usage import TokenUsage

if TYPE_CHECKING:
    import openai

_PORT = 11434


class OllamaLLM(OpenAIClientLLM, ContinuedText):
    """A model on an Ollama server; a JSON schema with an enum of the option numbers is enforced.

    It is asked through Ollama's own ``/api/chat``, which counts tokens and takes settings in its own way. The requests
    are made by the generic ``post`` of OpenAI's SDK, so retries, waits and timeouts are the same as everywhere.
    Probabilities are computed from those of the tokens; a server too old to return them ignores the request for them.

    It continues a text (``continue_text``) with ``/api/generate``, raw: without the template of the model. The server
    does not report which stop ended a text, so the text is streamed and cut here, without waiting for its end.

    Args:
        model: the name of the model, as shown by ``ollama list``.
        temperature: the sampling temperature; None: the model's default.
        num_predict: the maximum number of tokens that the model writes and thinks; None sends none.
        think: whether, or how long (``"low"``, ...), the model thinks first; None sends nothing.
        logprobs: whether to request token probabilities; None: until the server refuses them.
        options: further options of the model, such as ``{"num_ctx": 8192, "seed": 1}``.
        connection: the connection to the server, see ``Connection``; by default at ``OLLAMA_HOST`` (a host, a host with
            a port, or a URL, without ``/api``), or local port 11434, with the key ``OLLAMA_API_KEY`` if it is set.

    Raises:
        ProviderError: the address is not valid.
    """

    provider = "ollama"
    key_variable = "OLLAMA_API_KEY"
    url_variable = "OLLAMA_HOST"
    default_url = f"http://localhost:{_PORT}"
    needs = "the server must know a JSON schema as format (Ollama 0.5 or newer)"

    def __init__(
        self,
        model: str,
        *,
        temperature: float | None = None,
        num_predict: int | None = None,
        think: bool | str | None = None,
        logprobs: bool | None = None,
        options: Mapping[str, object] | None = None,
        **connection: Unpack[Connection],
    ) -> None:
        self._options = {**(options or {}), **given(temperature=temperature, num_predict=num_predict)}
        self._think = think
        super().__init__(
            model,
            settings={"options": self._options or None, "think": think, "logprobs": logprobs},
            logprobs=logprobs,
            **connection,
        )

    def _build_address(self, url: str) -> str:
        return host_address(url)

    def _send_question(self, client: Any, question: Question) -> Any:
        body: dict[str, Any] = {"format": choice_schema(question, bounded=True), "options": self._options or None}
        if self.asks_logprobs and not question.several:
            body |= {"logprobs": True, "top_logprobs": MOST_ALTERNATIVES}
        return self._request_chat(client, question.messages, body)

    def _request_chat(
        self, client: Any, messages: Sequence[Message], body: dict[str, Any], *, streams: bool = False
    ) -> Any:
        """Make the request, with the fields that all requests of this model have."""
        asked = {"model": self.model, "messages": [*map(_message_data, messages)], "stream": streams}
        return self._request_json(client, "/api/chat", {**asked, **given(**body, think=self._think)})

    def _request_json(self, client: Any, path: str, body: dict[str, Any]) -> Any:
        if not body["stream"]:
            return client.post(path, cast_to=object, body=body, options={"headers": self.headers})
        # The size of a stream is bounded before decompression, so it must not be compressed.
        options = {"headers": {**self.headers, "Accept-Encoding": "identity"}}
        import openai

        kind = json_lines()[isinstance(client, openai.AsyncOpenAI)]
        return client.post(path, cast_to=object, body=body, options=options, stream=True, stream_cls=kind)

    def _read_answer(self, question: Question, response: Any) -> Answer:
        text, usage = self._read_text(response)
        if not isinstance(text, str):
            raise TypeError("the content of a message is a text")
        return read_reply(question, Reply(text, usage, self._find_stop(response), response.get("logprobs")))

    def _send_text(self, client: Any, request: TextRequest) -> Any:
        stop = None if request.continues else list(request.stop) or None
        sampling = given(temperature=request.temperature, stop=stop)
        options = {**self._options, "num_predict": request.max_tokens, **sampling}
        if request.continues:
            prompt = request.messages[-1].content
            body = {"model": self.model, "prompt": prompt, "raw": True, "stream": True, "options": options}
            return self._request_json(client, "/api/generate", body)
        schema = None if request.schema is None else portable(request.schema, lists=True)
        # It is not possible to require a call: the server has no such setting.
        tools = [tool_data(tool) for tool in request.tools] or None
        body = {"format": schema, "options": options, "tools": tools}
        return self._request_chat(client, request.messages, body, streams=request.streams)

    def _write_text(self, request: TextRequest) -> Generated:
        if not request.continues:
            return super()._write_text(request)
        *_, generated = self._stream_text(replace(request, streams=True))
        assert isinstance(generated, Generated)
        return generated

    async def _awrite_text(self, request: TextRequest) -> Generated:
        if not request.continues:
            return await super()._awrite_text(request)
        *_, generated = [part async for part in self._astream_text(replace(request, streams=True))]
        assert isinstance(generated, Generated)
        return generated

    def _read_part(self, event: Any, request: TextRequest) -> Part:
        if "error" in event:
            raise ReportedError(str(event["error"]))
        text = event["response"] if request.continues else event["message"]["content"]
        calls = () if request.continues else self._read_calls(event)
        if not event.get("done"):
            return Part(text, calls=calls)
        is_end_known = request.continues or not request.stop  # whether the end is known not to be one of the stops
        ended = "" if event.get("done_reason") == "stop" and is_end_known else None
        return Part(text, ended, self._count_usage(event), True, self._find_stop(event), calls)

    def _find_stop(self, response: Any) -> str:
        return CUT_OFF if response.get("done_reason") == "length" else ""

    def _read_calls(self, response: Any) -> tuple[CallPart, ...]:
        calls = [call["function"] for call in response["message"].get("tool_calls") or ()]
        # It has no identifiers, and streams each call as a whole.
        return tuple(CallPart(None, "", one["name"], json.dumps(one.get("arguments") or {})) for one in calls)

    def _read_text(self, response: Any) -> tuple[Any, TokenUsage]:
        return response["message"]["content"], self._count_usage(response)

    def _count_usage(self, response: Any) -> TokenUsage:
        return token_usage(response.get("prompt_eval_count"), response.get("eval_count"))


def _message_data(message: Message) -> dict[str, Any]:
    """Return a message in the form of Ollama, which has calls without identifiers, and their arguments as data."""
    (data,) = chat_data([message])
    if message.calls:
        functions = [{"name": call.name, "arguments": read_arguments(call.arguments)} for call in message.calls]
        return {**data, "content": message.content, "tool_calls": [{"function": one} for one in functions]}
    return data


def host_address(host: str) -> str:
    """Return the URL for a value of ``OLLAMA_HOST``, which is read as by Ollama's own client.

    Without a scheme the port is 11434, with one it is that of the scheme. ``0.0.0.0``, which makes a server listen
    everywhere, denotes this machine.
    """
    scheme, separator, rest = host.strip().rpartition("://")
    place, slash, path = rest.partition("/")
    if separator and not place:
        return host  # the later check reports that it is no address
    if place.count(":") > 1 and not place.startswith("["):
        place = f"[{place}]"
    name, colon, port = place.rpartition(":")
    if not colon or place.endswith("]"):
        name, port = place, ""
    if name in ("", "0.0.0.0"):  # noqa: S104  # nothing is bound here
        name = "127.0.0.1"
    if not port and not separator:
        port = str(_PORT)
    return f"{scheme or 'http'}://{name}{':' if port else ''}{port}{slash}{path}".rstrip("/")


@cache
def json_lines() -> tuple[type[openai.Stream[object]], type[openai.AsyncStream[object]]]:
    """Return stream classes for the SDK whose events are lines of JSON, synchronous and asynchronous."""
    import openai

    class Lines(openai.Stream[object]):
        def __stream__(self) -> Iterator[object]:
            try:
                for line in self.response.iter_lines():
                    if line.strip():
                        yield json.loads(line)
            finally:
                self.response.close()

    class AsyncLines(openai.AsyncStream[object]):
        async def __stream__(self) -> AsyncIterator[object]:
            try:
                async for line in self.response.aiter_lines():
                    if line.strip():
                        yield json.loads(line)
            finally:
                await self.response.aclose()

    return Lines, AsyncLines
