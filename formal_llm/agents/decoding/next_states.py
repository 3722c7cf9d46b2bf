"""Which states may come next, and how their markers begin."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.errors import AutomatonError, WritingError


class NextStates(NamedTuple):
    """What may come next.

    Attributes:
        states: for each legal marker its state, in the order of the alphabet.
        may_end: whether the run may end.
        world: the states, where the world alone goes on.
        shortest: the marker that begins a shortest way to an end; empty where that is to end at once.
    """

    states: Mapping[str, str]
    may_end: bool
    world: tuple[str, ...]
    shortest: str

    @property
    def markers(self) -> tuple[str, ...]:
        """The legal markers."""
        return tuple(self.states)

    @property
    def only_state(self) -> str | None:
        """The state that comes next where nothing else can; None where there is a choice."""
        return next(iter(self.states.values())) if len(self.states) == 1 and not self.may_end else None

    @property
    def prefix(self) -> str:
        """How all legal markers begin."""
        return find_common_prefix(self.markers)


def find_common_prefix(texts: Iterable[str]) -> str:
    """The longest text that all begin with; empty for none."""
    least, most = min(found := list(texts), default=""), max(found, default="")
    return next((least[:place] for place, sign in enumerate(least) if most[place : place + 1] != sign), least)


def find_next_states(monitor: Monitor, markers: Markers, until: Collection[str] = ()) -> NextStates:
    """What may come next where a monitor stands.

    Of states that share a marker, the first one that is legal is meant, as it is where a transcript is read. What is
    not known to lead to an end is left out where something else is.

    Raises:
        AutomatonError: a legal state has no marker.
        WritingError: nothing can come, and the run cannot end.
    """
    allowed = monitor.allowed()
    known = {name: way for name, way in allowed.items() if way.certain} or allowed
    states: dict[str, str] = {}
    for name in known:
        marker = markers.marker(name)
        if marker is None:
            raise AutomatonError(f"the state {name} has no marker, so it cannot be known when it is written")
        states.setdefault(marker, name)
    may_end = monitor.may_stop()
    if not states and not may_end:
        refused = monitor.why()
        raise WritingError(f"nothing can come next: {refused.reason if refused is not None else 'no way is known'}")
    lengths = {marker: known[name].shortest for marker, name in states.items()}
    told = {marker: length for marker, length in lengths.items() if length is not None}
    shortest = "" if may_end else min(told or states, key=lambda marker: told.get(marker, 0))
    world = tuple(states.values()) if not may_end and all(name in until for name in states.values()) else ()
    return NextStates(states, may_end, world, shortest)
