"""A server on this machine whose model calls tools, in the protocols of OpenAI and Anthropic.

It is written from the providers' documents, and strict where they are: a chat in which a call has no result, or a
result no call, is refused with 400, as OpenAI and Anthropic do. What its model does is a function of the chat. Four
characters of what is read count as a token.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self

from formal_llm.llms import HostedLLM

#: A message, or a request or a response, as JSON data of a provider.
Data = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A request in the terms of no provider.

    Attributes:
        results: the results of calls so far, in order.
        tools: the names of the offered tools.
        must_call: whether a call is required.
        read: the number of tokens read.
        body: the request itself.
    """

    results: Sequence[str]
    tools: Sequence[str]
    must_call: bool
    read: int
    body: Data = field(repr=False)


#: The calls of a turn: names and arguments.
Calls = Sequence[tuple[str, Mapping[str, object]]]
#: How a turn ends: by itself, at the limit of tokens, with a refusal, or in the middle of a stream.
Ending = Literal["end", "cut", "refused", "dropped"]
#: What the model does: a text and calls, and how that ends.
Model = Callable[[Asked], "tuple[str, Calls] | tuple[str, Calls, Ending]"]


class Refused(Exception):
    """A request that the provider refuses with 400."""


class ToolServer:
    """The server; a context manager.

    Args:
        model: what its model does.

    Attributes:
        asked: the requests so far.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.asked: list[Asked] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                speak = next((one for end, one in _PROTOCOLS.items() if self.path.endswith(end)), None)
                if speak is None:
                    return self._send(404, "application/json", b"{}")
                try:
                    asked = speak.read(body)
                except Refused as error:
                    message = json.dumps({"error": {"message": str(error), "type": "invalid_request_error"}})
                    return self._send(400, "application/json", message.encode())
                server.asked.append(asked)
                text, calls, *rest = server.model(asked)
                ending = rest[0] if rest else "end"
                streams = bool(body.get("stream"))
                write = speak.stream if streams else speak.write
                written = write(text, calls, asked, ending).encode()
                if ending == "dropped":
                    self.close_connection = True
                    return self._send_half(speak.kind if streams else "application/json", written)
                return self._send(200, speak.kind if streams else "application/json", written)

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _send_half(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2])

            def log_message(self, *_: object) -> None:
                """Stay quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def count_read(body: Data) -> int:
    """Return the number of tokens of what is read: the messages, the system text, the tools."""
    return sum(len(json.dumps(body[key])) for key in ("messages", "system", "tools") if body.get(key)) // 4


