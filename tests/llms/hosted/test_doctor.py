"""What a server supports, found by asking a server with and without each feature."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import pytest

from formal_llm.errors import ProviderError
from formal_llm.llms.hosted.doctor import ExaminedServer, ServerFinding, advise_settings, examine_server

#: The field of a request that each feature reads.
FIELDS = {
    "JSON schema": "response_format", "vLLM's choices": "structured_outputs", "vLLM's older choices": "guided_choice",
    "llama.cpp's grammar": "grammar",
}  # fmt: skip
EVERYTHING = {
    "models are listed", "answers chats", "counts tokens", "system messages", "limit of tokens", "stops",
    "JSON objects", "probabilities of tokens", "streams", "tool calls", "prefix cache", "errors that explain", *FIELDS,
}  # fmt: skip


class Gateway(BaseHTTPRequestHandler):
    """A server that has some features, refuses some fields, and ignores the others."""

    features: ClassVar[frozenset[str]]
    refused: ClassVar[frozenset[str]]
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def reply(self, data: object, status: int = 200) -> None:
        page = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_GET(self) -> None:
        self.reply({"data": [{"id": "small"}] if "models are listed" in self.features else []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        has = self.features.__contains__
        if "answers chats" not in self.features:
            return self.reply("<html>", 404)
        if self.refused & body.keys():
            return self.reply({"error": {"message": f"unknown: {self.refused & body.keys()}"}}, 400)
        if isinstance(body["max_tokens"], str) and has("errors that explain"):
            return self.reply({"error": {"message": "max_tokens is a number"}}, 400)
        if len(body["messages"]) == 2 and not has("system messages"):
            return self.reply({"error": {"message": "no system messages"}}, 400)
        said = "Hello there."
        if any(has(name) and wanted in body for name, wanted in FIELDS.items()):
            said = '{"choice": "ZK-42"}'
        if body.get("response_format") == {"type": "json_object"}:
            said = '{"name": "Ann"}' if has("JSON objects") else "Ann"
        if "stop" in body:
            said = "one " if has("stops") else "one two three"
        if body.get("stream") and has("streams"):
            return self.reply('data: {"choices": []}\n\ndata: {"choices": [], "usage": {}}\n\ndata: [DONE]\n\n')
        message: dict[str, Any] = {"content": said}
        if "tools" in body and has("tool calls"):
            message["tool_calls"] = [{"function": {"name": "weather", "arguments": "{}"}}]
        limited = body["max_tokens"] == 3 and has("limit of tokens")
        choice: dict[str, Any] = {"message": message, "finish_reason": "length" if limited else "stop"}
        if body.get("logprobs") and has("probabilities of tokens"):
            choice["logprobs"] = {"content": [{"top_logprobs": [{}] * 20}]}
        reply: dict[str, Any] = {"choices": [choice]}
        if has("counts tokens"):
            reply["usage"] = {"prompt_tokens": 9, "completion_tokens": 3}
        if has("prefix cache"):
            reply.setdefault("usage", {})["prompt_tokens_details"] = {"cached_tokens": 8}
        return self.reply(reply)


@contextmanager
def gateway(features: set[str], refused: set[str] = frozenset()) -> Iterator[str]:  # type: ignore[assignment]
    """The address of a server with these features."""
    handler = type("Handler", (Gateway,), {"features": frozenset(features), "refused": frozenset(refused)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}/v1"
        http.shutdown()
        thread.join()


def examine(url: str) -> dict[str, ServerFinding]:
    with closing(ExaminedServer(url, deadline=5)) as server:
        return {finding.check: finding for finding in examine_server(server)}


def test_a_server_that_has_everything() -> None:
    with gateway(EVERYTHING) as url:
        found = examine(url)
    assert {name: finding.outcome for name, finding in found.items()} == dict.fromkeys(EVERYTHING, "yes")
    assert advise_settings(found)[0].startswith("use vllm:MODEL")


@pytest.mark.parametrize("missing", sorted(EVERYTHING - {"answers chats"}))
def test_what_is_missing_is_found(missing: str) -> None:
    with gateway(EVERYTHING - {missing}) as url:
        found = examine(url)
    assert {name for name, finding in found.items() if finding.outcome != "yes"} == {missing}


@pytest.mark.parametrize("check", FIELDS)
def test_what_is_refused_is_not_what_is_ignored(check: str) -> None:
    with gateway(EVERYTHING - set(FIELDS)) as url:
        assert examine(url)[check].outcome == "ignored"
    with gateway(EVERYTHING - set(FIELDS), {FIELDS[check]}) as url:
        found = examine(url)
    assert found[check].outcome == "no" and "unknown" in found[check].detail


@pytest.mark.parametrize(
    ("features", "words"),
    [(EVERYTHING - {"vLLM's choices"}, "use llamacpp:MODEL"),
     (EVERYTHING - {"vLLM's choices", "llama.cpp's grammar"}, "use openai:MODEL"),
     (EVERYTHING - set(FIELDS), "nothing enforces choices"), ({"models are listed"}, "it cannot be used")],
)  # fmt: skip
def test_advice(features: set[str], words: str) -> None:
    with gateway(features) as url:
        assert words in advise_settings(examine(url))[0]


def test_what_is_missing_has_consequences() -> None:
    with gateway({"answers chats", "JSON schema"}) as url:
        advice = " ".join(advise_settings(examine(url)))
    for words in ("no probabilities", "tokens are not counted", "no prefix is reused"):
        assert words in advice


def test_nobody_there() -> None:
    with pytest.raises(
        ProviderError, match=r"127\.0\.0\.1:9/v1/models does not answer: ConnectError.*; check the address"
    ):
        examine("http://127.0.0.1:9/v1")
    with pytest.raises(ProviderError, match="is no address of a server"):
        examine("localhost:80")
