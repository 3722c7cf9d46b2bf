"""Models behind an HTTP interface: what all adapters share.

An adapter defines how a question is sent with its SDK's client, and how the response is read. Sending is written once
for the client that waits and the one that is awaited, since both take the same call. Retries after passing failures,
the waits between them, timeouts and connections are the SDK's work and the client's settings.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from formal_llm.errors import InvalidAnswer, ProviderError, UnreadableResponse
from formal_llm.llms.hosted.bounds import OutOfBounds, RequestBounds
from formal_llm.llms.hosted.settings import given, plain_address
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.usage import TokenUsage

if TYPE_CHECKING:
    import anthropic
    import openai

    Client = openai.OpenAI | anthropic.Anthropic
    AsyncClient = openai.AsyncOpenAI | anthropic.AsyncAnthropic


#: How many requests are in flight through one client, before another is made.
PER_CLIENT = 32


@dataclass(slots=True, eq=False)
class Lane:
    """A client that is awaited, how many requests are in flight through it, and whether it gets no more of them."""

    client: AsyncClient
    in_flight: int = 0
    left: bool = False


@dataclass(slots=True, eq=False)
class _Loop:
    """The lanes of an event loop, and what closes their clients before the loop ends."""

    lanes: list[Lane] = field(default_factory=list)
    closing: AsyncGenerator[None, None] | None = None


class Lanes:
    """Clients that are awaited.

    Connections cannot be shared between event loops, so each has its own clients. They are closed by :meth:`aclose`, or
    by the loop itself when it ends, as ``asyncio.run`` and ``asyncio.Runner`` end theirs.

    Within one loop there is more than one client where many requests are in flight: an SDK's client keeps few
    connections open, and looks through all of them at each request.

    Args:
        make: makes a client.
        given: a client of the user's, the only one then; it stays open.
    """

    def __init__(self, make: Callable[[], AsyncClient], given: AsyncClient | None = None) -> None:
        self._make = make
        self._given = given
        self._loops: WeakKeyDictionary[Any, _Loop] = WeakKeyDictionary()

    @property
    def in_flight(self) -> list[int]:
        """How many requests are in flight through each client of the running event loop."""
        import asyncio

        here = self._loops.get(asyncio.get_running_loop())
        return [] if here is None else [lane.in_flight for lane in here.lanes]

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncClient]:
        """The client for a request: the least busy one of the running event loop, or a new one."""
        lane = await self._lane()
        lane.in_flight += 1
        try:
            yield lane.client
        finally:
            lane.in_flight -= 1
            if lane.left:
                await self._close(lane)

    async def aclose(self) -> None:
        """Close the clients of the running event loop, those in use when they are not any more; the user's stays open.

        Later questions get a new one: others on this loop may continue.
        """
        import asyncio

        here = self._loops.get(asyncio.get_running_loop())
        if here is not None and here.closing is not None:
            await here.closing.aclose()

    async def _lane(self) -> Lane:
        import asyncio

        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            for other in [other for other in self._loops if other.is_closed()]:
                del self._loops[other]  # a client holds its loop, so that neither would ever go by itself
            here = self._loops[loop] = _Loop()
            # A generator that a loop has begun is closed by it when it ends.
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
                await self._close(lane)

    async def _close(self, lane: Lane) -> None:
        if not lane.in_flight and lane.client is not self._given:
            await lane.client.close()


#: Why an answer is none, in the words that the model reads when it is asked again.
REFUSED = "it was refused"
CUT_OFF = "it was cut off at the limit of tokens"
FILTERED = "it was stopped by the content filter"


class HostedLLM(ABC):
    """A model behind an HTTP interface.

    Args:
        name: the provider string, ``provider:MODEL``.
        client: the SDK's client that waits for an answer, with an HTTP client that keeps to ``bounds``.
        settings: what else decides about the answers, as JSON data: sampling settings, limits.
        async_client: a client of the user's to await; None: one is made for each event loop.
        logprobs: whether token probabilities are asked for; None: until the server refuses them, which is warned of.
        bounds: what a question may take; None: what the clients of the user's have it.

    Attributes:
        settings: those that are not None, and the address.
        asks_logprobs: whether the next request asks for token probabilities.
    """

    #: The environment variables with the key and the address, for messages; empty where there is none.
    key_variable: ClassVar[str]
    url_variable: ClassVar[str]
    #: What a model must know to be asked by this adapter, for the message about a refused request.
    needs: ClassVar[str] = "the model must know structured output"

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

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def identity(self) -> dict[str, object]:
        """What the same question is answered alike by, as JSON data: the key of an answer cache."""
        return {"llm": self.name, **self.settings}

    @property
    def client(self) -> Any:
        """The SDK's client that waits."""
        if self._process != os.getpid() and self.bounds is not None:
            # A forked process has its parent's connections, and reads the answers to its parent's questions. The
            # parent's client is kept, untouched: to close it would be to speak on those connections.
            self._parents.append(self._client)
            self._client, self._process = self._make_client(), os.getpid()
        return self._client

    # -- asking -------------------------------------------------------------------------------------------------

    def choose(self, question: Question) -> Answer:
        """Answer ``question`` with one request (the SDK repeats it by itself after passing failures).

        Raises:
            InvalidAnswer: the model answered something else, refused, or did not finish; with what it cost.
            ProviderError: no answer came: no connection, a refused key, an unknown model, a rate limit.
        """
        _ = question.messages  # made here, outside of the try: what fails in the wording is no failure of the provider
        with self._running():
            while True:
                asked_logprobs = self.asks_logprobs
                try:
                    response = self._send(self.client, question)
                except Exception as error:
                    self._failed(error, asked_logprobs)
                else:
                    return self._answer(question, response)

    async def achoose(self, question: Question) -> Answer:
        """As :meth:`choose`, without blocking the event loop."""
        _ = question.messages
        async with self._awaited() as client:
            while True:
                asked_logprobs = self.asks_logprobs
                try:
                    response = await self._send(client, question)
                except Exception as error:
                    self._failed(error, asked_logprobs)
                else:
                    return self._answer(question, response)

    @asynccontextmanager
    async def _awaited(self) -> AsyncIterator[Any]:
        """The client for one question that is awaited, within the bounds."""
        async with self._lanes.client() as client:
            with self._running():
                async with self._in_time(self.bounds.deadline if self.bounds is not None else None):
                    yield client

    def _running(self, until: float | None = None) -> AbstractContextManager[None]:
        """The block is one question, or a part of one that is to end by ``until``."""
        return self.bounds.running(until) if self.bounds is not None else nullcontext()

    @asynccontextmanager
    async def _in_time(self, seconds: float | None) -> AsyncIterator[None]:
        """The block takes so long at most.

        Raises:
            ProviderError: it took longer.
        """
        import asyncio

        try:
            async with asyncio.timeout(seconds) as limit:
                yield
        except TimeoutError as error:
            if not limit.expired() or self.bounds is None:
                raise
            raise provider_error(self, OutOfBounds(self.bounds.late())) from error

    async def aclose(self) -> None:
        """Close the connections that were opened on the running event loop; a client of the user's stays open."""
        await self._lanes.aclose()

    def _failed(self, error: Exception, asked_logprobs: bool) -> None:
        """Raise what a failed request means; return if it is worth sending again without asking for probabilities."""
        # A page that is no JSON, or that is nested too deeply, comes as one of the last two.
        if not isinstance(error, (self._sdk_error(), ValueError, RecursionError)):
            raise error
        if not (asked_logprobs and self._may_drop_logprobs and refuses_logprobs(error)):
            raise provider_error(self, error) from error
        if self.asks_logprobs:  # of many requests that are refused at once, the first one decides
            self.asks_logprobs = False
            warnings.warn(
                f"{self.name} gives no token probabilities ({shown_words(error, self.client)}): it is asked without "
                "them from now on, and its answers have no probabilities",
                stacklevel=3,
            )

    def _answer(self, question: Question, response: Any) -> Answer:
        try:
            return self._read(question, response)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            # The SDKs do not check a response: a page of HTML comes through as a string, missing fields stay missing.
            raise provider_error(self, error) from error

    # -- what an adapter knows ----------------------------------------------------------------------------------

    @abstractmethod
    def _send(self, client: Any, question: Question) -> Any:
        """Make the request: the SDK's response, or from a client that is awaited its awaitable."""

    @abstractmethod
    def _read(self, question: Question, response: Any) -> Answer:
        """The answer in the SDK's response.

        Raises:
            InvalidAnswer: there is none that is legal; with what it cost.
        """

    @abstractmethod
    def _make_async_client(self) -> AsyncClient:
        """A client that is awaited, with the settings of ``client``."""

    @abstractmethod
    def _make_client(self) -> Client:
        """A client that waits, with the settings of ``client``."""

    @abstractmethod
    def _sdk_error(self) -> type[Exception]:
        """The base of the exceptions of the SDK."""


