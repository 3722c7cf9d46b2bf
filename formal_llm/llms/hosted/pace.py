"""How fast a host is asked: one pace for all requests to it from this process.

A host that refuses requests (status 429) is asked more slowly, by all that ask it: nobody sends anything while it wants
to be left alone, and afterwards requests are sent at a rate that it accepted. The rate grows slowly while all goes well
and falls by a tenth at the next refusal (additive increase, multiplicative decrease: Chiu and Jain 1989). Before the
first refusal there is no rate, unless one is given (:func:`limit_pace`). Hosts that report what is left of their limit
(``x-ratelimit-remaining-...``, ``anthropic-ratelimit-...-remaining``) are believed.
"""

from __future__ import annotations

import random
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from time import monotonic
from typing import NamedTuple
from urllib.parse import urlsplit

#: The status of a refusal.
TOO_MANY = 429
#: By what the rate is multiplied at a refusal, and the shares by which it grows at most with an answer and in a second.
DECREASE, BY_ANSWER, BY_SECOND = 0.9, 0.002, 0.02
#: The seconds over which the accepted rate is measured.
WINDOW = 1.0
#: The seconds within which somebody else's success shows that a host is alive.
ALIVE = 10.0
#: The seconds of turns that nobody took and that are still valid.
CATCH_UP = 0.1
#: The shortest and the longest pause after a refusal, in seconds; a host that wants a longer one is asked again then.
SHORTEST, LONGEST = 0.5, 30.0
#: What providers call their limits, between the prefix and "remaining" or "reset".
_LIMITS = ("requests", "tokens", "input-tokens", "output-tokens")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class PaceLimits(NamedTuple):
    """The bounds of a pace: requests a second, and tokens a minute, estimated as a quarter of the characters sent."""

    rps: float | None = None
    tpm: float | None = None


class Pace:
    """The pace of one host.

    Args:
        limits: the bounds that are known in advance.
        clock: returns the time in seconds.
    """

    def __init__(self, limits: PaceLimits = PaceLimits(), clock: Callable[[], float] = monotonic) -> None:  # noqa: B008  # immutable
        self.limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._rate: float | None = None
        # When the next request may be sent: by the rate, by the tokens, and since the host wants to be left alone.
        self._next = self._next_by_tokens = self._paused_until = self._raised = clock()
        self._measured_since: float | None = None
        self._successes: deque[float] = deque()
        self._in_a_row = 0
        #: When a request was last answered.
        self.alive_at = -ALIVE

    @property
    def rate(self) -> float | None:
        """The requests a second that are sent at most; None is no bound."""
        known = [rate for rate in (self._rate, self.limits.rps) if rate is not None]
        return min(known) if known else None

    def take_turn(self, characters: int = 0, lost: int = 0) -> float:
        """Take the turn to send a request, if it is due; otherwise return the seconds after which to try again.

        Args:
            characters: the size of the request.
            lost: how often somebody else took the turn; the more often, the longer is the wait, so that many who wait
                do not all wake at once.
        """
        with self._lock:
            now = self._clock()
            self._set_rate(now)
            rate, due = self.rate, max(self._next, self._next_by_tokens, self._paused_until)
            if due > now:
                return due - now + (random.random() * min(lost, 100) / rate if rate else 0.0)
            if rate is not None:
                self._next = max(self._next, now - CATCH_UP) + 1 / rate
            if self.limits.tpm is not None:
                self._next_by_tokens = now + characters / 4 * 60 / self.limits.tpm
            return 0.0

    def note_response(self, status: int, headers: Mapping[str, str], wait: float | None = None) -> None:
        """Adapt the pace to a response.

        The ``headers`` are by names in small letters; ``wait`` is the seconds that the server asks to wait.
        """
        with self._lock:
            now = self._clock()
            if status == TOO_MANY:
                self._slow_down(now, wait)
            elif status < 400:
                self._speed_up(now)
                self._paused_until = max(self._paused_until, now + min(read_pause(headers), LONGEST))

    def _slow_down(self, now: float, wait: float | None) -> None:
        if now < self._paused_until and wait is None:
            return  # it was sent before the pause that another refusal began
        if self._rate is not None:
            self._rate = max(self._rate * DECREASE, 1 / LONGEST)
        elif self._measured_since is None:
            self._measured_since = now - WINDOW
        pause = min(SHORTEST * 2 ** min(self._in_a_row, 10) if wait is None else wait, LONGEST)
        self._in_a_row += now >= self._paused_until
        self._raised = now
        self._paused_until = max(self._paused_until, now + pause)

    def _set_rate(self, now: float) -> None:
        """After the pause of the first refusal: the rate is what was accepted in the time around it."""
        if self._measured_since is None or now < self._paused_until:
            return
        accepted = sum(at >= self._measured_since for at in self._successes) / WINDOW
        if accepted:
            self._rate, self._measured_since, self._raised = DECREASE * accepted, None, now

    def _speed_up(self, now: float) -> None:
        self._in_a_row, self.alive_at = 0, now
        if self._rate is not None:
            self._rate *= 1 + min(BY_ANSWER, BY_SECOND * (now - self._raised))
            self._raised = now
            return
        self._successes.append(now)
        while len(self._successes) > 1 and self._successes[0] < now - 2 * WINDOW:
            self._successes.popleft()


def read_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds until a limit that is used up is reset, by the headers of a response; 0 if none is."""
    pause = 0.0
    for limit in _LIMITS:
        for prefix, left, reset in (
            ("x-ratelimit", f"remaining-{limit}", f"reset-{limit}"),
            ("anthropic-ratelimit", f"{limit}-remaining", f"{limit}-reset"),
        ):
            if headers.get(f"{prefix}-{left}", "").strip() == "0":
                pause = max(pause, _read_duration(headers.get(f"{prefix}-{reset}", "")))
    return pause


def _read_duration(text: str) -> float:
    """Read ``1.5``, ``6m0s``, ``20ms`` or a date of RFC 3339 as seconds from now; 0 if it is none of them."""
    text = text.strip()
    if re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text):
        return float(text)
    if re.fullmatch(r"(?:\d{1,6}(?:\.\d{1,9})?(?:ms|[smhd]))+", text):
        return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|[smhd])", text))
    try:
        date = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return 0.0
    return max((date - datetime.now(UTC)).total_seconds(), 0.0) if date.tzinfo is not None else 0.0


_PACES: dict[tuple[str, str], Pace] = {}
_LIMITED: ContextVar[PaceLimits] = ContextVar("formal_llm_pace", default=PaceLimits())  # noqa: B039  # immutable


def find_pace(url: str) -> Pace:
    """Return the pace of the host of an address."""
    parts = urlsplit(url)
    place = parts.scheme, parts.netloc.rpartition("@")[2]
    pace = _PACES.get(place)
    if pace is None:
        pace = _PACES.setdefault(place, Pace())
    pace.limits = _LIMITED.get()
    return pace


@contextmanager
def limit_pace(rps: float | None = None, tpm: float | None = None) -> Iterator[None]:
    """Bound the pace of all hosts that are asked within the block.

    Args:
        rps: the requests a second.
        tpm: the tokens a minute that are sent, estimated.

    Raises:
        ValueError: a bound is not above 0.
    """
    if any(bound is not None and not bound > 0 for bound in (rps, tpm)):
        raise ValueError("requests a second and tokens a minute are above 0")
    token = _LIMITED.set(PaceLimits(rps, tpm))
    try:
        yield
    finally:
        _LIMITED.reset(token)
