"""The common base of all adapters: models behind an HTTP interface.

An adapter defines how a question is sent with its SDK's client, and how the response is read. Sending is written once
for the synchronous and the asynchronous client, since both accept the same call. The SDK handles retries after
temporary failures, the waits between them, timeouts and connections, according to the client's settings.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

from formal_llm.errors import InvalidAnswer, ProviderError, UnreadableResponse
from formal_llm.llms.generation import ToolOffer
from formal_llm.llms.hosted.bounds import OutOfBounds, RequestBounds
from formal_llm.llms.hosted.settings import given, plain_address
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.schemas import is_portable, portable
from formal_llm.llms.usage import TokenUsage

if TYPE_CHECKING:
    import anthropic
    import httpx2
    import openai

    Client = openai.OpenAI | anthropic.Anthropic
    AsyncClient = openai.AsyncOpenAI | anthropic.AsyncAnthropic


#: The maximum number of concurrent requests of one client, before another client is created.
PER_CLIENT = 32


@dataclass(slots=True, eq=False)
class Lane:
    """An asynchronous client, the number of its requests in flight, and whether it gets no more of them."""

    client: AsyncClient
    in_flight: int = 0
    left: bool = False


@dataclass(slots=True, eq=False)
class _Loop:
    """The lanes of an event loop, and the generator that closes their clients before the loop ends."""

    lanes: list[Lane] = field(default_factory=list)
    closing: AsyncGenerator[None, None] | None = None


class Lanes:
    """A pool of asynchronous clients.

    Connections cannot be shared between event loops, so each loop has its own clients. They are closed by
    :meth:`aclose`, or when ``asyncio.run`` or ``asyncio.Runner`` ends the loop.

    A loop has more than one client if many requests are in flight: an SDK's client keeps few connections open, and
    examines all of them at each request.

    Args:
        make: creates a client.
        given: the user's client, which is then the only one and stays open.
    """

    def __init__(self, make: Callable[[], AsyncClient], given: AsyncClient | None = None) -> None:
        self._make = make
        self._given = given
        self._loops: WeakKeyDictionary[Any, _Loop] = WeakKeyDictionary()

    @property
    def in_flight(self) -> list[int]:
        """The number of requests in flight of each client of the running event loop."""
        import asyncio

        here = self._loops.get(asyncio.get_running_loop())
        return [] if here is None else [lane.in_flight for lane in here.lanes]

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncClient]:
        """Lend a client for a request: the least busy one of the running event loop, or a new one."""
        lane = await self._get_lane()
        lane.in_flight += 1
        try:
            yield lane.client
        finally:
            lane.in_flight -= 1
            if lane.left:
                await self._close_lane(lane)

    async def aclose(self) -> None:
        """Close the clients of the running event loop, busy ones when they are idle; the user's client stays open.

        Later questions get a new one: others on this loop may continue.
        """
        import asyncio

        here = self._loops.get(asyncio.get_running_loop())
        if here is not None and here.closing is not None:
            await here.closing.aclose()

    async def _get_lane(self) -> Lane:
        import asyncio

        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            for other in [other for other in self._loops if other.is_closed()]:
                del self._loops[other]  # a client refers to its loop, so neither would ever be garbage-collected
            here = self._loops[loop] = _Loop()
            # An event loop closes the asynchronous generators that were started on it when it ends.
            here.closing = self._closed_at_end(here)
            await anext(here.closing)
        lane = min(here.lanes, key=lambda one: one.in_flight, default=None)
        if lane is None or (lane.in_flight >= PER_CLIENT and self._given is None):
            lane = Lane(self._given or self._make())
            here.lanes.append(lane)
        return lane

    async def _closed_at_end(self, here: _Loop) -> AsyncGenerator[None, None]:
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            if self._loops.get(loop) is here:
                del self._loops[loop]
            for lane in here.lanes:
                lane.left = True
                await self._close_lane(lane)

    async def _close_lane(self, lane: Lane) -> None:
        if not lane.in_flight and lane.client is not self._given:
            await lane.client.close()


def _recreate_llm(kind: type[HostedLLM], args: tuple[object, ...], kwargs: dict[str, object]) -> HostedLLM:
    return kind(*args, **kwargs)  # type: ignore[arg-type]


class HostedLLM(ABC):
    """A model behind an HTTP interface.

    Args:
        name: the provider string, ``provider:MODEL``.
        client: the SDK's synchronous client, with an HTTP client that enforces ``bounds``.
        settings: other settings that affect the answers, as JSON data: sampling settings, limits.
        async_client: the user's asynchronous client; None to create one for each event loop.
        logprobs: whether to request token probabilities; None: until the server refuses them, with a warning.
        bounds: the bounds of a question; None for those of the user's clients.

    Attributes:
        settings: those that are not None, and the address.
        asks_logprobs: whether the next request asks for token probabilities.
    """

    _arguments: tuple[tuple[object, ...], dict[str, object]]
    #: The environment variables with the key and the address, for messages; empty if there is none.
    key_variable: ClassVar[str]
    url_variable: ClassVar[str]
    #: What a model must support to be used with this adapter, for the message about a refused request.
    needs: ClassVar[str] = "the model must know structured output"
    #: The batch interface of the provider (:mod:`formal_llm.llms.hosted.batches`); empty if there is none.
    batches: ClassVar[str] = ""

    def __init__(
        self,
        name: str,
        client: Client,
        settings: Mapping[str, object],
        *,
        async_client: AsyncClient | None = None,
        logprobs: bool | None = False,
        bounds: RequestBounds | None = None,
    ) -> None:
        self.name = name
        self.bounds = bounds
        self._client = client
        self._process = os.getpid()
        self._parents: list[object] = []
        self.settings: dict[str, object] = given(address=plain_address(client.base_url), **settings)
        self.asks_logprobs = logprobs is not False
        self._may_drop_logprobs = logprobs is None
        self._lanes = Lanes(self._make_async_client, async_client)

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Keep the arguments, from which a copy is made in another process."""
        made = super().__new__(cls)
        made._arguments = args, kwargs
        return made

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the arguments; the client is made anew, with the key of the environment there unless one was given."""
        args, kwargs = self._arguments
        if any(kwargs.get(name) is not None for name in ("client", "async_client")):
            raise TypeError(f"{self.name} has a client of yours, which cannot be pickled")
        return _recreate_llm, (type(self), args, kwargs), {"name": self.name}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    reads = frozenset({"chat"})

    @property
    def identity(self) -> dict[str, object]:
        """The settings that determine the answers, as JSON data: part of the key of an answer cache."""
        return {"llm": self.name, **self.settings}

    @property
    def client(self) -> Any:
        """The SDK's synchronous client."""
        if self._process != os.getpid() and self.bounds is not None:
            # A forked process shares its parent's connections, and would read the answers to its parent's questions.
            # The parent's client is kept untouched, since closing it would send data on those connections.
            self._parents.append(self._client)
            self._client, self._process = self._make_client(), os.getpid()
        return self._client

    def for_batches(self, transport: httpx2.BaseTransport) -> Self:
        """Return the same model whose questions go through a transport instead of the network, each of them once."""
        import httpx2

        twin = object.__new__(type(self))
        client = self.client.with_options(http_client=httpx2.Client(transport=transport), max_retries=0)
        twin.__dict__ |= {**self.__dict__, "_client": client, "bounds": None, "settings": {**self.settings}}
        return twin

    # -- asking -------------------------------------------------------------------------------------------------

    def choose(self, question: Question) -> Answer:
        """Answer ``question`` with one request (which the SDK repeats after temporary failures).

        Raises:
            InvalidAnswer: the model answered something else, refused, or did not finish; has the usage.
            ProviderError: the server gave no answer: no connection, a refused key, an unknown model, a rate limit.
        """
        _ = question.messages  # computed outside of the try, since an error in the wording is not the provider's
        with self._scrub_errors(), self._run_within_bounds():
            return self._request_answer(question)

    async def achoose(self, question: Question) -> Answer:
        """Like :meth:`choose`, asynchronously."""
        _ = question.messages
        with self._scrub_errors():
            async with self._awaited() as client:
                return await self._arequest_answer(client, question)

    def _request_answer(self, question: Question) -> Answer:
        while True:
            asked_logprobs = self.asks_logprobs
            try:
                response = self._send_question(self.client, question)
            except Exception as error:
                self._raise_failure(error, asked_logprobs)
            else:
                return self._extract_answer(question, response)

    async def _arequest_answer(self, client: Any, question: Question) -> Answer:
        while True:
            asked_logprobs = self.asks_logprobs
            try:
                response = await self._send_question(client, question)
            except Exception as error:
                self._raise_failure(error, asked_logprobs)
            else:
                return self._extract_answer(question, response)

    @asynccontextmanager
    async def _awaited(self) -> AsyncIterator[Any]:
        """Open the asynchronous client for one question, within the bounds."""
        async with self._lanes.client() as client:
            with self._run_within_bounds():
                async with self._in_time(self.bounds.deadline if self.bounds is not None else None):
                    yield client

    def _run_within_bounds(self, until: float | None = None) -> AbstractContextManager[None]:
        """Run the block as one question, or as a part of one that must end by ``until``."""
        return self.bounds.running(until) if self.bounds is not None else nullcontext()

    def _scrub_errors(self) -> ScrubbedErrors:
        """Keep keys out of the errors that leave the block; no local variable around it may hold a response."""
        return ScrubbedErrors(_find_key(self._client))

    @asynccontextmanager
    async def _in_time(self, seconds: float | None) -> AsyncIterator[None]:
        """Limit the time of the block.

        Raises:
            ProviderError: the block took longer.
        """
        import asyncio

        try:
            async with asyncio.timeout(seconds) as limit:
                yield
        except TimeoutError as error:
            if not limit.expired() or self.bounds is None:
                raise
            _scrub_error(error, None)
            raise provider_error(self, OutOfBounds(self.bounds.late())) from error

    async def aclose(self) -> None:
        """Close the connections opened on the running event loop; the user's client stays open."""
        await self._lanes.aclose()

    def _raise_failure(self, error: Exception, asked_logprobs: bool) -> None:
        """Raise the error for a failed request; return if the request should be sent again without probabilities."""
        # A page that is no JSON, or that is nested too deeply, raises one of the last two.
        import httpx2  # installed with the SDKs, which let some of its errors pass

        if not isinstance(error, (self._sdk_error(), httpx2.RequestError, ValueError, RecursionError)):
            raise error
        if not (asked_logprobs and self._may_drop_logprobs and refuses_logprobs(error)):
            raise provider_error(self, error) from error
        if self.asks_logprobs:  # if several requests are refused at once, only the first one warns
            self.asks_logprobs = False
            warnings.warn(
                f"{self.name} gives no token probabilities ({shown_words(error, self.client)}): it is asked without "
                "them from now on, and its answers have no probabilities",
                stacklevel=3,
            )

    def _extract_answer(self, question: Question, response: Any) -> Answer:
        try:
            return self._read_answer(question, response)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # The SDKs do not check responses: an HTML page is returned as a string, missing fields stay missing.
            raise self._make_unreadable_error(error, response) from error

    def _make_unreadable_error(self, error: Exception, response: object) -> ProviderError:
        """Create the error for a response that cannot be read, with its usage if that can be."""
        failure = provider_error(self, error)
        with suppress(AttributeError, KeyError, TypeError, ValueError):
            failure.usage = self._count_usage(response)
        return failure

    # -- implemented by adapters --------------------------------------------------------------------------------

    @abstractmethod
    def _send_question(self, client: Any, question: Question) -> Any:
        """Make the request; return the SDK's response, or an awaitable for an asynchronous client."""

    @abstractmethod
    def _read_answer(self, question: Question, response: Any) -> Answer:
        """Read the answer from the SDK's response.

        Raises:
            InvalidAnswer: there is no legal answer; has the usage.
        """

    @abstractmethod
    def _count_usage(self, response: Any) -> TokenUsage:
        """Return the usage that the SDK's response reports."""

    @abstractmethod
    def _make_async_client(self) -> AsyncClient:
        """Create an asynchronous client with the settings of ``client``."""

    @abstractmethod
    def _make_client(self) -> Client:
        """Create a synchronous client with the settings of ``client``."""

    @abstractmethod
    def _sdk_error(self) -> type[Exception]:
        """Return the base class of the SDK's exceptions."""


