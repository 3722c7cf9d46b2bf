"""No marker inside a content: which tokens would write one.

The first marker that comes up in a text counts, and of those that end at the same place the longest: so whoever splits
the text (:class:`~formal_llm.agents.markers.Markers`) finds the same marker as the mask. A token is doubtful where a
marker comes up by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from formal_llm.agents.decoding.contents import SegmentPattern
from formal_llm.agents.decoding.masks import Mask
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary


class MarkerDetector:
    """Looks for markers in what a token would add to a text.

    Args:
        vocabulary: the tokens of the model.
        what: what may be written, with its markers.

    Attributes:
        longest: how many bytes the longest marker has: so much of the end of a text matters.
    """

    def __init__(self, vocabulary: TokenVocabulary, what: SegmentPattern) -> None:
        self.vocabulary = vocabulary
        self._legal = {marker.encode() for marker in what.markers}
        self._markers = [marker.encode() for marker in (*what.markers, *what.never)]
        self.longest = max(map(len, self._markers))
        begun = {marker[:size] for marker in self._markers for size in range(1, len(marker))}
        # Each mask asks these; an expression that is compiled answers in a fraction of a microsecond.
        self._begun = re.compile(rb"(?:%s)\Z" % b"|".join(map(re.escape, begun)) if begun else rb"(?!)")
        self._any = re.compile(b"|".join(map(re.escape, self._markers)))
        #: Tokens in which a whole marker stands, each with its word and bit in a mask.
        inside = [token for token, piece in enumerate(vocabulary.pieces) if self._any.search(piece)]
        self._inside = [(token, token >> 5, token & 31) for token in inside]
        self._beginning: dict[bytes, tuple[int, ...]] = {}

    def find_doubtful_tokens(self, end: bytes, mask: Mask) -> Iterator[int]:
        """The tokens of a mask by which a marker comes up behind a text that ends so."""
        for token, word, bit in self._inside:
            if int(mask[word]) >> bit & 1:
                yield token
        if self._begun.search(end):
            inside = {token for token, _, _ in self._inside}
            for token in self._find_completing_tokens(end) - inside:
                if int(mask[token >> 5]) >> (token & 31) & 1:
                    yield token

    def _find_completing_tokens(self, end: bytes) -> set[int]:
        """The tokens that write the rest of a marker which a text ends with the beginning of."""
        rests = {
            marker[size:]
            for marker in self._markers
            for size in range(1, min(len(marker), len(end) + 1))
            if end.endswith(marker[:size])
        }
        return {token for rest in rests for token in self._find_tokens_beginning(rest)}

    def check_completed_marker(self, end: bytes, token: int) -> bool | None:
        """What a token does behind a text that ends so.

        Returns:
            None where no marker comes up; else whether the first that does may follow the content and ends the token.
        """
        piece = self.vocabulary.pieces[token] if token < len(self.vocabulary.pieces) else b""
        whole = end[-self.longest :] + piece
        if self._any.search(whole) is None:
            return None
        before = len(whole) - len(piece)
        for place in range(before + 1, len(whole) + 1):
            found = [marker for marker in self._markers if whole.endswith(marker, 0, place)]
            if found:
                return place == len(whole) and max(found, key=len) in self._legal
        return None

    def _find_tokens_beginning(self, rest: bytes) -> tuple[int, ...]:
        """The tokens that begin so."""
        if rest not in self._beginning:
            self._beginning[rest] = tuple(self.vocabulary.find_tokens_beginning(rest))
        return self._beginning[rest]