class _OpenAI:
    """Chat completions."""

    kind = "text/event-stream"

    @staticmethod
    def read(body: Data) -> Asked:
        waiting: list[str] = []
        results = []
        for message in body["messages"]:
            role = message["role"]
            if role not in ("system", "user", "assistant", "tool"):
                raise Refused(f"unknown role {role}")
            if role == "tool":
                if message.get("tool_call_id") not in waiting:
                    raise Refused("a message of the role tool must follow a message with tool_calls")
                waiting.remove(message["tool_call_id"])
                results.append(message["content"])
                continue
            if waiting:
                raise Refused(f"tool_calls must be followed by tool messages; these have none: {waiting}")
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
            if role == "assistant" and not waiting and not isinstance(message.get("content"), str):
                raise Refused("an assistant's message has content or tool_calls")
        if waiting:
            raise Refused(f"tool_calls must be followed by tool messages; these have none: {waiting}")
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
        choice = body.get("tool_choice", "auto")
        if "tool_choice" in body and not tools:
            raise Refused("tool_choice is only allowed when tools are specified")
        return Asked(results, tools, choice == "required", count_read(body), body)

    @staticmethod
    def _calls(calls: Calls, place: int) -> list[Data]:
        functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
        return [
            {"id": f"call_{place}_{number}", "type": "function", "function": function}
            for number, function in enumerate(functions)
        ]

    @staticmethod
    def _reason(calls: Calls, ending: Ending) -> str:
        return "length" if ending == "cut" else "tool_calls" if calls else "stop"

    @classmethod
    def write(cls, text: str, calls: Calls, asked: Asked, ending: Ending = "end") -> str:
        refused = ending == "refused"
        message: Data = {"role": "assistant", "content": None if refused else text or None}
        message["refusal"] = text if refused else None
        message |= {"tool_calls": cls._calls(calls, len(asked.results))} if calls else {}
        choice = {"index": 0, "message": message, "finish_reason": cls._reason(calls, ending), "logprobs": None}
        usage = {"prompt_tokens": asked.read, "completion_tokens": 5, "total_tokens": asked.read + 5}
        top = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
        return json.dumps({**top, "choices": [choice], "usage": usage})

    @classmethod
    def stream(cls, text: str, calls: Calls, asked: Asked, ending: Ending = "end") -> str:
        top = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        name = "refusal" if ending == "refused" else "content"
        deltas: list[Data] = [{name: text[at : at + 5]} for at in range(0, len(text), 5)]
        for number, call in enumerate(cls._calls(calls, len(asked.results))):
            arguments = call["function"]["arguments"]
            begun = {**call, "index": number, "function": {"name": call["function"]["name"], "arguments": ""}}
            deltas.append({"tool_calls": [begun]})
            deltas += [
                {"tool_calls": [{"index": number, "function": {"arguments": arguments[at : at + 7]}}]}
                for at in range(0, len(arguments), 7)
            ]
        chunks = [{**top, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        end = {"index": 0, "delta": {}, "finish_reason": cls._reason(calls, ending)}
        usage = {"prompt_tokens": asked.read, "completion_tokens": 5, "total_tokens": asked.read + 5}
        chunks += [{**top, "choices": [end]}, {**top, "choices": [], "usage": usage}]
        return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"


_ANTHROPIC_REASONS: Mapping[Ending, str] = {"cut": "max_tokens", "refused": "refusal"}


class _Anthropic:
    """Messages."""

    kind = "text/event-stream"

    @staticmethod
    def read(body: Data) -> Asked:
        waiting: list[str] = []
        results: list[str] = []
        before = "assistant"
        for message in body["messages"]:
            if message["role"] == before:
                raise Refused("roles must alternate between user and assistant")  # joined by the real one
            before = message["role"]
            content = message["content"]
            blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
            if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
                raise Refused("text content blocks must contain non-whitespace text")
            given = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
            if sorted(given) != sorted(waiting):
                raise Refused(f"tool_use ids were found without tool_result blocks immediately after: {waiting}")
            for block in blocks:
                if block["type"] == "tool_result":
                    content = block["content"]
                    results.append(content if isinstance(content, str) else "".join(one["text"] for one in content))
            waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if any(not isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"):
                raise Refused("the input of a tool_use block is an object")
        if waiting or before == "assistant":
            raise Refused("the final message must be one of the user, with the results of all calls")
        tools = [tool["name"] for tool in body.get("tools") or ()]
        if results and not tools:
            raise Refused("requests which include tool_use or tool_result blocks must define tools")
        tools = [] if body.get("tool_choice") == {"type": "none"} else tools
        must = (body.get("tool_choice") or {}).get("type") == "any"
        return Asked(results, tools, must, count_read(body), body)

    @staticmethod
    def _blocks(text: str, calls: Calls, asked: Asked) -> list[Data]:
        used = [
            {"type": "tool_use", "id": f"toolu_{len(asked.results)}_{number}", "name": name, "input": dict(arguments)}
            for number, (name, arguments) in enumerate(calls)
        ]
        return [*([{"type": "text", "text": text}] if text else []), *used]

    @classmethod
    def write(cls, text: str, calls: Calls, asked: Asked, ending: Ending = "end") -> str:
        top = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
        reason = _ANTHROPIC_REASONS.get(ending, "tool_use" if calls else "end_turn")
        usage = {"input_tokens": asked.read, "output_tokens": 5}
        return json.dumps({**top, "content": cls._blocks(text, calls, asked), "stop_reason": reason, "usage": usage})

    @classmethod
    def stream(cls, text: str, calls: Calls, asked: Asked, ending: Ending = "end") -> str:
        return "".join(
            f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in cls._events(text, calls, asked, ending)
        )

    @classmethod
    def _events(cls, text: str, calls: Calls, asked: Asked, ending: Ending = "end") -> Iterator[Data]:
        top = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
        usage = {"input_tokens": asked.read, "output_tokens": 1}
        yield {"type": "message_start", "message": {**top, "stop_reason": None, "stop_sequence": None, "usage": usage}}
        for index, block in enumerate(cls._blocks(text, calls, asked)):
            is_text = block["type"] == "text"
            begun: Data = {**block, **({"text": ""} if is_text else {"input": {}})}
            yield {"type": "content_block_start", "index": index, "content_block": begun}
            whole = block["text"] if is_text else json.dumps(block["input"])
            for at in range(0, len(whole), 4):
                part = whole[at : at + 4]
                delta = {"type": "text_delta", "text": part} if is_text else {
                    "type": "input_json_delta", "partial_json": part
                }  # fmt: skip
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        reason = _ANTHROPIC_REASONS.get(ending, "tool_use" if calls else "end_turn")
        stop = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}
        yield {"type": "message_stop"}


_PROTOCOLS: Mapping[str, Any] = {"/chat/completions": _OpenAI, "/messages": _Anthropic}


def make_llm(provider: str, server: ToolServer) -> HostedLLM:
    """Return the model of a server, asked in the protocol of a provider."""
    version = "" if provider in ("anthropic", "ollama") else "/v1"
    return HostedLLM(f"{provider}:m", base_url=f"{server.url}{version}", api_key="k", max_retries=0)
