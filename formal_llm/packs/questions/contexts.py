"""A corpus of the paragraphs of questions, so that HotpotQA can be searched without a dump of Wikipedia."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from formal_llm.agents.tools.articles import Article
from formal_llm.agents.tools.corpus import Corpus
from formal_llm.agents.tools.corpus_file import build_corpus
from formal_llm.packs.questions.loading import QuizQuestion


class ContextArticles:
    """The paragraphs of questions as articles, each title once, for :func:`~formal_llm.agents.tools.build_corpus`.

    Args:
        questions: questions with paragraphs, such as those of HotpotQA.

    Raises:
        ValueError: no question has paragraphs.
    """

    def __init__(self, questions: Iterable[QuizQuestion]) -> None:
        found: dict[str, Article] = {}
        for question in questions:
            for title, sentences in question.context:
                found.setdefault(title, Article(title, "\n".join(sentence.strip() for sentence in sentences)))
        if not found:
            raise ValueError("the questions come without paragraphs; those of HotpotQA have them")
        self._articles = list(found.values())

    @property
    def fingerprint(self) -> str:
        """A hash of the paragraphs."""
        digest = hashlib.sha256()
        for article in self._articles:
            digest.update(repr((article.title, article.text)).encode(errors="replace"))
        return digest.hexdigest()

    def read(self, skip: int = 0) -> Iterator[Article]:
        """Yield the articles in the order of the first occurrence of their titles."""
        yield from self._articles[skip:]

    def corpus(self, folder: Path) -> Corpus:
        """Open the corpus of these articles, in a file of a folder that is built if missing.

        Raises:
            InputError: the file cannot be written.
        """
        place = folder / f"corpus-{self.fingerprint[:16]}.sqlite"
        if not place.exists():
            build_corpus(self, place)
        return Corpus(place)

    def share(self) -> float:
        """Return 1: all articles are available immediately."""
        return 1.0
