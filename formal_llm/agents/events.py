"""Events: what agents do and what they are told, and the past that is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.planning.json_data import JSON


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        name: what it is called: a state of an agent, a tool.
        data: what is known of it besides, as JSON: arguments, a result, a text.
    """

    name: str
    data: Mapping[str, JSON] = field(default=FrozenDict(), hash=False)

    def __post_init__(self) -> None:
        if type(self.data) is not FrozenDict:
            object.__setattr__(self, "data", FrozenDict(self.data))


#: What a monitor takes for an event: a name alone is one without data.
EventLike = Event | str
#: What the rules call an event; None where they do not look at it.
Label = Callable[[Event], str | None]


class EventChain:
    """What happened, the last event first: each past shares all but its event with the past before."""

    __slots__ = ("before", "event", "hash", "length", "name")

    def __init__(self, before: EventChain | None, event: Event, name: str | None) -> None:
        self.before = before
        self.event = event
        self.name = name
        self.length: int = 1 if before is None else before.length + 1
        self.hash: int = hash((None if before is None else before.hash, event.name, name))

    def iter_back(self) -> Iterator[EventChain]:
        """This past and those before it."""
        past: EventChain | None = self
        while past is not None:
            yield past
            past = past.before
