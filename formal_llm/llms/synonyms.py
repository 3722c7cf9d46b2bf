"""``builtin:synonyms``: words of WordNet that mean the same, from the lexicon that the package ``oyemi`` carries.

WordNet lists every sense of a word and does not know which one is meant, so a synonym counts less than the word itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache

from formal_llm.errors import MissingDependency
from formal_llm.llms.builtin import content_words, equal_stems, stem, told
from formal_llm.llms.question import Term

#: How much a terminal speaks of a word of which it has a synonym.
SHARE = 0.6


class SynonymLikeness:
    """As :func:`~formal_llm.llms.builtin.equal_stems`, and a share of that where a terminal has a synonym of the word.

    Args:
        synonyms: the synonyms of a word; those of WordNet where left out.

    Raises:
        MissingDependency: ``oyemi`` is not installed.
    """

    def __init__(self, synonyms: Callable[[str], list[str]] | None = None) -> None:
        self._lock = threading.Lock()
        self._synonyms = synonyms or _wordnet()
        self._known = lru_cache(maxsize=16_384)(self._families)

    def __call__(self, words: tuple[str, ...], terms: tuple[Term, ...]) -> list[dict[int, float]]:
        """As :data:`~formal_llm.llms.builtin.Likeness`."""
        found = equal_stems(words, terms)
        for term, shares in zip(terms, found, strict=True):
            said = content_words(told(term))
            own, near = {stem(word) for word in said}, {family for word in said for family in self._known(word)}
            for place, word in enumerate(words):
                if place not in shares and (stem(word) in near or not own.isdisjoint(self._known(word))):
                    shares[place] = SHARE
        return found

    def _families(self, word: str) -> frozenset[str]:
        """The stems of the synonyms of a word that are one word."""
        with self._lock:  # one connection to a database
            found = self._synonyms(word.casefold())
        return frozenset(stem(one) for one in found if len(content_words(one)) == 1)


def _wordnet() -> Callable[[str], list[str]]:
    try:
        from Oyemi import find_synonyms
    except ImportError as error:
        raise MissingDependency("synonyms need the lexicon of oyemi: pip install 'formal-llm[synonyms]'") from error
    return lambda word: list(find_synonyms(word))
