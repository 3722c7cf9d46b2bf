"""Free text and objects from models behind an HTTP interface: the common base of the adapters that write.

Synchronous and asynchronous, whole and streamed texts only differ in how the response is awaited: the requests, the
handling of refusals, and the reading of responses are written once.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from typing import Any, Unpack

from formal_llm.errors import ProviderError
from formal_llm.llms.awaited import AsyncStream
from formal_llm.llms.generation import (
    Generated,
    GeneratedObject,
    Messages,
    Stream,
    TextOptions,
    ToolOffer,
    ToolTurn,
    TurnOptions,
    Writing,
    chat,
)
from formal_llm.llms.hosted.adapter import HostedLLM, ReportedError, provider_error, token_usage
from formal_llm.llms.hosted.text_request import (
    CallPart,
    Part,
    TextRequest,
    join_call_parts,
    without_what_was_refused,
)
from formal_llm.llms.schemas import Schema, check_schema
from formal_llm.llms.stops import Cutter, first_stop
from formal_llm.llms.usage import TokenUsage

#: How many more parts of a stream are read to find its usage, after a stop ended it.
_MORE = 3


class HostedText(HostedLLM):
    """A hosted model that also writes free text (:class:`~formal_llm.llms.generation.TextLLM`)."""

    def generate(self, messages: Messages, **how: Unpack[TextOptions]) -> Generated:
        """Write the next message of a chat, with one request (which the SDK repeats after temporary failures).

        A model that refuses a temperature, or stops, is asked again without them: the text is then cut at its stops
        here, and a warning is issued for the temperature.

        Raises:
            ProviderError: the server gave no answer: no connection, a refused key, an unknown model, a rate limit.
        """
        return self._write_text(TextRequest.of(Writing(messages, **how)))

    async def agenerate(self, messages: Messages, **how: Unpack[TextOptions]) -> Generated:
        """Like :meth:`generate`, asynchronously."""
        return await self._awrite_text(TextRequest.of(Writing(messages, **how)))

    def generate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """Write the next message of a chat as an object; the provider enforces the schema, which is also checked here.

        The bounds of texts and numbers in the schema are only checked here, since not all providers support them.

        Raises:
            InvalidAnswer: the text does not satisfy the schema: it was cut off, refused, or the provider did not
                enforce the schema.
            ProviderError: the server gave no answer, or the model does not support structured output.
            ValueError: the schema is not supported (:mod:`formal_llm.llms.schemas`).
        """
        check_schema(schema)
        generated = self._write_text(TextRequest(chat(messages), max_tokens, (), temperature, schema=schema))
        return GeneratedObject.read(generated.text, schema, generated.usage, chat(messages)[-1].content)

    async def agenerate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """Like :meth:`generate_object`, asynchronously."""
        check_schema(schema)
        generated = await self._awrite_text(TextRequest(chat(messages), max_tokens, (), temperature, schema=schema))
        return GeneratedObject.read(generated.text, schema, generated.usage, chat(messages)[-1].content)

    def take_turn(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> Generated:
        """Write the next message of a chat with tools, see :class:`~formal_llm.llms.generation.ToolCallingLLM`.

        Raises:
            ProviderError: the server gave no answer, or the model does not support tools.
        """
        return self._write_text(TextRequest.of(ToolTurn(messages, tools, **how)))

    async def atake_turn(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> Generated:
        """Like :meth:`take_turn`, asynchronously."""
        return await self._awrite_text(TextRequest.of(ToolTurn(messages, tools, **how)))

    # -- whole texts --------------------------------------------------------------------------------------------

    def _write_text(self, request: TextRequest) -> Generated:
        """Return the text that the model writes, and its usage."""
        with self._scrub_errors(), self._run_within_bounds():
            return self._read_generated(self._open_response(request), request)

    async def _awrite_text(self, request: TextRequest) -> Generated:
        with self._scrub_errors():
            async with self._awaited() as client:
                return self._read_generated(await self._aopen_response(client, request), request)

    def _open_response(self, request: TextRequest) -> Any:
        while True:
            try:
                return self._send_text(self.client, request)
            except Exception as error:
                request = self._reduce_request(error, request)

    async def _aopen_response(self, client: Any, request: TextRequest) -> Any:
        while True:
            try:
                return await self._send_text(client, request)
            except Exception as error:
                request = self._reduce_request(error, request)

    def _reduce_request(self, error: Exception, request: TextRequest) -> TextRequest:
        """Return the request to make after a failed one, without the setting that was refused.

        Raises:
            ProviderError: no other setting can be left out.
        """
        reduced = without_what_was_refused(error, request)
        if reduced is None:
            self._raise_failure(error, False)
            raise error
        if reduced.temperature != request.temperature:
            warnings.warn(f"{self.name} takes no temperature; it writes at its own", stacklevel=4)
        return reduced

    def _read_generated(self, response: Any, request: TextRequest) -> Generated:
        part = self._read_checked(self._read_whole, response, request)
        found = first_stop(part.text, request.stop)
        usage, calls = part.usage or token_usage(None, None), join_call_parts(part.calls)
        if found is not None:
            return Generated(part.text[: found[0]], usage, found[1], calls=calls)
        return Generated(part.text, usage, part.ended, part.stopped, calls)

    def _read_checked(self, read: Callable[[Any, TextRequest], Part], came: Any, request: TextRequest) -> Part:
        """Read a response, or a part of a stream.

        Raises:
            ProviderError: the response cannot be read.
        """
        try:
            part = read(came, request)
            if not isinstance(part.text, str):
                raise TypeError("what a model writes is a text")
        except (AttributeError, IndexError, KeyError, ReportedError, TypeError, ValueError) as error:
            raise self._make_unreadable_error(error, came) from error
        return part

    # -- streamed texts -----------------------------------------------------------------------------------------

    def _stream_text(self, request: TextRequest) -> Stream:
        """Stream the text of a request, and finally the whole.

        Raises:
            ProviderError: there was no answer, or it broke off.
        """
        stream_state = _Coming(self, request)
        end = self.bounds.end() if self.bounds is not None else None
        with self._scrub_errors(), self._run_within_bounds(end):
            response = self._open_response(request)
        try:
            events = iter(response)
            while not stream_state.enough:
                with (
                    self._scrub_errors(),
                    self._run_within_bounds(end),
                ):  # the caller may do anything between the pieces
                    with self._convert_errors():
                        stream_state.event = next(events, None)
                    if (piece := stream_state.take()) is None:
                        break
                if piece:
                    yield piece
        finally:
            response.close()
        yield from stream_state.close()

    async def _astream_text(self, request: TextRequest) -> AsyncStream:
        """Like :meth:`_stream_text`, asynchronously."""
        stream_state = _Coming(self, request)
        end = self.bounds.end() if self.bounds is not None else None

        @asynccontextmanager
        async def part() -> AsyncIterator[None]:
            with self._run_within_bounds(end), self._convert_errors():
                async with self._in_time(None if end is None else end - monotonic()):
                    yield

        async with self._lanes.client() as client:
            with self._scrub_errors():
                async with part():
                    response = await self._aopen_response(client, request)
            try:
                events = aiter(response)
                while not stream_state.enough:
                    with self._scrub_errors():
                        async with part():
                            stream_state.event = await anext(events, None)
                        if (piece := stream_state.take()) is None:
                            break
                    if piece:
                        yield piece
            finally:
                await response.close()
        for last in stream_state.close():
            yield last

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except ProviderError:
            raise
        except Exception as error:
            self._raise_failure(error, False)
            raise

    # -- implemented by adapters --------------------------------------------------------------------------------

    @abstractmethod
    def _read_part(self, event: Any, request: TextRequest) -> Part:
        """Read a part of the SDK's stream."""

    def _read_whole(self, response: Any, request: TextRequest) -> Part:
        text, usage = self._read_text(response) if request.schema is None else self._read_object(response)
        return Part(text, None, usage, stopped=self._find_stop(response), calls=self._read_calls(response))

    @abstractmethod
    def _send_text(self, client: Any, request: TextRequest) -> Any:
        """Make the request; return the SDK's response, or an awaitable for an asynchronous client."""

    @abstractmethod
    def _read_text(self, response: Any) -> tuple[Any, TokenUsage]:
        """Return the text in the SDK's response, empty if the model wrote none, and the usage."""

    @abstractmethod
    def _find_stop(self, response: Any) -> str:
        """Return why the text in the SDK's response is not whole; empty if it is."""

    @abstractmethod
    def _read_calls(self, response: Any) -> tuple[CallPart, ...]:
        """Return the calls of tools that the SDK's response requests."""

    def _read_object(self, response: Any) -> tuple[Any, TokenUsage]:
        """Like :meth:`_read_text`, for a request with a schema."""
        return self._read_text(response)


