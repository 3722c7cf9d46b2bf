"""A request for text to a server, and the parts of a streamed response."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from formal_llm.llms.generation import ToolOffer, ToolTurn, Writing
from formal_llm.llms.question import CallRequest, Message
from formal_llm.llms.schemas import Schema
from formal_llm.llms.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A request for text; ``stop`` and ``temperature`` (None) are empty if the server accepts none.

    Attributes:
        streams: whether to stream the text.
        continues: whether the one message is a text to continue.
        schema: the schema that the text must satisfy, if it is an object.
        must_call: whether at least one of them must be called.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    streams: bool = False
    continues: bool = False
    schema: Schema | None = None
    tools: tuple[ToolOffer, ...] = ()
    must_call: bool = False

    def __post_init__(self) -> None:
        if not self.messages or self.max_tokens < 1:
            raise ValueError("there is nothing to go on from, or no token to write")

    @classmethod
    def of(cls, asked: Writing, *, streams: bool = False) -> TextRequest:
        """Return a request of the protocols as one to a server."""
        made = cls(asked.messages, asked.max_tokens, asked.stop, asked.temperature, streams, asked.continues)
        return replace(made, tools=asked.tools, must_call=asked.must_call) if isinstance(asked, ToolTurn) else made


class CallPart(NamedTuple):
    """A part of a requested call; the parts of a stream with the same ``place`` belong together.

    Attributes:
        place: the place of the call among those of the response; None for a call that comes as a whole.
        id: its identifier; empty if this part has none.
        name: the name of the tool, likewise.
        arguments: a piece of the text of its arguments.
    """

    place: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""


def join_call_parts(parts: Iterable[CallPart]) -> tuple[CallRequest, ...]:
    """Return the calls whose parts these are, in order; a call without an identifier gets its place as one."""
    joined: dict[int, CallPart] = {}
    for part in parts:
        place = max(joined, default=-1) + 1 if part.place is None else part.place
        known = joined.get(place, CallPart(place))
        joined[place] = CallPart(place, part.id or known.id, part.name or known.name, known.arguments + part.arguments)
    return tuple(
        CallRequest(joined[place].id or f"call_{place}", joined[place].name, joined[place].arguments)
        for place in sorted(joined)
    )


def read_arguments(text: str) -> dict[str, object]:
    """Return the arguments of a call as data, for servers that require that; none if they are no JSON object."""
    try:
        data = json.loads(text)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


class Part(NamedTuple):
    """A part of a server's stream.

    Attributes:
        ended: what ended it, see :class:`~formal_llm.llms.generation.Generated`.
        usage: the usage, if this part reports it.
        last: whether only the usage may follow.
        stopped: why the text is not whole, see :class:`~formal_llm.llms.generation.Generated`.
    """

    text: str = ""
    ended: str | None = None
    usage: TokenUsage | None = None
    last: bool = False
    stopped: str = ""
    calls: tuple[CallPart, ...] = ()


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
