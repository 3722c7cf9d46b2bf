"""The clients that are awaited: for each event loop its own, and several where many requests are in flight."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import anthropic
    import openai

    AsyncClient = openai.AsyncOpenAI | anthropic.AsyncAnthropic

#: How many requests are in flight through one client, before another is made.
PER_CLIENT = 32


@dataclass(slots=True, eq=False)
class Lane:
    """A client that is awaited, how many requests are in flight through it, and whether it gets no more of them."""

    client: AsyncClient
    in_flight: int = 0
    left: bool = False


@dataclass(slots=True, eq=False)
class _Loop:
    """The lanes of an event loop, and what closes their clients before the loop ends."""

    lanes: list[Lane] = field(default_factory=list)
    closing: AsyncGenerator[None, None] | None = None


class Lanes:
    """Clients that are awaited.

    Connections cannot be shared between event loops, so each has its own clients. They are closed by :meth:`aclose`, or
    by the loop itself when it ends, as ``asyncio.run`` and ``asyncio.Runner`` end theirs.

    Within one loop there is more than one client where many requests are in flight: an SDK's client keeps few
    connections open, and looks through all of them at each request.

    Args:
        make: makes a client.
        given: a client of the user's, the only one then; it stays open.
    """

    def __init__(self, make: Callable[[], AsyncClient], given: AsyncClient | None = None) -> None:
        self._make = make
        self._given = given
        self._loops: WeakKeyDictionary[Any, _Loop] = WeakKeyDictionary()

    @property
    def in_flight(self) -> list[int]:
        """How many requests are in flight through each client of the running event loop."""
        import asyncio

        here = self._loops.get(asyncio.get_running_loop())
        return [] if here is None else [lane.in_flight for lane in here.lanes]

    @asynccontextmanager
    async def client(self) -> AsyncIterator[AsyncClient]:
        """The client for a request: the least busy one of the running event loop, or a new one."""
        lane = await self._lane()
        lane.in_flight += 1
        try:
            yield lane.client
        finally:
            lane.in_flight -= 1
            if lane.left:
                await self._close(lane)

    async def aclose(self) -> None:
        """Close the clients of the running event loop, those in use when they are not any more; the user's stays open.

        Later questions get a new one: others on this loop may continue.
        """
        import asyncio

        here = self._loops.get(asyncio.get_running_loop())
        if here is not None and here.closing is not None:
            await here.closing.aclose()

    async def _lane(self) -> Lane:
        import asyncio

        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            for other in [other for other in self._loops if other.is_closed()]:
                del self._loops[other]  # a client holds its loop, so that neither would ever go by itself
            here = self._loops[loop] = _Loop()
            # A generator that a loop has begun is closed by it when it ends.
            here.closing = self._closed_at_end(here)
            await anext(here.closing)
        lane = min(here.lanes, key=lambda one: one.in_flight, default=None)
        if lane is None or (lane.in_flight >= PER_CLIENT and self._given is None):
            lane = Lane(self._given or self._make())
            here.lanes.append(lane)
        return lane

    async def _closed_at_end(self, here: _Loop) -> AsyncGenerator[None, None]:
        import asyncio

        loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            if self._loops.get(loop) is here:
                del self._loops[loop]
            for lane in here.lanes:
                lane.left = True
                await self._close(lane)

    async def _close(self, lane: Lane) -> None:
        if not lane.in_flight and lane.client is not self._given:
            await lane.client.close()