class _Coming:
    """The state of a text that is being streamed, with the event that came last."""

    event: object = None

    def __init__(self, llm: HostedText, request: TextRequest) -> None:
        self._llm, self._request = llm, request
        self._cutter = Cutter(request.stop)
        self._usage = TokenUsage()
        self._ended: str | None = None
        self._stopped = ""
        self._calls: list[CallPart] = []
        self._last = False
        self._more = 0

    @property
    def enough(self) -> bool:
        """Whether nothing more is to be read; after a stop only the usage is read, if the server sends it soon."""
        return self._more > _MORE

    def take(self) -> str | None:
        """Add the last event and return the text that became certain; None if the stream has ended."""
        if self.event is None:
            return None
        part = self._llm._read_checked(self._llm._read_part, self.event, self._request)
        self._usage += part.usage or TokenUsage()
        self._ended = self._ended if part.ended is None else part.ended
        self._stopped = self._stopped or part.stopped
        self._calls += part.calls
        self._last |= part.last
        piece = self._cutter.feed(part.text)
        self._more += self._cutter.ended is not None
        return piece

    def close(self) -> Iterator[str | Generated]:
        """Yield the rest, and the whole.

        Raises:
            ProviderError: the stream broke off.
        """
        if piece := self._cutter.close():
            yield piece
        ended = self._cutter.ended
        if ended is None and not self._last:
            raise provider_error(self._llm, ValueError("the stream broke off"))
        usage = self._usage if self._usage.requests else TokenUsage(1)
        calls = join_call_parts(self._calls)
        if ended is not None:
            yield Generated(self._cutter.whole, usage, ended, calls=calls)
        else:
            yield Generated(self._cutter.whole, usage, self._ended, self._stopped, calls)


