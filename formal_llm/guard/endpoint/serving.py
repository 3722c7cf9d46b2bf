"""The endpoint: an HTTP server that looks like the API of a model and lets only what the rules allow pass.

It keeps nothing between requests, since each request carries the whole conversation: what happened is read from the
messages, and the guard's state follows. So any number of copies can run behind a load balancer.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import httpx2
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from formal_llm.errors import InputError, TraceError
from formal_llm.guard.adapters.plumbing import format_refusal
from formal_llm.guard.endpoint.dialects import DIALECTS, AskedCall, Body, Dialect, ForcedToolError, add_usage
from formal_llm.guard.events import Decision, Result, Said
from formal_llm.guard.guard import Guard, GuardState
from formal_llm.guard.traces.trace import Trace

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.trace import Tracer
    from starlette.requests import Request

_log = logging.getLogger("formal_llm.guard")
#: Headers that belong to one connection, or that the endpoint sets itself.
_OWN_HEADERS = frozenset(
    ["host", "content-length", "content-encoding", "accept-encoding", "transfer-encoding", "connection", "keep-alive",
     "te", "trailer", "upgrade", "proxy-authorization", "proxy-authenticate", "cookie", "set-cookie"]
)  # fmt: skip
#: What else is passed on: it can ask for no call of a tool.
_PASSED = (
    ("GET", "/v1/models"), ("GET", "/v1/models/{model:path}"), ("POST", "/v1/embeddings"), ("POST", "/v1/moderations"),
    ("POST", "/v1/messages/count_tokens"),
)  # fmt: skip
_SIGNATURE = "\n\nsigned: "


@dataclass(frozen=True)
class EndpointSettings:
    """How the endpoint works.

    Attributes:
        openai: the address of the API of OpenAI, or of a compatible server, without ``/v1``.
        anthropic: that of Anthropic's.
        retries: how often the model is asked again after an answer that is refused as a whole.
        key: the key by which results of tools are signed; None if they are not.
        most_bytes: the most bytes of a request or an answer.
        timeout: the most seconds between two pieces of an answer.
    """

    openai: str = "https://api.openai.com"
    anthropic: str = "https://api.anthropic.com"
    retries: int = 2
    key: bytes | None = field(default=None, repr=False)
    most_bytes: int = 32_000_000
    timeout: float = 600.0


def sign_result(key: bytes, call_id: str, text: str) -> str:
    """Sign the result of a call, in the process that makes the call; the endpoint accepts no other one then.

    The signature is the HMAC-SHA256, in hexadecimal digits, of the call's id, a line break, and the text.
    """
    signature = hmac.new(key, f"{call_id}\n{text}".encode(), hashlib.sha256).hexdigest()
    return f"{text}{_SIGNATURE}{signature}"


class _Refused(Exception):
    """The endpoint answers with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _PassedThrough(Exception):
    """The API answered with an error of its own, which is passed on."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


@dataclass
class _Verdict:
    """What the rules say of an answer.

    Attributes:
        refused: its calls that are refused, with the reason.
        has_calls: whether a call may be made.
        reason: why the answer is not accepted although no call is refused; empty if it is.
        rules: the rules that refuse.
    """

    refused: list[tuple[AskedCall, str]] = field(default_factory=list)
    has_calls: bool = False
    reason: str = ""
    rules: list[str] = field(default_factory=list)

    @property
    def is_accepted(self) -> bool:
        return not self.refused and not self.reason


class Endpoint:
    """The endpoint of a guard.

    Args:
        telemetry: where metrics and spans go; to the global providers where left out.

    Raises:
        InputError: the rules depend on time, which a conversation does not record.
    """

    def __init__(
        self, guard: Guard, settings: EndpointSettings | None = None, telemetry: EndpointTelemetry | None = None
    ) -> None:
        if guard.rules.needs_time:
            raise InputError(
                "the rules depend on time, and a conversation does not record when its calls were made; guard this "
                "agent by an adapter, a hook, or in front of its MCP servers"
            )
        self.guard = guard
        self.settings = settings or EndpointSettings()
        labeller = guard.rules.labeller
        self._judges_texts = bool(labeller.find_patterns("assistant", ""))
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(self.settings.timeout, connect=30.0),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        )
        self.telemetry = telemetry or EndpointTelemetry()

    def build_app(self) -> Starlette:
        """Build the application, which any server of ASGI runs."""

        @asynccontextmanager
        async def run(_: Starlette) -> AsyncIterator[None]:
            async with self._client:
                yield

        routes = [Route(one.path, self._make_handler(one), methods=["POST"]) for one in DIALECTS]
        routes += [Route(path, self._make_handler(None), methods=[method]) for method, path in _PASSED]
        routes.append(Route("/{path:path}", _refuse_path, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]))
        return Starlette(routes=routes, lifespan=run)

    # -- requests -----------------------------------------------------------------------------------------------

    def _make_handler(self, dialect: Dialect | None) -> Any:  # what Starlette calls
        """Make what answers a path: of a dialect, or one whose requests are only passed on."""

        async def handle(request: Request) -> Response:
            try:
                content = await self._read_request(request)
                if dialect is None:
                    return await self._pass_on(request, content)
                return await _GuardedExchange(self, dialect, _read_object(content), request).respond()
            except _Refused as error:
                return JSONResponse((dialect or DIALECTS[0]).write_error(str(error)), error.status)
            except _PassedThrough as passed:
                return passed.response

        return handle

    async def _read_request(self, request: Request) -> bytes:
        data = bytearray()
        async for piece in request.stream():
            data += piece
            if len(data) > self.settings.most_bytes:
                raise _Refused(413, f"the request has more than {self.settings.most_bytes:,} bytes")
        return bytes(data)

    async def _pass_on(self, request: Request, content: bytes) -> Response:
        """Pass a request on that can ask for no call."""
        provider = "anthropic" if "anthropic-version" in request.headers else "openai"
        answer = await self.send(self.build_request(provider, request, content))
        return Response(await self.read_bounded(answer), answer.status_code, _copy_headers(answer.headers))

    def build_request(self, provider: str, request: Request, content: bytes) -> httpx2.Request:
        """Build the request to the API: the same path and headers, keys included, which are kept nowhere."""
        base = self.settings.anthropic if provider == "anthropic" else self.settings.openai
        query = f"?{request.url.query}" if request.url.query else ""
        headers = {**_copy_headers(request.headers), "accept-encoding": "identity"}
        return self._client.build_request(
            request.method, f"{base.rstrip('/')}{request.url.path}{query}", headers=headers, content=content
        )

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the API; the answer is still to be read.

        Raises:
            _PassedThrough: the API answered with an error.
            _Refused: it cannot be reached.
        """
        try:
            answer = await self._client.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise _Refused(502, f"the API cannot be reached: {type(error).__name__}") from None
        if answer.status_code >= 400:
            content = await self.read_bounded(answer)
            raise _PassedThrough(Response(content, answer.status_code, _copy_headers(answer.headers)))
        return answer

    async def read_bounded(self, answer: httpx2.Response) -> bytes:
        """Read an answer whole.

        Raises:
            _Refused: it is too long, or breaks off.
        """
        data = bytearray()
        async for piece in self.read_pieces(answer):
            data += piece
        return bytes(data)

    async def read_pieces(self, answer: httpx2.Response) -> AsyncIterator[bytes]:
        """Yield the pieces of an answer; errors as in :meth:`read_bounded`."""
        size = 0
        try:
            async for piece in answer.aiter_bytes():
                size += len(piece)
                if size > self.settings.most_bytes:
                    raise _Refused(502, f"the answer of the API has more than {self.settings.most_bytes:,} bytes")
                yield piece
        except httpx2.HTTPError as error:
            raise _Refused(502, f"the answer of the API broke off: {type(error).__name__}") from None
        finally:
            await answer.aclose()

    # -- rules --------------------------------------------------------------------------------------------------

    def replay(self, trace: Trace) -> GuardState:
        """Return the state after a conversation."""
        state = self.guard.start()
        for event in trace.events:
            if isinstance(event, Result) and self.settings.key is not None:
                event = replace(event, value=_check_signature(self.settings.key, event))
            state = state.after(event)
        return state

    def can_stream_texts(self, state: GuardState) -> bool:
        """Return whether texts can be passed on before the end of an answer, since none can be refused."""
        return not self._judges_texts and state.may_stop(final=False).runs


