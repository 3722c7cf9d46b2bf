"""Free text from models behind an HTTP interface: what the adapters that write share."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from formal_llm.llms.generation import Generated, Messages, chat, cut
from formal_llm.llms.hosted.adapter import HostedLLM, provider_error
from formal_llm.llms.question import Message
from formal_llm.llms.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class TextRequest:
    """What is asked for; without ``stop`` and ``temperature`` (None) where the server takes none."""

    messages: tuple[Message, ...]
    max_tokens: int
    stop: tuple[str, ...] = ()
    temperature: float | None = None


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
        request = TextRequest(chat(messages), max_tokens, tuple(stop), temperature)
        if not request.messages or max_tokens < 1:
            raise ValueError("there is nothing to go on from, or no token to write")
        with self.bounds.running() if self.bounds is not None else nullcontext():
            response = self._written(request)
        try:
            text, usage = self._read_text(response)
            if not isinstance(text, str):
                raise TypeError("what a model writes is a text")
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise provider_error(self, error) from error
        return Generated(cut(text, stop), usage)

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
