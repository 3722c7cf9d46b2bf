"""No marker inside a content: which tokens would write one.

The first marker that comes up in a text counts, and of those that end at the same place the longest: so whoever splits
the text (:class:`~formal_llm.agents.markers.Markers`) finds the same marker as the mask. A token is doubtful where a
marker comes up by it.
"""

from __future__ import annotations

from collections.abc import Iterator

from formal_llm.agents.decoding.contents import Written
from formal_llm.agents.decoding.masks import Mask
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary


class MarkerWatch:
    """Looks for markers in what a token would add to a text.

    Args:
        vocabulary: the tokens of the model.
        what: what may be written, with its markers.

    Attributes:
        longest: how many bytes the longest marker has.
    """

    def __init__(self, vocabulary: TokenVocabulary, what: Written) -> None:
        self.vocabulary = vocabulary
        self._legal = {marker.encode() for marker in what.markers}
        self._markers = [marker.encode() for marker in (*what.markers, *what.never)]
        self.longest = max(map(len, self._markers))
        #: Tokens in which a whole marker stands.
        self._inside = [
            token for token, piece in enumerate(vocabulary.pieces) if any(marker in piece for marker in self._markers)
        ]
        self._beginning: dict[bytes, tuple[int, ...]] = {}

    def doubtful(self, text: bytes, mask: Mask) -> Iterator[int]:
        """The tokens of a mask by which a marker comes up behind ``text``."""
        rests = {
            marker[size:]
            for marker in self._markers
            for size in range(1, min(len(marker), len(text) + 1))
            if text.endswith(marker[:size])
        }
        tokens = dict.fromkeys(token for rest in rests for token in self._begin(rest))
        tokens |= dict.fromkeys(self._inside)
        for token in tokens:
            if mask[token >> 5] >> (token & 31) & 1:
                yield token

    def completed(self, text: bytes, token: int) -> bool | None:
        """What a token does behind a text.

        Returns:
            None where no marker comes up; else whether the first that does may follow the content and ends the token.
        """
        piece = self.vocabulary.pieces[token] if token < len(self.vocabulary.pieces) else b""
        whole = text[-self.longest :] + piece
        before = len(whole) - len(piece)
        for end in range(before + 1, len(whole) + 1):
            found = [marker for marker in self._markers if whole.endswith(marker, 0, end)]
            if found:
                return end == len(whole) and max(found, key=len) in self._legal
        return None

    def _begin(self, rest: bytes) -> tuple[int, ...]:
        """The tokens that begin so."""
        if rest not in self._beginning:
            self._beginning[rest] = tuple(self.vocabulary.beginning(rest))
        return self._beginning[rest]
