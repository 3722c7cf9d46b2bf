"""``builtin:synonyms``: the synonyms of WordNet, from the lexicon in the package ``oyemi``.

WordNet lists all senses of a word without knowing which one is meant, so a synonym counts less than the word itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache

from formal_llm.errors import MissingDependency
from formal_llm.llms.builtin import content_words, equal_stems, stem, term_text
from formal_llm.llms.question import Term

#: How well a terminal matches a word of which it has a synonym.
SHARE = 0.6


class SynonymLikeness:
    """Like :func:`~formal_llm.llms.builtin.equal_stems`; a synonym of the word in a terminal is a partial match.

    Args:
        synonyms: returns the synonyms of a word; by default those of WordNet.

    Raises:
        MissingDependency: ``oyemi`` is not installed.
    """

    def __init__(self, synonyms: Callable[[str], list[str]] | None = None) -> None:
        self._lock = threading.Lock()
        self._synonyms = synonyms or _load_wordnet()
        self._known = lru_cache(maxsize=16_384)(self._find_families)

    def __call__(self, words: tuple[str, ...], terms: tuple[Term, ...]) -> list[dict[int, float]]:
        """Measure the likeness, see :data:`~formal_llm.llms.builtin.Likeness`."""
        found = equal_stems(words, terms)
        for term, shares in zip(terms, found, strict=True):
            used = content_words(term_text(term))
            own, near = {stem(word) for word in used}, {family for word in used for family in self._known(word)}
            for place, word in enumerate(words):
                if place not in shares and (stem(word) in near or not own.isdisjoint(self._known(word))):
                    shares[place] = SHARE
        return found

    def _find_families(self, word: str) -> frozenset[str]:
        """Return the stems of the synonyms of a word that are single words."""
        with self._lock:  # the database has one connection
            found = self._synonyms(word.casefold())
        return frozenset(stem(one) for one in found if len(content_words(one)) == 1)


def _load_wordnet() -> Callable[[str], list[str]]:
    try:
        from Oyemi import find_synonyms
    except ImportError as error:
        raise MissingDependency("synonyms need the lexicon of oyemi: pip install 'formal-llm[synonyms]'") from error
    return lambda word: list(find_synonyms(word))
