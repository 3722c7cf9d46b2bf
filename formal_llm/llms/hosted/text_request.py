"""A request for text to a server, and the parts of a streamed response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from formal_llm.llms.question import Message
from formal_llm.llms.schemas import Schema
from formal_llm.llms.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A request for text; ``stop`` and ``temperature`` (None) are empty if the server accepts none.

    Attributes:
        streams: whether to stream the text.
        continues: whether the one message is a text to continue.
        schema: the schema that the text must satisfy, if it is an object.
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
    """A part of a server's stream.

    Attributes:
        text: the text.
        ended: what ended it, see :class:`~formal_llm.llms.generation.Generated`.
        usage: the usage, if this part reports it.
        last: whether only the usage may follow.
    """

    text: str = ""
    ended: str | None = None
    usage: TokenUsage | None = None
    last: bool = False


def without_what_was_refused(error: Exception, request: TextRequest) -> TextRequest | None:
    """Return the request without a setting that the server refused; None if it refused something else."""
    if getattr(error, "status_code", None) not in (400, 422):
        return None
    message = str(error).casefold()
    if request.temperature is not None and "temperature" in message:
        return replace(request, temperature=None)
    if request.stop and "stop" in message:
        return replace(request, stop=())
    return None
