"""What a server that speaks OpenAI's protocol supports, found by asking it.

Servers and gateways differ in what they support of the protocol, and some accept a field and ignore it. So each check
looks at what came back, not only at the status. The findings name the provider string and the settings to use.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from formal_llm.errors import MissingDependency, ProviderError
from formal_llm.llms.hosted.bounds import RequestBounds
from formal_llm.llms.hosted.settings import checked_address

Outcome = Literal["yes", "no", "ignored", "broken"]
#: Options of which no model chooses the second one by itself.
_ODD = ("QX-17", "ZK-42")
_ASKED = "Say hello in one short sentence."


class ServerFinding(NamedTuple):
    """What a check found.

    Attributes:
        check: what was checked.
        outcome: ``ignored`` if the field is accepted and has no effect; ``broken`` if the answer cannot be used.
        detail: what came back, shortened.
    """

    check: str
    outcome: Outcome
    detail: str = ""


class ServerReply(NamedTuple):
    """The status of a response, and its body as JSON data or text."""

    status: int
    data: Any


@dataclass
class ExaminedServer:
    """A server under examination.

    Args:
        url: its address, with the version, such as ``http://localhost:8000/v1``.
        model: the model; empty: the first one that the server lists.
        key: the key; None sends none.
        deadline: the seconds for a request.

    Raises:
        ProviderError: the address is not valid.
    """

    url: str
    model: str = ""
    key: str | None = None
    deadline: float = 60.0
    found: dict[str, ServerFinding] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingDependency("examining a server needs openai: pip install openai") from error
        from formal_llm.llms.hosted.transport import sync_client

        self.url = checked_address("doctor", self.url, "the first argument").rstrip("/")
        self._bounds = RequestBounds(self.deadline)
        self._http = sync_client(openai, self._bounds)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(self, path: str, body: Mapping[str, object] | None = None) -> ServerReply:
        """Make a request; return the status, and the body as JSON data or text.

        Raises:
            ProviderError: the server cannot be reached, or sends more than is read.
        """
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        method, data = ("GET", None) if body is None else ("POST", {"model": self.model, **body})
        try:
            with self._bounds.running():
                response = self._http.request(method, f"{self.url}{path}", json=data, headers=headers)
        except Exception as error:  # of the transport, which has many
            problem = f"{type(error).__name__}: {str(error)[:200]}"
            raise ProviderError(
                f"the server at {self.url}{path} does not answer: {problem}; check the address"
            ) from None
        try:
            return ServerReply(response.status_code, response.json())
        except ValueError:
            return ServerReply(response.status_code, response.text)

    def chat(self, text: str = _ASKED, **settings: object) -> ServerReply:
        """Ask the model by a chat completion."""
        return self.request(
            "/chat/completions",
            {"messages": [{"role": "user", "content": text}], "max_tokens": 60, "temperature": 0, **settings},
        )


def examine_server(server: ExaminedServer) -> Iterator[ServerFinding]:
    """Yield the findings about a server, one by one.

    Raises:
        ProviderError: it cannot be reached at all.
    """
    status, models = server.request("/models")
    names = [str(one.get("id")) for one in models.get("data", ())] if isinstance(models, dict) else []
    server.model = server.model or (names[0] if names else "")
    listed = ServerFinding("models are listed", "yes" if names else "no", ", ".join(names)[:100] or f"status {status}")
    yield listed
    for check, look in _CHECKS.items():
        try:
            outcome, detail = look(server)
            finding = ServerFinding(check, outcome, " ".join(detail.split()))
        except ProviderError as error:
            finding = ServerFinding(check, "broken", str(error)[:150])
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            finding = ServerFinding(
                check, "broken", f"the response has another form: {type(error).__name__} {error}"[:150]
            )
        server.found[check] = finding
        yield finding


def advise_settings(found: Mapping[str, ServerFinding]) -> list[str]:
    """Recommend how to use a server, by its findings."""

    def has(check: str) -> bool:
        return check in found and found[check].outcome == "yes"

    if not has("answers chats"):
        return ["it cannot be used: it does not answer chat completions"]
    if has("vLLM's choices"):
        advice = ["use vllm:MODEL with VLLM_BASE_URL: choices are enforced by vLLM's own guarantee"]
    elif has("llama.cpp's grammar"):
        advice = ["use llamacpp:MODEL with LLAMACPP_BASE_URL: choices are enforced by a grammar"]
    elif has("JSON schema"):
        advice = ["use openai:MODEL with OPENAI_BASE_URL: choices are enforced by a JSON schema"]
    else:
        advice = ["nothing enforces choices: answers are checked, and asked for again"]
    if not has("probabilities of tokens"):
        advice.append("answers have no probabilities: leave out --search best-first and sure:P:LLM")
    if not has("counts tokens"):
        advice.append("tokens are not counted: --max-tokens and --max-cost have nothing to bound, take --max-requests")
    if not has("prefix cache"):
        advice.append("no prefix is reused, as far as it reports: --search exact asks one question a plan")
    return advice


def _read_text(reply: Any) -> str:
    return str(reply["choices"][0]["message"]["content"])


def _shorten_reply(status: int, reply: Any) -> str:
    error = reply.get("error", reply) if isinstance(reply, dict) else reply
    message = error.get("message", error) if isinstance(error, dict) else error
    return f"status {status}: {' '.join(str(message).split())[:100]}"


def _find_chat(server: ExaminedServer) -> tuple[Outcome, str]:
    status, reply = server.chat()
    return ("yes", _read_text(reply)[:60]) if status == 200 else ("no", _shorten_reply(status, reply))


def _find_counts(server: ExaminedServer) -> tuple[Outcome, str]:
    usage = server.chat()[1].get("usage") or {}
    counted = [usage.get("prompt_tokens"), usage.get("completion_tokens")]
    return ("yes", "{} read, {} written".format(*counted)) if all(counted) else ("no", str(usage)[:80])


def _find_limit(server: ExaminedServer) -> tuple[Outcome, str]:
    reply = server.chat("Count from one to fifty in words.", max_tokens=3)[1]
    reason = reply["choices"][0].get("finish_reason")
    return ("yes" if reason == "length" else "ignored", f"finish_reason {reason}")


def _find_stop(server: ExaminedServer) -> tuple[Outcome, str]:
    status, reply = server.chat("Repeat exactly: one two three", stop=["two"])
    if status != 200:
        return "no", _shorten_reply(status, reply)
    return ("ignored" if "three" in _read_text(reply) else "yes", _read_text(reply)[:60])


def _find_system(server: ExaminedServer) -> tuple[Outcome, str]:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": _ASKED}]
    status, reply = server.chat(messages=messages)
    return ("yes", "") if status == 200 else ("no", _shorten_reply(status, reply))


def _find_choice(settings: Mapping[str, object]) -> Callable[[ExaminedServer], tuple[Outcome, str]]:
    """A check whether a field makes the model write what it would not write by itself."""

    def find(server: ExaminedServer) -> tuple[Outcome, str]:
        status, reply = server.chat(_ASKED, **settings)
        if status != 200:
            return "no", _shorten_reply(status, reply)
        text = _read_text(reply)
        return ("yes" if any(odd in text for odd in _ODD) else "ignored", text[:60])

    return find


def _find_object(server: ExaminedServer) -> tuple[Outcome, str]:
    status, reply = server.chat("Give a JSON object with a name.", response_format={"type": "json_object"})
    if status != 200:
        return "no", _shorten_reply(status, reply)
    with suppress(ValueError):
        return ("yes" if isinstance(json.loads(_read_text(reply)), dict) else "ignored", _read_text(reply)[:60])
    return "ignored", _read_text(reply)[:60]


def _find_logprobs(server: ExaminedServer) -> tuple[Outcome, str]:
    status, reply = server.chat(logprobs=True, top_logprobs=20)
    if status != 200:
        return "no", _shorten_reply(status, reply)
    tokens = (reply["choices"][0].get("logprobs") or {}).get("content")
    return ("yes", f"{len(tokens[0]['top_logprobs'])} alternatives") if tokens else ("ignored", "")


def _find_stream(server: ExaminedServer) -> tuple[Outcome, str]:
    status, reply = server.chat(stream=True, stream_options={"include_usage": True})
    if status != 200 or not isinstance(reply, str):
        return "no", _shorten_reply(status, reply)
    lines = [line[5:].strip() for line in reply.split("\n") if line.startswith("data:")]
    usage = any('"usage":{' in line.replace(" ", "") for line in lines)
    if not lines or lines[-1] != "[DONE]":
        return "broken", "the stream does not end with [DONE]"
    return "yes", f"{len(lines) - 1} events, {'with' if usage else 'without'} usage"


def _find_tools(server: ExaminedServer) -> tuple[Outcome, str]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    function = {"name": "weather", "description": "the weather in a city", "parameters": parameters}
    choice = {"type": "function", "function": {"name": "weather"}}
    status, reply = server.chat(
        "What is the weather in Rome?", tools=[{"type": "function", "function": function}], tool_choice=choice
    )
    if status != 200:
        return "no", _shorten_reply(status, reply)
    calls = reply["choices"][0]["message"].get("tool_calls")
    return ("yes", str(calls[0]["function"]["arguments"])[:60]) if calls else ("ignored", "")


def _find_cache(server: ExaminedServer) -> tuple[Outcome, str]:
    long = "These are the rules. " + "Each step follows the one before. " * 150
    cached = 0
    for ending in ("First.", "Second."):
        usage = server.chat(long + ending, max_tokens=2)[1].get("usage") or {}
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return ("yes", f"{cached} tokens of the second prompt") if cached else ("no", "")


def _find_refusal(server: ExaminedServer) -> tuple[Outcome, str]:
    status, reply = server.chat(max_tokens="many")
    if status == 200:
        return "ignored", "it accepts a wrong type"
    explained = isinstance(reply, dict) and bool(reply.get("error") or reply.get("detail"))
    return ("yes" if 400 <= status < 500 and explained else "broken", _shorten_reply(status, reply))


_ENUM = {"type": "object", "properties": {"choice": {"type": "string", "enum": list(_ODD)}}, "required": ["choice"]}
_STRICT = {"name": "answer", "strict": True, "schema": {**_ENUM, "additionalProperties": False}}
#: The checks, by what is checked.
_CHECKS: Mapping[str, Callable[[ExaminedServer], tuple[Outcome, str]]] = {
    "answers chats": _find_chat,
    "counts tokens": _find_counts,
    "system messages": _find_system,
    "limit of tokens": _find_limit,
    "stops": _find_stop,
    "JSON schema": _find_choice({"response_format": {"type": "json_schema", "json_schema": _STRICT}}),
    "JSON objects": _find_object,
    "vLLM's choices": _find_choice({"structured_outputs": {"choice": list(_ODD)}}),
    "vLLM's older choices": _find_choice({"guided_choice": list(_ODD)}),
    "llama.cpp's grammar": _find_choice({"grammar": " | ".join(f'"{odd}"' for odd in _ODD).join(("root ::= ", ""))}),
    "probabilities of tokens": _find_logprobs,
    "streams": _find_stream,
    "tool calls": _find_tools,
    "prefix cache": _find_cache,
    "errors that explain": _find_refusal,
}