# -- reading ----------------------------------------------------------------------------------------------------


def chat_data(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Return a chat as JSON data, in the form of OpenAI's chat completions, which most servers accept."""
    return [_message_data(message) for message in messages]


def _message_data(message: Message) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        functions = [(call.id, {"name": call.name, "arguments": call.arguments}) for call in message.calls]
        calls = [{"id": name, "type": "function", "function": function} for name, function in functions]
        return {**data, "content": message.content or None, "tool_calls": calls}
    return {**data, "tool_call_id": message.answers} if message.role == "tool" else data


def tool_data(tool: ToolOffer) -> dict[str, object]:
    """Return a tool as JSON data, in the form of OpenAI's chat completions; strict where its schema permits that."""
    data: dict[str, Any] = {
        "name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)
    }  # fmt: skip
    if is_portable(tool.parameters):
        data |= {"parameters": _shorten_nullable(portable(tool.parameters)), "strict": True}
    return {"type": "function", "function": data}


def _shorten_nullable(schema: Any) -> Any:
    """Write a value that may be null as a list of two types, which all servers of this form accept: fewer tokens."""
    if isinstance(schema, list):
        return [_shorten_nullable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    match schema.get("anyOf"):
        case [{"type": str(kind), **rest}, {"type": "null"}] if not rest:
            return {"type": [kind, "null"], **{key: value for key, value in schema.items() if key != "anyOf"}}
    return {key: _shorten_nullable(value) for key, value in schema.items()}


def token_count(value: object) -> int:
    """Return a number of tokens as reported by a server; anything else counts as 0, since not all servers count."""
    return value if type(value) is int and 0 <= value < 2**53 else 0


def sdk_usage(counted: object, read: str, written: str) -> TokenUsage:
    """Return the usage of one request, from the object of OpenAI's SDK and the names of its two counts."""
    details = getattr(counted, f"{read}_details", None)
    cached, stored = getattr(details, "cached_tokens", None), getattr(details, "cache_write_tokens", None)
    return token_usage(getattr(counted, read, None), getattr(counted, written, None), cached, stored)


def token_usage(read: object, written: object, cached: object = None, cache_written: object = None) -> TokenUsage:
    """Return the usage of one request, from the counts of a server; ``read`` includes the last two."""
    total = token_count(read)
    from_cache = min(token_count(cached), total)
    return TokenUsage(1, total, token_count(written), from_cache, min(token_count(cache_written), total - from_cache))


def invalid(question: Question, problem: str, text: str, usage: TokenUsage) -> InvalidAnswer:
    """Create the error for an answer that is not valid."""
    return InvalidAnswer(problem, [(question.prompt, text)], usage)


# -- failures ---------------------------------------------------------------------------------------------------


def refuses_logprobs(error: Exception) -> bool:
    """Return whether a server refused a request because it asked for token probabilities.

    The message is examined, since the statuses differ (400, 403; 500 for a local server started without them).
    """
    return isinstance(getattr(error, "status_code", None), int) and "logprob" in _find_message(error).casefold()


def provider_error(llm: HostedLLM, error: Exception) -> ProviderError:
    """Create the error for an exception of an SDK or of reading: what failed, and what to do about it."""
    import httpx2

    key, url = llm.key_variable, llm.url_variable
    status = getattr(error, "status_code", None)
    # The text of a connection error is left out: it may quote the request's headers, including the key.
    kind = type(error).__name__  # both SDKs use the same names
    failure: type[ProviderError] = ProviderError
    place = plain_address(getattr(getattr(llm, "client", None), "base_url", ""))
    if isinstance(error, OutOfBounds):
        what = f"{error} (the server is {place})"
    elif kind == "APITimeoutError" or isinstance(error, httpx2.TimeoutException):
        what = f"no answer came in time from the server at {place}; try again, or give a longer timeout"
    elif kind == "APIConnectionError" or isinstance(error, httpx2.RequestError):
        what = (
            f"the server at {place} cannot be reached, or it hung up{_find_reason(error)}; check the network and {url}"
        )
    elif isinstance(error, ReportedError) or kind == "APIError" or (kind == "APIStatusError" and status == 200):
        what, status = f"the server at {place} reported an error in its stream: {shown_words(error, llm.client)}", None
    elif not isinstance(status, int) or status < 400:
        failure = UnreadableResponse
        # The SDKs raise a plain ValueError for arguments that they do not accept.
        detail = f"{kind}: {error}" if type(error) is ValueError else kind
        what = f"the request could not be made, or what came back cannot be read ({detail}); check {url}"
        what += f" and {key}" if key else ""
    elif status in (401, 403):
        what = f"the key was refused for this model; check {key}" if key else "the server refused the request"
    elif status == 404:
        what = f"there is no such model or no such address; check the name of the model and {url}"
    elif status == 429:
        wait = _describe_wait(error, llm) or "wait, or give more max_retries"
        what = f"too many requests, or the quota is used up; {wait}"
    elif status >= 500:
        what = f"the server failed, again and again; {_describe_wait(error, llm) or 'try again later'}"
    else:
        what = f"the request was refused; {llm.needs}"
    server_text = f" (status {status}: {shown_words(error, llm.client)})" if isinstance(status, int) else ""
    key_itself = _find_key(getattr(llm, "client", None))
    _scrub_error(error, key_itself)
    return failure(_redact_key(f"{llm.name}: {what}{server_text}", key_itself), error)


class ReportedError(Exception):
    """An error that a server reports inside of a stream, after its good status."""


class ScrubbedErrors(AbstractContextManager[None]):
    """Removes what may hold a key from the errors of providers that leave the block.

    Their tracebacks begin at the block: frames inside of it hold requests and responses.
    """

    def __init__(self, key: object) -> None:
        self._key = key

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ProviderError):
            if error.cause is not None:
                _scrub_error(error.cause, self._key)
            # Python continues with the traceback that the error has when this returns.
            error.__cause__, error.__context__, error.__traceback__ = error.cause, None, None


def _find_key(client: object) -> object:
    """Return the key of a client, or the token that Anthropic's has instead of one."""
    return getattr(client, "api_key", None) or getattr(client, "auth_token", None)


def _redact_key(text: str, key: object) -> str:
    # A client without a key has a short word instead of it.
    return text.replace(key, "***") if isinstance(key, str) and len(key) > 7 else text


def _scrub_error(error: BaseException, key: object) -> None:
    """Remove from an exception what may hold a key: requests, responses, frames of other libraries, other errors."""
    error.args = (_redact_key(str(error), key),)
    if isinstance(error, UnicodeDecodeError):
        error.object = b""  # the whole body
    kept = getattr(error, "__dict__", {})
    for name, value in kept.items():
        kept[name] = (
            _redact_key(value, key) if isinstance(value, str) else value if isinstance(value, int | float) else None
        )
    error.__traceback__ = error.__cause__ = error.__context__ = None


#: The words of network errors by which their reason is found, and the reason; the first one counts.
_REASONS = (
    (("refused",), "the connection was refused"),
    (("name or service", "nodename", "name resolution", "getaddrinfo", "gaierror", "idna"), "its name is not known"),
    (("certificate", "ssl", "tls"), "its certificate or its encryption was not accepted"),
    (("reset", "aborted", "broken pipe"), "the connection was reset"),
    (("disconnected", "closed", "incomplete", "eof"), "it closed the connection"),
)


def _find_reason(error: BaseException) -> str:
    """Describe why a connection failed, by the errors below; their texts are not shown, since they may hold a key."""
    words, below = "", error.__cause__ or error.__context__
    while below is not None:
        words += f"{type(below).__name__} {below} ".casefold().replace("ssl:default", "")
        below = below.__cause__ or below.__context__
    return next((f": {reason}" for marks, reason in _REASONS if any(mark in words for mark in marks)), "")


def _describe_wait(error: Exception, llm: HostedLLM) -> str:
    """Describe how long the server asked to wait, if that is too long."""
    response = getattr(error, "response", None)
    wait = getattr(response, "extensions", {}).get("formal_llm.wait")
    if wait is None or llm.bounds is None:
        return ""
    bound = f"the deadline of a question is {llm.bounds.deadline:g}"
    return f"it asks to wait {min(wait, 1e9):,.0f} seconds, which is too long ({bound}); try again later"


def _find_message(error: Exception) -> str:
    """Return the server's message: one SDK has it as an attribute, others in the body."""
    message: object = getattr(error, "api_message", None)
    body = getattr(error, "body", None)
    while not message and isinstance(body, dict):
        message = body.get("message") or body.get("detail")
        body = body.get("error")
    message = message or (body if isinstance(body, str) else None)
    return " ".join(str(message or error)[:5000].split())


def shown_words(error: Exception, client: object) -> str:
    """Return the server's message in a form that may be shown: shortened, and without the key."""
    return _redact_key(_find_message(error), _find_key(client))[:300]