# -- reading ----------------------------------------------------------------------------------------------------


def chat_data(messages: Sequence[Message]) -> list[dict[str, str]]:
    """A chat as JSON data, in the form that all servers know."""
    return [message._asdict() for message in messages]


def token_count(value: object) -> int:
    """A number of tokens as a server reports it; what is none counts as 0 (not every server counts)."""
    return value if type(value) is int and 0 <= value < 2**53 else 0


def sdk_usage(counted: object, read: str, written: str) -> TokenUsage:
    """What one request cost, from the object of OpenAI's SDK and the names of its two counts."""
    details = getattr(counted, f"{read}_details", None)
    cached, stored = getattr(details, "cached_tokens", None), getattr(details, "cache_write_tokens", None)
    return token_usage(getattr(counted, read, None), getattr(counted, written, None), cached, stored)


def token_usage(read: object, written: object, cached: object = None, cache_written: object = None) -> TokenUsage:
    """What one request cost, from what a server reports; ``read`` includes the other two."""
    total = token_count(read)
    from_cache = min(token_count(cached), total)
    return TokenUsage(1, total, token_count(written), from_cache, min(token_count(cache_written), total - from_cache))


def invalid(question: Question, problem: str, said: str, usage: TokenUsage) -> InvalidAnswer:
    """The error for an answer that is none."""
    return InvalidAnswer(problem, [(question.prompt, said)], usage)


