"""Where a text ends: the texts before which the writing of a model stops, for a whole and for what comes in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cut(text: str, stop: Iterable[str]) -> str:
    """A text up to the first of its stops: for servers that know no stops, or write them out."""
    found = first_stop(text, stop)
    return text if found is None else text[: found[0]]


def first_stop(text: str, stop: Iterable[str]) -> tuple[int, str] | None:
    """Where the first stop begins in a text, and which it is."""
    places = [(place, one) for one in stop if one and (place := text.find(one)) >= 0]
    return min(places, key=lambda found: found[0], default=None)


class Cutter:
    """Takes a text that comes in pieces, up to the first of its stops: what may be the beginning of one is held back.

    Args:
        stop: the stops.

    Attributes:
        whole: what is certain so far.
        ended: the stop that ended it; None before.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._stops = [one for one in stop if one]
        self._begun = {one[:size] for one in self._stops for size in range(1, len(one))}
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""
        self.whole = ""
        self.ended: str | None = None

    def feed(self, piece: str) -> str:
        """What is certain after one more piece."""
        text = self._held + piece
        first = max(0, len(text) - self._longest + 1)
        waits = next((at for at in range(first, len(text)) if text[at:] in self._begun), len(text))
        return self._cut(text, waits)

    def close(self) -> str:
        """The rest, when nothing more comes."""
        return self._cut(self._held, len(self._held))

    def _cut(self, text: str, waits: int) -> str:
        if self.ended is not None:
            return ""
        found = first_stop(text, self._stops)
        if found is not None and found[0] <= waits:
            waits, self.ended = found
        self.whole, self._held = self.whole + text[:waits], text[waits:]
        return text[:waits]
