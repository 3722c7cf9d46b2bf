"""How long a question to a server may take, and how much may come back.

A timeout of an SDK bounds one silence. It does not bound a server that sends a byte every second, asks for a wait
of a day, or answers with a gigabyte. These bounds do; :mod:`formal_llm.llms.hosted.transport` keeps to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic

#: The seconds that a question may take by default.
DEADLINE = 600.0
#: The bytes that a response may have by default: a thousand times what an answer has.
MAX_BYTES = 16_000_000

_END: ContextVar[float | None] = ContextVar("formal_llm_end", default=None)


class OutOfBounds(Exception):
    """A server took too long, or sent too much; the message names what, and the setting that bounds it."""


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """What a question to a server may take.

    Attributes:
        deadline: seconds for all tries together, with the waits between them.
        max_bytes: the size of a response, after decompression.
    """

    deadline: float = DEADLINE
    max_bytes: int = MAX_BYTES

    @classmethod
    def of(
        cls, deadline: float | None = None, max_bytes: int | None = None, timeout: float | None = None
    ) -> RequestBounds:
        """The bounds that settings stand for; by default a server may be silent for the whole ``timeout`` once.

        Raises:
            ValueError: a bound that nothing can keep to.
        """
        made = cls(
            max(DEADLINE, timeout or 0) if deadline is None else deadline, MAX_BYTES if max_bytes is None else max_bytes
        )
        if made.deadline <= 0 or made.max_bytes < 1:
            raise ValueError(f"a deadline is more than 0 seconds, max_bytes counts from 1; not {made}")
        return made

    def end(self) -> float:
        """When the time of a question is up that begins now."""
        return monotonic() + self.deadline

    @contextmanager
    def running(self, until: float | None = None) -> Iterator[None]:
        """The block is one question, or a part of one: its time runs from now on, or to an :meth:`end`."""
        token = _END.set(self.end() if until is None else until)
        try:
            yield
        finally:
            _END.reset(token)

    def late(self) -> str:
        """The message when the time is up."""
        return (
            f"no whole answer came within {self.deadline:g} seconds, all tries together; "
            "try again, or give a longer deadline"
        )

    def large(self) -> str:
        """The message when a response is too large."""
        return f"the response is larger than {self.max_bytes:,} bytes; check the address, or give more max_bytes"


def seconds_left() -> float | None:
    """How much time the question has that is being asked here; None outside of one. May be negative."""
    end = _END.get()
    return None if end is None else end - monotonic()
