r"""Markers: the texts that announce the states of an agent, in what it writes: ``[Thought] ... [Action] ...``.

A text is split at its markers, the leftmost first, of several at one place the longest. What a model streams is split
as it comes: what may be the beginning of a marker is held back until more is known (:class:`Splitter`).

What comes from outside, the result of a tool for instance, may hold markers, by chance or by malice. It is shown with a
backslash after the first sign of each: ``[\Answer] 42``. So no marker occurs in it, and what was there can be restored
exactly.

Why that can be undone: take a text without its backslashes. Where a marker occurs in *that*, however many backslashes
stood inside, there is a gap after its first sign. Escaping puts one more backslash into each of these gaps, restoring
takes one out, and neither changes where the gaps are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from formal_llm.authored.files import lines_of
from formal_llm.automata.models.behaviour import Behaviour

#: Signs that may be put into markers, the first one that no marker holds.
_SIGNS = "\\~^`¦"


class Piece(NamedTuple):
    """A part of a text: a marker and the text after it, up to the next one.

    Attributes:
        marker: the marker; None for text before any marker, and in a stream for text that continues the last piece.
        text: what follows it, untouched.
    """

    marker: str | None
    text: str


class Markers:
    """The markers of an agent.

    Args:
        texts: for each state the text that announces it; states with an empty text have no marker.

    Attributes:
        states: for each marker the states that it announces, in the order of declaration.
        sign: what escapes them.

    Raises:
        ValueError: a marker is shorter than two signs, begins or ends with a blank, or holds a line break: it could not
            be escaped, or not be distinguished from its text.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        found: dict[str, tuple[str, ...]] = {}
        for state, text in texts.items():
            if text:
                found[text] = (*found.get(text, ()), state)
                if len(text) < 2 or text.strip() != text or len(lines_of(text)) > 1:
                    raise ValueError(
                        f"the marker {text!r} of {state} must have two signs or more, no blank at its ends and no line "
                        "break inside"
                    )
        self.states: Mapping[str, tuple[str, ...]] = found
        self._texts = {state: text for state, text in texts.items() if text}
        self.sign: str = next(sign for sign in (*_SIGNS, "\ue000") if not any(sign in marker for marker in found))
        longest_first = sorted(found, key=len, reverse=True)
        self._marker = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        #: Each place where a marker stands: overlapping ones all count.
        self._place = re.compile(f"(?=({self._marker.pattern}))")
        #: What a text may end with that more could make a marker of.
        self._begun = {marker[:end] for marker in found for end in range(1, len(marker))}
        self._longest = max(map(len, found), default=0)

    @classmethod
    def of(cls, behaviour: Behaviour) -> Markers:
        """The markers of a behaviour."""
        return cls({name: state.text for name, state in behaviour.states.items()})

    def marker(self, state: str) -> str | None:
        """The marker of a state; None where it has none."""
        return self._texts.get(state)

    def split(self, text: str) -> tuple[Piece, ...]:
        """The pieces of a whole text; put together again they are the text."""
        splitter = Splitter(self)
        return join_pieces((*splitter.feed(text), *splitter.close()))

    def holds(self, text: str) -> bool:
        """Whether a marker occurs in a text."""
        return self._marker.search(text) is not None

    def escape(self, text: str) -> str:
        """A text from outside, as it is shown: no marker occurs in it."""
        return self._change_gaps(text, lambda count: count + 1)

    def restore(self, text: str) -> str:
        """What :meth:`escape` was given."""
        return self._change_gaps(text, lambda count: max(count - 1, 0))

    def _change_gaps(self, text: str, changed: Callable[[int], int]) -> str:
        """A text with another number of signs in the gap after the first sign of each marker."""
        plain = text.replace(self.sign, "")
        gaps = {match.start() + 1 for match in self._place.finditer(plain)}
        if not gaps:
            return text
        parts: list[str] = []
        at = count = 0
        for letter in text:
            if letter == self.sign:
                count += 1
                continue
            parts.append(self.sign * (changed(count) if at in gaps else count) + letter)
            at, count = at + 1, 0
        parts.append(self.sign * count)
        return "".join(parts)

    def search(self, text: str, start: int) -> tuple[int, int] | None:
        """Where the first marker stands from ``start`` on: its begin and its end."""
        found = self._marker.search(text, start)
        return found and found.span()

    def begun(self, text: str, start: int) -> int:
        """Where the earliest beginning of a marker starts that reaches to the end of a text; its length if none."""
        end = len(text)
        first = max(start, end - self._longest + 1)
        return next((at for at in range(first, end) if text[at:] in self._begun), end)


class Splitter:
    """Splits a text that comes in chunks, wherever they are cut.

    Attributes:
        held: what is held back, since it may be the beginning of a marker.
    """

    def __init__(self, markers: Markers) -> None:
        self.markers = markers
        self.held = ""

    def feed(self, chunk: str) -> tuple[Piece, ...]:
        """What is certain after one more chunk; a piece without a marker continues the one before."""
        return self._split_text(self.held + chunk, last=False)

    def close(self) -> tuple[Piece, ...]:
        """The rest, when nothing more comes."""
        return self._split_text(self.held, last=True)

    def _split_text(self, text: str, *, last: bool) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        marker: str | None = None
        at = 0
        while True:
            found = self.markers.search(text, at)
            # A longer marker may begin where a short one stands, or before it: that is known only when more comes.
            begun = len(text) if last else self.markers.begun(text, at)
            if found is None or begun <= found[0]:
                pieces.append(Piece(marker, text[at:begun]))
                self.held = text[begun:]
                return tuple(piece for piece in pieces if piece.marker is not None or piece.text)
            pieces.append(Piece(marker, text[at : found[0]]))
            marker, at = text[found[0] : found[1]], found[1]


def join_pieces(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Pieces with those of a stream put together: each but the first has a marker."""
    found: list[Piece] = []
    for piece in pieces:
        if piece.marker is None and found:
            found[-1] = Piece(found[-1].marker, found[-1].text + piece.text)
        else:
            found.append(piece)
    return tuple(found)