# -- failures ---------------------------------------------------------------------------------------------------


def refuses_logprobs(error: Exception) -> bool:
    """Whether a server refused a request because it asked for token probabilities.

    What counts is the server's message: the statuses differ (400, 403; 500 at a local one started without them).
    """
    return isinstance(getattr(error, "status_code", None), int) and "logprob" in _said(error).casefold()


def provider_error(llm: HostedLLM, error: Exception) -> ProviderError:
    """What failed and what to do about it, for an exception of an SDK or from reading what came back."""
    key, url = llm.key_variable, llm.url_variable
    status = getattr(error, "status_code", None)
    # A connection error's own words are left out: they may quote the request's headers, and the key with them.
    kind = type(error).__name__  # both SDKs name theirs alike
    failure: type[ProviderError] = ProviderError
    if isinstance(error, OutOfBounds):
        what = str(error)
    elif kind == "APITimeoutError":
        what = "no answer came in time; try again, or give a longer timeout"
    elif kind == "APIConnectionError":
        place = plain_address(getattr(llm.client, "base_url", ""))
        what = f"the server at {place} cannot be reached, or it hung up; check the network and {url}"
    elif not isinstance(status, int) or status < 400:
        failure = UnreadableResponse
        # The SDKs report by a plain ValueError what they do not take.
        detail = f"{kind}: {error}" if type(error) is ValueError else kind
        what = f"the request could not be made, or what came back cannot be read ({detail}); check {url}"
        what += f" and {key}" if key else ""
    elif status in (401, 403):
        what = f"the key was refused for this model; check {key}" if key else "the server refused the request"
    elif status == 404:
        what = f"there is no such model or no such address; check the name of the model and {url}"
    elif status == 429:
        what = f"too many requests, or the quota is used up; {_wait(error, llm) or 'wait, or give more max_retries'}"
    elif status >= 500:
        what = f"the server failed, again and again; {_wait(error, llm) or 'try again later'}"
    else:
        what = f"the request was refused; {llm.needs}"
    said = f" (status {status}: {shown_words(error, llm.client)})" if isinstance(status, int) else ""
    return failure(f"{llm.name}: {what}{said}", error)


def _wait(error: Exception, llm: HostedLLM) -> str:
    """How long the server asked to wait, where that was too long to be waited for."""
    response = getattr(error, "response", None)
    wait = getattr(response, "extensions", {}).get("formal_llm.wait")
    if wait is None or llm.bounds is None:
        return ""
    bound = f"the deadline of a question is {llm.bounds.deadline:g}"
    return f"it asks to wait {min(wait, 1e9):,.0f} seconds, which is too long ({bound}); try again later"


def _said(error: Exception) -> str:
    """The server's own words: one SDK has them as an attribute, others in the body."""
    said: object = getattr(error, "api_message", None)
    body = getattr(error, "body", None)
    while not said and isinstance(body, dict):
        said = body.get("message") or body.get("detail")
        body = body.get("error")
    said = said or (body if isinstance(body, str) else None)
    return " ".join(str(said or error)[:5000].split())


def shown_words(error: Exception, client: object) -> str:
    """The server's own words as they may be shown: not all of a flood, and without the key."""
    said, key = _said(error), getattr(client, "api_key", None)
    return (said.replace(key, "***") if isinstance(key, str) and len(key) > 7 else said)[:300]