class StreamedText(HostedText):
    """A hosted model that can also stream a text while it is written (``StreamingLLM``)."""

    def stream(self, messages: Messages, **how: Unpack[TextOptions]) -> Stream:
        """Like :meth:`generate`, piece by piece; a stream that is closed is not read to its end.

        Raises:
            ProviderError: there was no answer, or it broke off.
        """
        yield from self._stream_text(TextRequest.of(Writing(messages, **how), streams=True))

    def astream(self, messages: Messages, **how: Unpack[TextOptions]) -> AsyncStream:
        """Like :meth:`stream`, asynchronously."""
        return self._astream_text(TextRequest.of(Writing(messages, **how), streams=True))

    def stream_turn(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> Stream:
        """Like :meth:`take_turn`, piece by piece.

        Raises:
            ProviderError: there was no answer, or it broke off.
        """
        yield from self._stream_text(TextRequest.of(ToolTurn(messages, tools, **how), streams=True))

    def astream_turn(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> AsyncStream:
        """Like :meth:`stream_turn`, asynchronously."""
        return self._astream_text(TextRequest.of(ToolTurn(messages, tools, **how), streams=True))


class ContinuedText(StreamedText):
    """A hosted model that can also continue a text (``ContinuingLLM``)."""

    def continue_text(self, prompt: str, **how: Unpack[TextOptions]) -> Generated:
        """Continue a text with one request, see :class:`~formal_llm.llms.generation.ContinuingLLM`.

        Raises:
            ProviderError: the server gave no text.
        """
        return self._write_text(TextRequest.of(Writing(prompt, continues=True, **how)))

    async def acontinue_text(self, prompt: str, **how: Unpack[TextOptions]) -> Generated:
        """Like :meth:`continue_text`, asynchronously."""
        return await self._awrite_text(TextRequest.of(Writing(prompt, continues=True, **how)))

    def stream_continuation(self, prompt: str, **how: Unpack[TextOptions]) -> Stream:
        """Like :meth:`continue_text`, piece by piece; a stream that is closed is not read to its end.

        Raises:
            ProviderError: there was no text, or it broke off.
        """
        yield from self._stream_text(TextRequest.of(Writing(prompt, continues=True, **how), streams=True))

    def astream_continuation(self, prompt: str, **how: Unpack[TextOptions]) -> AsyncStream:
        """Like :meth:`stream_continuation`, asynchronously."""
        return self._astream_text(TextRequest.of(Writing(prompt, continues=True, **how), streams=True))
