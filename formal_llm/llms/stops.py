"""Stops: the texts before which the writing of a model ends, for whole and for streamed texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def cut(text: str, stop: Iterable[str]) -> str:
    """Cut a text at its first stop, for servers that do not support stops, or that include them in the text."""
    found = first_stop(text, stop)
    return text if found is None else text[: found[0]]


def first_stop(text: str, stop: Iterable[str]) -> tuple[int, str] | None:
    """Return the position of the first stop in a text and the stop itself; None if there is none."""
    places = [(place, one) for one in stop if one and (place := text.find(one)) >= 0]
    return min(places, key=lambda found: found[0], default=None)


class Cutter:
    """Cuts a streamed text at its first stop; holds back what may be the beginning of a stop.

    Attributes:
        whole: the text that is certain so far.
        ended: the stop that ended the text; None before.
    """

    def __init__(self, stop: Sequence[str]) -> None:
        self._stops = [one for one in stop if one]
        self._begun = {one[:size] for one in self._stops for size in range(1, len(one))}
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""
        self.whole = ""
        self.ended: str | None = None

    def feed(self, piece: str) -> str:
        """Add a piece and return the text that became certain."""
        text = self._held + piece
        first = max(0, len(text) - self._longest + 1)
        waits = next((at for at in range(first, len(text)) if text[at:] in self._begun), len(text))
        return self._cut_text(text, waits)

    def close(self) -> str:
        """Return the rest of the text at its end."""
        return self._cut_text(self._held, len(self._held))

    def _cut_text(self, text: str, waits: int) -> str:
        if self.ended is not None:
            return ""
        found = first_stop(text, self._stops)
        if found is not None and found[0] <= waits:
            waits, self.ended = found
        self.whole, self._held = self.whole + text[:waits], text[waits:]
        return text[:waits]
