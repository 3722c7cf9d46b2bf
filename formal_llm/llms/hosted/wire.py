"""The HTTP client below the SDKs: it bounds what a server may send, and puts in order what servers send amiss.

Servers that speak OpenAI's protocol differ in details on which the SDK and pydantic-ai fail, or lose what was said:

- an error comes with the status 200: it gets the status that it names, so that its words are shown;
- ``message`` or ``delta`` is null (a content filter), the response has no name, counts are no whole numbers, arguments
  are an object, a custom tool is called, calls have no id; token probabilities that cannot be read are left out;
- streamed calls share the index 0, or have none: they are told apart by their ids.

Nothing else of a response is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from formal_llm.llms.hosted.probabilities import read_tokens

#: The default for the most bytes of a response, after decompression: a thousand times an answer.
MOST_BYTES = 16_000_000


class TooLarge(Exception):
    """A response is larger than it may be."""


class StreamCut(Exception):
    """A stream ended before the model did."""


class BoundedClient(httpx2.AsyncClient):
    """An HTTP client that reads at most ``most_bytes`` of a response, and mends responses as the module describes.

    Args:
        seconds: for which a server may be silent.
        most_bytes: the most bytes of a response after decompression; None for :data:`MOST_BYTES`.

    Attributes:
        left_out: names of headers that are not sent.
    """

    def __init__(self, seconds: float, most_bytes: int | None = None) -> None:
        limits = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100)
        timeout = httpx2.Timeout(seconds, connect=min(seconds, 20), pool=None)
        super().__init__(timeout=timeout, limits=limits, follow_redirects=True)
        self.most_bytes = MOST_BYTES if most_bytes is None else most_bytes
        self.left_out: Sequence[str] = ()

    async def send(self, request: httpx2.Request, *, stream: bool = False, **how: Any) -> httpx2.Response:
        """Send a request; the response is read, unless it is a stream of events."""
        for name in self.left_out:
            request.headers.pop(name, None)
        response = await super().send(request, stream=True, **how)
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_TRANSPORT]
        if stream and response.is_success and "event-stream" in response.headers.get("content-type", ""):
            body = _Events(response, self.most_bytes)
            return httpx2.Response(response.status_code, headers=headers, stream=body, request=request)
        try:
            content = b"".join([piece async for piece in _read_bounded(response, self.most_bytes)])
        finally:
            await response.aclose()
        status, content = _mend_body(response.status_code, content)
        return httpx2.Response(status, headers=headers, content=content, request=request)


#: Headers that no longer hold for a body that was read.
_OF_TRANSPORT = frozenset({"content-encoding", "content-length", "transfer-encoding"})


async def _read_bounded(response: httpx2.Response, most: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > most:
            raise TooLarge(f"the response is larger than {most:,} bytes")
        yield piece


class _Events(httpx2.AsyncByteStream):
    """A stream of events, line by line."""

    def __init__(self, response: httpx2.Response, most: int) -> None:
        self._response = response
        self._most = most
        self._calls = _StreamedCalls()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        rest, whole = b"", False
        try:
            async for piece in _read_bounded(self._response, self._most):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    whole = whole or bool(_LAST.search(line))
                    yield self._calls.mend_line(line) + b"\n"
        except httpx2.TransportError as error:
            raise StreamCut("the stream broke off") from error
        if rest:
            yield self._calls.mend_line(rest)
        if not (whole or _LAST.search(rest)):
            raise StreamCut("the stream broke off")

    async def aclose(self) -> None:
        await self._response.aclose()


def _mend_body(status: int, content: bytes) -> tuple[int, bytes]:
    """Return the status and the body of a whole response as they should have been."""
    if status != 200 or not any(mark in content for mark in (b'"error"', b'"choices"')):
        return status, content
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return status, content
    if not isinstance(data, dict):
        return status, content
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    error = data.get("error") or first.get("error")
    if error and not data.get("output"):  # a response of OpenAI has both keys
        code = error.get("code") if isinstance(error, dict) else None
        named = code if type(code) is int and 400 <= code < 600 else 502
        return named, json.dumps({"error": error if isinstance(error, dict) else {"message": str(error)}}).encode()
    if not isinstance(choices, list):
        return status, content
    for name, default in (("id", ""), ("model", ""), ("object", "chat.completion"), ("created", 0)):
        data[name] = data.get(name) or default
    if isinstance(data.get("usage"), dict):
        counts = {name: _mend_count(count) for name, count in data["usage"].items()}
        data["usage"] = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0) | counts
    for choice in choices:
        if isinstance(choice, dict) and "message" in choice:
            logprobs = choice.get("logprobs")
            if not (isinstance(logprobs, dict) and read_tokens(logprobs.get("content"))):
                choice.pop("logprobs", None)
            choice["message"] = {"role": "assistant", "content": None, **(choice["message"] or {})}
            for place, call in enumerate(_mend_calls(choice["message"])):
                call["id"] = call.get("id") or f"call_{place}"
                call["function"]["arguments"] = call["function"].get("arguments") or ""
    return status, json.dumps(data).encode()


def _mend_count(count: object) -> object:
    """Return a count of tokens as a whole number; what is none counts as 0, since not all servers count."""
    if isinstance(count, dict):
        return {name: _mend_count(one) for name, one in count.items()}
    return int(count) if isinstance(count, (int, float)) and 0 <= count < 2**53 else 0


@dataclass(slots=True)
class _Call:
    """A streamed call: the index that the server sent, its id, its name, and its arguments so far."""

    number: object
    id: str
    name: str
    arguments: str = ""

    @property
    def whole(self) -> bool:
        try:
            json.loads(self.arguments)
        except ValueError:
            return False
        return True


class _StreamedCalls:
    """The calls of one response; each gets an index of its own, and an id."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def mend_line(self, line: bytes) -> bytes:
        """Return a line of a stream as it should have been."""
        if not line.startswith(b"data:") or not _MENDED.search(line):
            return line
        try:
            data = json.loads(line[5:])
            if "choices" not in data:
                return line
            data["choices"] = data["choices"] or []
            for choice in data["choices"]:
                if choice.get("error"):
                    return b"data: " + json.dumps({"error": choice["error"]}).encode()
                choice["delta"] = choice.get("delta") or {}
                for call in _mend_calls(choice["delta"]):
                    function, name = call["function"], str(call["function"].get("name") or "")
                    known = len(self._calls)
                    index = self._find_index(call.get("index"), str(call.get("id") or ""), name)
                    if index < known:
                        function.pop("name", None)  # some servers repeat it
                    self._calls[index].arguments += str(function.get("arguments") or "")
                    call["index"], call["id"] = index, self._calls[index].id
        except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
            return line
        return b"data: " + json.dumps(data).encode()

    def _find_index(self, number: object, sent: str, name: str) -> int:
        """Return the index of the call to which a part with this number, id and name belongs."""
        for index, call in enumerate(self._calls):
            if sent and sent == call.id:
                return index
        same = [index for index, call in enumerate(self._calls) if call.number == number]
        if same and not sent and not (name and (name != self._calls[same[-1]].name or self._calls[same[-1]].whole)):
            return same[-1]
        self._calls.append(_Call(number, sent or f"call_{len(self._calls)}", name))
        return len(self._calls) - 1


#: The lines of a stream that are put in order, and those that end one, of all protocols.
_MENDED = re.compile(rb'"tool_calls"|"(?:delta|choices)"\s*:\s*null|"error"')
_LAST = re.compile(
    rb'"finish_?[rR]eason"\s*:\s*"|^data:\s*\[DONE\]'
    rb'|"type"\s*:\s*"(?:message_delta|message_stop|error|response\.(?:completed|incomplete|failed))"|^data:\s*{"error"'
)


def _mend_calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Put the functions of the calls of a message, or of a part of one, in order, and return the calls."""
    calls = message.get("tool_calls")
    calls = message["tool_calls"] = [one for one in calls if isinstance(one, dict)] if isinstance(calls, list) else None
    for call in calls or ():
        if isinstance(custom := call.pop("custom", None), dict):
            call["function"] = {"name": custom.get("name"), "arguments": custom.get("input")}
        call["type"] = "function"
        function = call["function"] = call["function"] if isinstance(call.get("function"), dict) else {}
        if isinstance(function.get("arguments"), (dict, list)):
            function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)
    return calls or []
