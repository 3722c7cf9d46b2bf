"""Free text and objects from models behind an HTTP interface: what the adapters that write share.

Waiting and awaited, whole and piece by piece differ in how a response is waited for, and in nothing else: what is sent,
what to do when it is refused, and how what comes is read are written once.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Any

from formal_llm.errors import ProviderError
from formal_llm.llms.awaited import AsyncStream
from formal_llm.llms.generation import Generated, GeneratedObject, Messages, Stream, chat
from formal_llm.llms.hosted.adapter import HostedLLM, provider_error, token_usage
from formal_llm.llms.hosted.text_request import Part, TextRequest, without_what_was_refused
from formal_llm.llms.schemas import Schema, check_schema
from formal_llm.llms.stops import Cutter, first_stop
from formal_llm.llms.usage import TokenUsage

#: How many more parts of a stream are read for what it cost, where a stop ended it.
_MORE = 3


class HostedText(HostedLLM):
    """A hosted model that also writes free text (:class:`~formal_llm.llms.generation.TextLLM`)."""

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What the model writes next, with one request (the SDK repeats it by itself after passing failures).

        A model that refuses a temperature, or stops, is asked again without: stops are then cut off here, and that it
        takes no temperature is warned of.

        Raises:
            ProviderError: no answer came: no connection, a refused key, an unknown model, a rate limit.
        """
        return self._written(TextRequest(chat(messages), max_tokens, tuple(stop), temperature))

    async def agenerate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """As :meth:`generate`, without blocking the event loop."""
        return await self._awritten(TextRequest(chat(messages), max_tokens, tuple(stop), temperature))

    def generate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """The object that the model writes next, held to a schema by its provider and checked here.

        The bounds of texts and numbers in the schema are checked here alone: not all providers know them.

        Raises:
            InvalidAnswer: what was written does not keep the schema: it was cut off, refused, or its provider did not
                hold it.
            ProviderError: no answer came; also where the model knows no structured output.
            ValueError: the schema is none that is known (:mod:`formal_llm.llms.schemas`).
        """
        check_schema(schema)
        made = self._written(TextRequest(chat(messages), max_tokens, (), temperature, schema=schema))
        return GeneratedObject.read(made.text, schema, made.usage, chat(messages)[-1].content)

    async def agenerate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """As :meth:`generate_object`, without blocking the event loop."""
        check_schema(schema)
        made = await self._awritten(TextRequest(chat(messages), max_tokens, (), temperature, schema=schema))
        return GeneratedObject.read(made.text, schema, made.usage, chat(messages)[-1].content)

    # -- as a whole ---------------------------------------------------------------------------------------------

    def _written(self, request: TextRequest) -> Generated:
        """What the model writes, and what it cost."""
        with self._running():
            response = self._opened(request)
        return self._whole(response, request)

    async def _awritten(self, request: TextRequest) -> Generated:
        async with self._awaited() as client:
            response = await self._aopened(client, request)
        return self._whole(response, request)

    def _opened(self, request: TextRequest) -> Any:
        while True:
            try:
                return self._send_text(self.client, request)
            except Exception as error:
                request = self._less(error, request)

    async def _aopened(self, client: Any, request: TextRequest) -> Any:
        while True:
            try:
                return await self._send_text(client, request)
            except Exception as error:
                request = self._less(error, request)

    def _less(self, error: Exception, request: TextRequest) -> TextRequest:
        """The request to make after one that failed, less what was refused.

        Raises:
            ProviderError: nothing else can be tried.
        """
        less = without_what_was_refused(error, request)
        if less is None:
            self._failed(error, False)
            raise error
        if less.temperature != request.temperature:
            warnings.warn(f"{self.name} takes no temperature; it writes at its own", stacklevel=4)
        return less

    def _whole(self, response: Any, request: TextRequest) -> Generated:
        part = self._reads(self._read_whole, response, request)
        found = first_stop(part.text, request.stop)
        text, ended = (part.text, part.ended) if found is None else (part.text[: found[0]], found[1])
        return Generated(text, part.usage or token_usage(None, None), ended)

    def _reads(self, read: Callable[[Any, TextRequest], Part], came: Any, request: TextRequest) -> Part:
        """The contents of a response, or of a part of a stream.

        Raises:
            ProviderError: it cannot be read.
        """
        try:
            part = read(came, request)
            if not isinstance(part.text, str):
                raise TypeError("what a model writes is a text")
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise provider_error(self, error) from error
        return part

    # -- piece by piece -----------------------------------------------------------------------------------------

    def _told(self, request: TextRequest) -> Stream:
        """What a request writes, piece by piece, and then the whole.

        Raises:
            ProviderError: no answer came, or it broke off.
        """
        coming = _Coming(self, request)
        end = self.bounds.end() if self.bounds is not None else None
        with self._running(end):
            response = self._opened(request)
        try:
            events = iter(response)
            while not coming.enough:
                with self._running(end), self._told_errors():  # the caller may do anything in between
                    if (event := next(events, None)) is None:
                        break
                if piece := coming.take(event):
                    yield piece
        finally:
            response.close()
        yield from coming.close()

    async def _atold(self, request: TextRequest) -> AsyncStream:
        """As :meth:`_told`, without blocking the event loop."""
        coming = _Coming(self, request)
        end = self.bounds.end() if self.bounds is not None else None

        @asynccontextmanager
        async def part() -> AsyncIterator[None]:
            with self._running(end), self._told_errors():
                async with self._in_time(None if end is None else end - monotonic()):
                    yield

        async with self._lanes.client() as client:
            async with part():
                response = await self._aopened(client, request)
            try:
                events = aiter(response)
                while not coming.enough:
                    async with part():
                        if (event := await anext(events, None)) is None:
                            break
                    if piece := coming.take(event):
                        yield piece
            finally:
                await response.close()
        for last in coming.close():
            yield last

    @contextmanager
    def _told_errors(self) -> Iterator[None]:
        """What goes wrong while a stream is read, as an error of ours."""
        import httpx2  # comes with the SDKs, which are imported when a model is made

        try:
            yield
        except ProviderError:
            raise
        except httpx2.RequestError as error:  # not all SDKs wrap it in an error of their own
            raise provider_error(self, error) from error
        except Exception as error:
            self._failed(error, False)
            raise

    # -- what an adapter knows ----------------------------------------------------------------------------------

    @abstractmethod
    def _read_part(self, event: Any, request: TextRequest) -> Part:
        """The contents of a part of the SDK's stream."""

    def _read_whole(self, response: Any, request: TextRequest) -> Part:
        """The contents of the SDK's response."""
        text, usage = self._read_text(response) if request.schema is None else self._read_object(response)
        return Part(text, None, usage)

    @abstractmethod
    def _send_text(self, client: Any, request: TextRequest) -> Any:
        """Make the request: the SDK's response, or from a client that is awaited its awaitable."""

    @abstractmethod
    def _read_text(self, response: Any) -> tuple[Any, TokenUsage]:
        """The text in the SDK's response, empty where the model wrote none, and what it cost."""

    def _read_object(self, response: Any) -> tuple[Any, TokenUsage]:
        """As :meth:`_read_text`, of a request with a schema."""
        return self._read_text(response)