def judge_answer(state: GuardState, dialect: Dialect, answer: Body) -> _Verdict:
    """Judge the texts and calls of an answer, each after those before it.

    Raises:
        _Refused: it cannot be read.
    """
    verdict = _Verdict()
    try:
        parts = dialect.read_answer(answer)
    except (LookupError, TypeError, AttributeError, TraceError) as error:
        raise _Refused(502, f"the answer of the API cannot be read: {type(error).__name__}: {error}") from None
    for part in parts:
        event = part if isinstance(part, Said) else part.call
        if event is None:
            assert isinstance(part, AskedCall)
            decision = Decision("block", reason=f"The arguments of {part.tool} are no JSON object.")
        elif isinstance(event, Said):
            decision = state.check_said(event)
        else:
            decision = state.check(event)
        if event is not None and decision.runs:
            state = state.after(event)
            verdict.has_calls |= isinstance(part, AskedCall)
            continue
        verdict.rules += decision.rules
        if isinstance(part, AskedCall):
            verdict.refused.append((part, format_refusal(decision)))
        else:
            verdict.reason = verdict.reason or decision.message
    if not any(isinstance(part, AskedCall) for part in parts) and not verdict.reason and not dialect.is_paused(answer):
        end = state.may_stop(final=False)
        if not end.runs:
            verdict.reason = end.message
            verdict.rules += end.rules
    return verdict


