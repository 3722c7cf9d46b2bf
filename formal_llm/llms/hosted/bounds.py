"""The bounds of a question to a server: how long it may take, and how much the server may send.

The timeout of an SDK bounds a single silence. It does not help against a server that sends a byte every second, asks to
wait a day, or answers with a gigabyte. These bounds do; :mod:`formal_llm.llms.hosted.transport` enforces them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

#: The default number of seconds that a question may take.
DEADLINE = 600.0
#: The default size of a response in bytes: a thousand times that of an answer.
MAX_BYTES = 16_000_000

_END: ContextVar[float | None] = ContextVar("formal_llm_end", default=None)


class RequestDefaults(NamedTuple):
    """What holds for models that are made without settings of their own; None is the SDK's or the library's default.

    Attributes:
        max_retries: how often a request is repeated after a temporary failure.
        timeout: the seconds for which a server may be silent.
        deadline: the seconds for a question, all tries and waits together.
    """

    max_retries: int | None = None
    timeout: float | None = None
    deadline: float | None = None


_DEFAULTS: ContextVar[RequestDefaults] = ContextVar("formal_llm_requests", default=RequestDefaults())  # noqa: B039  # immutable


@contextmanager
def default_requests(defaults: RequestDefaults) -> Iterator[None]:
    """Have defaults hold for all hosted models that are made within the block."""
    token = _DEFAULTS.set(defaults)
    try:
        yield
    finally:
        _DEFAULTS.reset(token)


def fill_defaults(max_retries: int | None, timeout: float | None, deadline: float | None) -> RequestDefaults:
    """Return the settings of a model, the defaults where it has none."""
    given, default = RequestDefaults(max_retries, timeout, deadline), _DEFAULTS.get()
    return RequestDefaults(*(own if own is not None else other for own, other in zip(given, default, strict=True)))  # type: ignore[arg-type]


class OutOfBounds(Exception):
    """A server took too long or sent too much; the message names the setting that bounds it."""


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """The bounds of a question to a server.

    Attributes:
        deadline: the seconds for all tries together, including the waits between them.
        max_bytes: the maximum size of a response after decompression.
    """

    deadline: float = DEADLINE
    max_bytes: int = MAX_BYTES

    @classmethod
    def of(
        cls, deadline: float | None = None, max_bytes: int | None = None, timeout: float | None = None
    ) -> RequestBounds:
        """Create the bounds from settings; by default a server may be silent once for the whole ``timeout``.

        Raises:
            ValueError: no response can satisfy a bound.
        """
        bounds = cls(
            max(DEADLINE, timeout or 0) if deadline is None else deadline, MAX_BYTES if max_bytes is None else max_bytes
        )
        if bounds.deadline <= 0 or bounds.max_bytes < 1:
            raise ValueError(f"a deadline is more than 0 seconds, max_bytes counts from 1; not {bounds}")
        return bounds

    def end(self) -> float:
        """Return the time at which a question that begins now must end."""
        return monotonic() + self.deadline

    @contextmanager
    def running(self, until: float | None = None) -> Iterator[None]:
        """Run the block as one question, or as a part of one: its time ends after the deadline, or at ``until``."""
        token = _END.set(self.end() if until is None else until)
        try:
            yield
        finally:
            _END.reset(token)

    def late(self) -> str:
        """Return the message for a question that took too long."""
        return (
            f"no whole answer came within {self.deadline:g} seconds, all tries together; "
            "try again, or give a longer deadline"
        )

    def large(self) -> str:
        """Return the message for a response that is too large."""
        return f"the response is larger than {self.max_bytes:,} bytes; check the address, or give more max_bytes"


def seconds_left() -> float | None:
    """Return the time left for the current question, which may be negative; None outside of a question."""
    end = _END.get()
    return None if end is None else end - monotonic()
