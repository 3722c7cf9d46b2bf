"""Free text and objects from models behind an HTTP interface: what the adapters that write share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from formal_llm.llms.generation import Generated, GeneratedObject, Messages, Stream, chat, cut, streamed
from formal_llm.llms.hosted.adapter import HostedLLM, provider_error
from formal_llm.llms.question import Message
from formal_llm.llms.schemas import Schema, check_schema
from formal_llm.llms.usage import TokenUsage

#: How many more parts of a stream are read for what it cost, where a stop ended it.
_MORE = 3


@dataclass(frozen=True, slots=True)
class TextRequest:
    """What is asked for; without ``stop`` and ``temperature`` (None) where the server takes none.

    Attributes:
        streams: whether it shall come piece by piece.
        continues: whether the one message is a text to go on with.
        schema: what the text is to keep, where it is an object.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    streams: bool = False
    continues: bool = False
    schema: Schema | None = None

    def __post_init__(self) -> None:
        if not self.messages or self.max_tokens < 1:
            raise ValueError("there is nothing to go on from, or no token to write")


class Part(NamedTuple):
    """A part of what a server streams.

    Attributes:
        text: what was written.
        ended: what ended it, as of a :class:`~formal_llm.llms.generation.Generated`.
        usage: what it cost, where this part tells.
        last: whether nothing comes after it but what it cost.
    """

    text: str = ""
    ended: str | None = None
    usage: TokenUsage | None = None
    last: bool = False


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
        text, usage = self._text(TextRequest(chat(messages), max_tokens, tuple(stop), temperature))
        return Generated(cut(text, stop), usage)

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
        request = TextRequest(chat(messages), max_tokens, (), temperature, schema=schema)
        text, usage = self._text(request)
        return GeneratedObject.read(text, schema, usage, request.messages[-1].content)

    def _text(self, request: TextRequest) -> tuple[str, TokenUsage]:
        """What the model writes, and what it cost."""
        with self.bounds.running() if self.bounds is not None else nullcontext():
            response = self._written(request)
        try:
            text, usage = self._read_text(response) if request.schema is None else self._read_object(response)
            if not isinstance(text, str):
                raise TypeError("what a model writes is a text")
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise provider_error(self, error) from error
        return text, usage

    def _told(self, request: TextRequest) -> Stream:
        """What a request writes, piece by piece, and then the whole.

        Raises:
            ProviderError: no answer came, or it broke off.
        """
        parts: list[Part] = []
        events = self._events(request)
        texts = self._texts(events, parts, request)
        try:
            whole, ended = yield from streamed(texts, request.stop)
            # Where the server ended it too, what it cost comes right behind.
            for _ in islice(texts, _MORE if ended is not None else 0):
                pass
        finally:
            events.close()
        if ended is None and not any(part.last for part in parts):
            raise provider_error(self, ValueError("the stream broke off"))
        usage = sum((part.usage for part in parts if part.usage is not None), TokenUsage())
        known = next((part.ended for part in reversed(parts) if part.ended is not None), None)
        yield Generated(whole, usage if usage.requests else TokenUsage(1), known if ended is None else ended)

    def _texts(self, events: Iterator[Any], parts: list[Part], request: TextRequest) -> Iterator[str]:
        for event in events:
            try:
                part = self._read_part(event, request)
                if not isinstance(part.text, str):
                    raise TypeError("what a model writes is a text")
            except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                raise provider_error(self, error) from error
            parts.append(part)
            yield part.text

    def _events(self, request: TextRequest) -> Generator[Any, None, None]:
        """What the server sends, each wait within the bounds: whoever takes it may do anything in between."""
        end = self.bounds.end() if self.bounds is not None else None

        def running() -> AbstractContextManager[None]:
            return self.bounds.running(end) if self.bounds is not None else nullcontext()

        with running():
            response = self._written(request)
        import httpx2  # comes with the SDKs, which are imported when a model is made

        try:
            events = iter(response)
            while True:
                with running():
                    try:
                        event = next(events)
                    except StopIteration:
                        return
                    except httpx2.RequestError as error:  # not all SDKs say it in their own words
                        raise provider_error(self, error) from error
                    except Exception as error:
                        self._failed(error, False)
                        raise
                yield event
        finally:
            response.close()

    def _read_part(self, event: Any, request: TextRequest) -> Part:
        """What a part of the SDK's stream tells."""
        raise NotImplementedError

    def _written(self, request: TextRequest) -> Any:
        while True:
            try:
                return self._send_text(self.client, request)
            except Exception as error:
                less = _without_what_was_refused(error, request)
                if less is None:
                    self._failed(error, False)
                    raise
                if less.temperature != request.temperature:
                    warnings.warn(f"{self.name} takes no temperature; it writes at its own", stacklevel=3)
                request = less

    @abstractmethod
    def _send_text(self, client: Any, request: TextRequest) -> Any:
        """Make the request: the SDK's response."""

    @abstractmethod
    def _read_text(self, response: Any) -> tuple[Any, TokenUsage]:
        """The text in the SDK's response, empty where the model wrote none, and what it cost."""

    def _read_object(self, response: Any) -> tuple[Any, TokenUsage]:
        """As :meth:`_read_text`, of a request with a schema."""
        return self._read_text(response)


class StreamedText(HostedText):
    """A hosted model that also tells a text while it is written (``StreamingLLM``)."""

    def stream(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Stream:
        """As :meth:`generate`, piece by piece; what is closed is not read to its end.

        Raises:
            ProviderError: no answer came, or it broke off.
        """
        yield from self._told(TextRequest(chat(messages), max_tokens, tuple(stop), temperature, streams=True))


def _without_what_was_refused(error: Exception, request: TextRequest) -> TextRequest | None:
    """The request less a setting that the server refused; None where it refused something else."""
    if getattr(error, "status_code", None) not in (400, 422):
        return None
    said = str(error).casefold()
    if request.temperature is not None and "temperature" in said:
        return replace(request, temperature=None)
    if request.stop and "stop" in said:
        return replace(request, stop=())
    return None