@dataclass
class _GuardedExchange:
    """A request with its answer, for which the model may be asked several times."""

    endpoint: Endpoint
    dialect: Dialect
    asked: Body
    request: Request
    usage: Body = field(default_factory=dict)
    attempts: int = 0
    rules: list[str] = field(default_factory=list)
    begun: float = field(default_factory=time.perf_counter)
    waited: float = 0.0

    async def respond(self) -> Response:
        """Answer the request."""
        state, asked = self._prepare()
        pieces = self._stream(state, asked)
        try:
            if not asked.get("stream"):
                answer = await self._settle(state, asked)
                self.endpoint.telemetry.record(self)
                return JSONResponse(answer)
            first = await anext(pieces)  # an error before it has a status of its own
        except (_Refused, _PassedThrough):
            self.endpoint.telemetry.record(self)
            raise

        async def join() -> AsyncIterator[bytes]:
            yield first
            try:
                async for piece in pieces:
                    yield piece
            except _Refused as error:
                yield _write_event("error", self.dialect.write_error(str(error)))
            finally:
                self.endpoint.telemetry.record(self)

        return StreamingResponse(join(), media_type="text/event-stream", headers={"cache-control": "no-cache"})

    def _prepare(self) -> tuple[GuardState, Body]:
        dialect = self.dialect
        try:
            if obstacle := dialect.find_obstacle(self.asked):
                raise _Refused(400, obstacle)
            state = self.endpoint.replay(dialect.read_past(self.asked))
            asked = dialect.restore_request(self.asked)
            return state, dialect.restrict_tools(asked, lambda tool: not state.allows_tool(tool))
        except ForcedToolError as error:
            decision = Decision("block", reason=f"tool_choice demands {error.tool}, which cannot be called now")
            raise _Refused(403, decision.message) from None
        except (TraceError, LookupError, TypeError, AttributeError) as error:
            raise _Refused(400, f"the conversation cannot be read: {error}") from None

    async def _send(self, asked: Body) -> httpx2.Response:
        self.attempts += 1
        data = json.dumps(asked, ensure_ascii=False).encode()
        request = self.endpoint.build_request(self.dialect.provider, self.request, data)
        begun = time.perf_counter()
        try:
            return await self.endpoint.send(request)
        finally:
            self.waited += time.perf_counter() - begun

    async def _settle(self, state: GuardState, asked: Body, again: int | None = None) -> Body:
        """Ask until an answer is accepted, in part or whole; what is left of it."""
        left = self.endpoint.settings.retries if again is None else again
        while True:
            response = await self._send({**asked, "stream": False} if asked.get("stream") else asked)
            begun = time.perf_counter()
            data = await self.endpoint.read_bounded(response)
            self.waited += time.perf_counter() - begun
            try:
                answer = json.loads(data)
            except (ValueError, RecursionError):
                raise _Refused(502, "the answer of the API is no JSON") from None
            verdict = judge_answer(state, self.dialect, answer)
            settled = self._apply(verdict, state, answer, last=left == 0)
            if settled is not None:
                return self.dialect.mark_calls(settled)
            asked, left = self._ask_again(asked, answer, verdict), left - 1

    def _apply(self, verdict: _Verdict, state: GuardState, answer: Body, *, last: bool) -> Body | None:
        """Return what is passed on of an answer; None if the model is to be asked again."""
        self.rules += verdict.rules
        if verdict.rules:
            _log.info("refused: %s", ", ".join(dict.fromkeys(verdict.rules)))
        if verdict.is_accepted:
            return add_usage(answer, self.usage)
        note = " ".join(f"[{one.tool} was not called: {reason}]" for one, reason in verdict.refused)
        if verdict.has_calls and not verdict.reason:
            answer = add_usage(answer, self.usage)
            return self.dialect.drop_calls(answer, {one.place for one, _ in verdict.refused}, note)
        if not last:
            return None
        if verdict.reason or not state.may_stop(final=False).runs:
            raise _Refused(403, verdict.reason or note)
        return add_usage(self.dialect.replace_by_text(answer, note), self.usage)

    def _ask_again(self, asked: Body, answer: Body, verdict: _Verdict) -> Body:
        self.usage = add_usage(answer, self.usage).get("usage") or {}
        refusals = {one.id: reason for one, reason in verdict.refused}
        return self.dialect.ask_again(asked, answer, refusals, "" if refusals else verdict.reason)

    # -- streams ------------------------------------------------------------------------------------------------

    async def _stream(self, state: GuardState, asked: Body) -> AsyncIterator[bytes]:
        """Yield the events of an answer: texts as they come where none can be refused, calls when they are judged."""
        live = self.endpoint.can_stream_texts(state)
        reader, held, begun = self.dialect.reader(), list[bytes](), False
        response = await self._send(asked)
        waiting = time.perf_counter()
        async for raw in _split_events(self.endpoint.read_pieces(response)):
            event = _read_event(raw)
            if event is not None and "error" in (event.get("type"), *event):  # the API's own, after which nothing comes
                yield raw
                return
            try:
                passes = live and not held
                if event is not None:
                    passes = reader.add_event(event) and passes
            except (LookupError, TypeError, ValueError) as error:
                raise _Refused(502, f"the stream of the API cannot be read: {type(error).__name__}") from None
            if passes:
                begun = True
                yield raw
            else:
                held.append(raw)
        self.waited += time.perf_counter() - waiting
        if not reader.ended:
            raise _Refused(502, "the answer of the API broke off")
        passed = reader.passed if begun else 0
        answer = reader.answer
        verdict = judge_answer(state, self.dialect, answer)
        settled = self._apply(verdict, state, answer, last=self.endpoint.settings.retries == 0)
        if settled is None:
            again = self._ask_again(asked, answer, verdict)
            settled = await self._settle(state, again, self.endpoint.settings.retries - 1)
            settled = self.dialect.keep_beginning(answer, passed, settled) if begun else settled
        else:
            settled = self.dialect.mark_calls(settled)
        if settled is answer and not reader.is_split:
            yield b"".join(held)
            return
        for name, data in self.dialect.write_rest(settled, passed, begun=begun):
            yield _write_event(name, data)
        if not name:
            yield b"data: [DONE]\n\n"