class _Coming:
    """A text that is streamed, as far as it has come."""

    def __init__(self, llm: HostedText, request: TextRequest) -> None:
        self._llm, self._request = llm, request
        self._cutter = Cutter(request.stop)
        self._usage = TokenUsage()
        self._ended: str | None = None
        self._last = False
        self._more = 0

    @property
    def enough(self) -> bool:
        """Whether nothing more is to be read: where the server ended it too, what it cost comes right behind."""
        return self._more > _MORE

    def take(self, event: Any) -> str:
        """What is certain after one more part."""
        part = self._llm._reads(self._llm._read_part, event, self._request)
        self._usage += part.usage or TokenUsage()
        self._ended = self._ended if part.ended is None else part.ended
        self._last |= part.last
        piece = self._cutter.feed(part.text)
        self._more += self._cutter.ended is not None
        return piece

    def close(self) -> Iterator[str | Generated]:
        """The rest, and the whole.

        Raises:
            ProviderError: the stream broke off.
        """
        if piece := self._cutter.close():
            yield piece
        ended = self._cutter.ended
        if ended is None and not self._last:
            raise provider_error(self._llm, ValueError("the stream broke off"))
        usage = self._usage if self._usage.requests else TokenUsage(1)
        yield Generated(self._cutter.whole, usage, self._ended if ended is None else ended)


class StreamedText(HostedText):
    """A hosted model that also streams a text while it is written (``StreamingLLM``)."""

    def stream(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Stream:
        """As :meth:`generate`, piece by piece; what is closed is not read to its end.

        Raises:
            ProviderError: no answer came, or it broke off.
        """
        yield from self._told(TextRequest(chat(messages), max_tokens, tuple(stop), temperature, streams=True))

    def astream(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> AsyncStream:
        """As :meth:`stream`, without blocking the event loop."""
        return self._atold(TextRequest(chat(messages), max_tokens, tuple(stop), temperature, streams=True))


class ContinuedText(StreamedText):
    """A hosted model that also continues a text (``ContinuingLLM``)."""

    def continue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes after a text, see :class:`~formal_llm.llms.generation.ContinuingLLM`; with one request.

        Raises:
            ProviderError: no text came.
        """
        return self._written(TextRequest(chat(prompt), max_tokens, tuple(stop), temperature, continues=True))

    async def acontinue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """As :meth:`continue_text`, without blocking the event loop."""
        return await self._awritten(TextRequest(chat(prompt), max_tokens, tuple(stop), temperature, continues=True))

    def stream_continuation(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Stream:
        """As :meth:`continue_text`, piece by piece; what is closed is not read to its end.

        Raises:
            ProviderError: no text came, or it broke off.
        """
        yield from self._told(
            TextRequest(chat(prompt), max_tokens, tuple(stop), temperature, streams=True, continues=True)
        )

    def astream_continuation(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> AsyncStream:
        """As :meth:`stream_continuation`, without blocking the event loop."""
        return self._atold(
            TextRequest(chat(prompt), max_tokens, tuple(stop), temperature, streams=True, continues=True)
        )
