"""Free text and objects from models behind an HTTP interface: what the adapters that write share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from formal_llm.llms.generation import Generated, GeneratedObject, Messages, chat, cut
from formal_llm.llms.hosted.adapter import HostedLLM, provider_error
from formal_llm.llms.question import Message
from formal_llm.llms.schemas import Schema, check_schema
from formal_llm.llms.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class TextRequest:
    """What is asked for; without ``stop`` and ``temperature`` (None) where the server takes none.

    With a schema an object is asked for.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    schema: Schema | None = None


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
        request = TextRequest(chat(messages), max_tokens, (), temperature, schema)
        text, usage = self._text(request)
        return GeneratedObject.read(text, schema, usage, request.messages[-1].content)

    def _text(self, request: TextRequest) -> tuple[str, TokenUsage]:
        """What the model writes, and what it cost."""
        if not request.messages or request.max_tokens < 1:
            raise ValueError("there is nothing to go on from, or no token to write")
        with self.bounds.running() if self.bounds is not None else nullcontext():
            response = self._written(request)
        try:
            text, usage = self._read_text(response) if request.schema is None else self._read_object(response)
            if not isinstance(text, str):
                raise TypeError("what a model writes is a text")
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise provider_error(self, error) from error
        return text, usage

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