async def _split_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split a stream at the empty lines between its events."""
    rest = bytearray()
    async for piece in pieces:
        looked_at = max(0, len(rest) - 1)
        rest += piece.replace(b"\r", b"")  # which can only end a line
        while (end := rest.find(b"\n\n", looked_at)) >= 0:
            yield bytes(rest[: end + 2])
            del rest[: end + 2]
            looked_at = 0
    if rest.strip():
        yield bytes(rest)


def _read_event(raw: bytes) -> Body | None:
    """Read the data of an event; None if it has none, such as a comment or the mark of the end."""
    data = b"\n".join(line[5:].strip() for line in raw.split(b"\n") if line.startswith(b"data:"))
    if not data or data == b"[DONE]":
        return None
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise _Refused(502, "the stream of the API has an event that is no JSON") from None
    return event if isinstance(event, dict) else None


def _read_object(content: bytes) -> Body:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise _Refused(400, "the request is no JSON object")
    return body


def _write_event(name: str, data: Body) -> bytes:
    head = f"event: {name}\n" if name else ""
    data = {"type": name, **data} if name else data
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _copy_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OWN_HEADERS}


def _check_signature(key: bytes, result: Result) -> str:
    """Return a result without its signature.

    Raises:
        _Refused: it is not signed by the key.
    """
    text, sign, _ = str(result.value).rpartition(_SIGNATURE)
    if not sign or not hmac.compare_digest(sign_result(key, result.id, text), str(result.value)):
        raise _Refused(403, f"the result of {result.tool} (call {result.id}) is not signed by the tools' key")
    return text


async def _refuse_path(request: Request) -> Response:
    paths = ", ".join([*(one.path for one in DIALECTS), *(path for _, path in _PASSED if "{" not in path)])
    return JSONResponse(
        {"error": {"message": f"{request.url.path} is not guarded, so it is closed; open: {paths}"}}, 404
    )


class EndpointTelemetry:
    """Metrics and spans of OpenTelemetry, where its API is installed: no texts, no arguments, no keys."""

    def __init__(self, tracer: Tracer | None = None, meter: Meter | None = None) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError:
            self._tracer = None
            return
        meter = meter or metrics.get_meter("formal_llm")
        self._tracer = tracer or trace.get_tracer("formal_llm")
        self._refusals = meter.create_counter("formal_llm.guard.refusals", description="Refusals by rule")
        self._attempts = meter.create_counter("formal_llm.guard.attempts", description="Requests to the API")
        self._overhead = meter.create_histogram("formal_llm.guard.overhead", "s", "Seconds besides waiting for the API")

    def record(self, exchange: _GuardedExchange) -> None:
        """Record an exchange that has ended."""
        if self._tracer is None:
            return
        model = str(exchange.asked.get("model", ""))
        about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model,
                 "gen_ai.provider.name": exchange.dialect.provider}  # fmt: skip
        self._attempts.add(exchange.attempts, about)
        self._overhead.record(time.perf_counter() - exchange.begun - exchange.waited, about)
        for rule in exchange.rules:
            self._refusals.add(1, {"formal_llm.guard.rule": rule})
        lasted = int((time.perf_counter() - exchange.begun) * 1e9)
        now = time.time_ns()
        refused: Sequence[str] = tuple(dict.fromkeys(exchange.rules))
        span = self._tracer.start_span(f"chat {model}", start_time=now - lasted, attributes={
            **about, "formal_llm.guard.attempts": exchange.attempts, "formal_llm.guard.refused": refused})  # fmt: skip
        span.end(now)
