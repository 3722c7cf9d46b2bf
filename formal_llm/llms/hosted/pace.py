"""The pace of requests to a server that refuses some: all models that ask it slow down together."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic

#: How much slower than what a server took it is asked, and how much faster a second while it takes everything.
_BELOW, _FASTER = 0.9, 0.05
#: From so many requests in a second on, the rate that a server takes is known; below, it is found by a tenth an answer.
_KNOWN = 5
#: The first and the longest wait after refusals without a time of their own, in seconds.
_FIRST, _LONGEST = 1.0, 30.0


class Pace:
    """The pace of one server, without bound until it refuses a request.

    Then all wait, as long as the server says. After that they ask at the rate at which it answered before, and slowly
    faster. A refusal of a request that was sent before the last slowing down slows down no more.
    """

    def __init__(self) -> None:
        self._interval = 0.0
        self._next = 0.0
        self._slowed = -1.0
        self._refusals = 0  # since the last answer
        self._searches = False  # whether the rate that the server takes is not known yet
        self._sent: deque[float] = deque(maxlen=1_000)
        self._turns = asyncio.Lock()

    async def take_turn(self) -> float:
        """Wait until a request may be sent, and return the time."""
        async with self._turns:
            while (wait := self._next - monotonic()) > 0:
                await asyncio.sleep(wait)
            now = monotonic()
            if self._slowed > 0 and not self._interval:
                taken = sum(1 for sent in self._sent if sent > self._slowed - 1)
                self._searches = taken < _KNOWN
                self._interval = 1 / (_BELOW * max(taken, 1))
            self._next = now + self._interval
        self._sent.append(now)
        return now

    def note_answer(self) -> None:
        """Note that a request was not refused."""
        self._refusals = 0
        self._interval *= _BELOW if self._searches else 1 - min(_FASTER * self._interval, 0.5)

    def note_refusal(self, sent: float, wait: float | None) -> None:
        """Note that the request sent at that time was refused, and for how long the server wants no other."""
        if sent in self._sent:
            self._sent.remove(sent)
        now = monotonic()
        if sent > self._slowed:
            self._slowed = now
            self._searches = self._searches and not self._interval
            self._interval /= _BELOW**2
            self._refusals += 1
            if wait is None:
                wait = min(_FIRST * 2 ** (self._refusals - 1), _LONGEST)
        self._next = max(self._next, now + (wait or 0))
