"""A request for text to a server, and the parts in which what it writes comes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from formal_llm.llms.question import Message
from formal_llm.llms.schemas import Schema
from formal_llm.llms.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class TextRequest:
    """What is asked for; without ``stop`` and ``temperature`` (None) where the server takes none.

    Attributes:
        streams: whether it shall come piece by piece.
        continues: whether the one message is a text to continue.
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
        usage: what it cost, where this part reports it.
        last: whether nothing comes after it but what it cost.
    """

    text: str = ""
    ended: str | None = None
    usage: TokenUsage | None = None
    last: bool = False


def without_what_was_refused(error: Exception, request: TextRequest) -> TextRequest | None:
    """The request less a setting that the server refused; None where it refused something else."""
    if getattr(error, "status_code", None) not in (400, 422):
        return None
    said = str(error).casefold()
    if request.temperature is not None and "temperature" in said:
        return replace(request, temperature=None)
    if request.stop and "stop" in said:
        return replace(request, stop=())
    return None
