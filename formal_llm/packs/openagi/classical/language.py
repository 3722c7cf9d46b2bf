"""Text tools without weights: the sentiment of a text, its most informative sentences, the sentence that answers.

They select parts of the text and invent nothing.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
#: A sentence ends with a mark and quotes before a blank; not after a title or an initial, nor before lower case.
_END = re.compile(r"(?<!\bMr)(?<!\bMrs)(?<!\bDr)(?<!\bSt)(?<!\b[A-Z])[.!?…]+[\"'”’)]*\s+(?=[^\sa-z])")
_COMMON = frozenset(
    """a about after all also am an and any are as at be because been before being but by can could did do does doing
    down for from had has have having he her hers him his how i if in into is it its itself just many me more most much
    my no nor not of off on once only or other our out over own same she should so some such than that the their them
    then there these they this those through to too under until up upon very was we were what when where which while who
    whom whose why will with would you your""".split()  # noqa: SIM905  # read as lines of words
)


def sentiment(text: str) -> str:
    """Determine the sentiment of an English text: ``"positive"``, ``"negative"`` or ``"neutral"``.

    This is VADER (Hutto and Gilbert 2014): a lexicon of sentiment words, with rules for negation and emphasis. It
    misses irony and what is only implied. Neutral is a compound score between -0.05 and 0.05, as its authors recommend.

    Args:
        text: the text; the mean over its sentences counts.
    """
    scores = [_load_analyzer().polarity_scores(sentence)["compound"] for sentence in split_sentences(text)]
    mean = sum(scores) / len(scores) if scores else 0.0
    return "positive" if mean >= 0.05 else "negative" if mean <= -0.05 else "neutral"


def summarization(text: str) -> str:
    """Select the most informative sentences of a text, in order: a third of them, at least one and at most three.

    A sentence is informative if its words occur often in the text (Luhn 1958); common words do not count, the first
    sentence counts somewhat more, and words that the summary already has count a quarter.
    """
    found = split_sentences(text)
    stemmed = [stem_words(sentence) for sentence in found]
    bags = list(map(set, stemmed))
    counts = Counter(chain.from_iterable(stemmed))
    covered: set[str] = set()
    chosen: list[int] = []
    for _ in range(min(max(round(len(found) / 3), 1), 3, len(found))):
        remaining = [place for place in range(len(found)) if place not in chosen]
        weights = {stem: count / 4 if stem in covered else count for stem, count in counts.items()}
        worth = {place: sum(weights[stem] for stem in bags[place]) / (3 + len(bags[place])) for place in remaining}
        if 0 in worth:
            worth[0] *= 1.25
        best = max(remaining, key=worth.__getitem__)
        chosen.append(best)
        covered |= bags[best]
    return " ".join(found[place] for place in sorted(chosen))


def question_answering(document: str, question: str) -> str:
    """Find the passage of a document that answers a question about it.

    It is the sentence that shares the rarest words with the question; of it only a number if the question asks how
    many, a year or date if it asks when, names if it asks who, provided that the question does not already contain
    them. Document and question may be in either order.
    """
    document, question = document_first(document, question)
    found = best_sentences(document, question, 1)
    return (_find_part(found[0], question) or found[0]) if found else ""


def best_sentences(document: str, question: str, most: int) -> list[str]:
    """Return the sentences of a document that share the rarest words with a question, at most ``most``, in order."""
    found = split_sentences(document)
    question_stems = set(stem_words(question))
    bags = [set(stem_words(sentence)) for sentence in found]
    frequency = Counter(stem for bag in bags for stem in bag)

    def weigh_sentence(place: int) -> float:
        return sum(math.log(1 + len(found) / frequency[stem]) for stem in sorted(question_stems & bags[place]))

    return [found[place] for place in sorted(sorted(range(len(found)), key=weigh_sentence, reverse=True)[:most])]


def document_first(document: str, question: str) -> tuple[str, str]:
    """Return the document and the question in this order; the question is the text that ends with a question mark."""
    turned = document.rstrip().endswith("?") and not question.rstrip().endswith("?")
    return (question, document) if turned else (document, question)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences, each on one line."""
    flat = " ".join(text.split())
    ends = [0, *(match.end() for match in _END.finditer(flat)), len(flat)]
    parts = (flat[begin:end].strip() for begin, end in pairwise(ends))
    return [part for part in parts if part]


def words(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return [word.casefold() for word in _WORD.findall(text)]


_NUMBER = re.compile(
    r"\b(?:\d[\d.,]*\d|\d|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|"
    r"seventy|eighty|ninety|hundred|thousand)(?:[ -](?:hundred|thousand|million))?\b",
    re.IGNORECASE,
)
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(rf"\b(?:(?:\d{{1,2}} )?(?:{_MONTHS})(?: \d{{1,2}},?)?(?: \d{{4}})?|1\d{{3}}|20\d\d)\b")
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?: (?:(?:of|de|van|von) )?[A-Z][\w'’-]+)*")

#: The kinds of questions, and the patterns of the parts of a sentence that answer them.
_PARTS = (
    (r"\bhow (?:many|much|old|long|tall|high|far)\b", _NUMBER),
    (r"\b(?:when|what year|which year)\b", _DATE),
    (r"\bwho(?:m|se)?\b", _NAME),
)


def _find_part(sentence: str, question: str) -> str:
    """Find the part of a sentence that the kind of question asks for; empty if there is none."""
    normalized = " ".join(words(question))
    pattern = next((part for kind, part in _PARTS if re.search(kind, normalized)), None)
    if pattern is None:
        return ""
    known = set(words(question)) | _COMMON
    new = [match for match in pattern.finditer(sentence) if not set(words(match[0])) <= known]
    # The first word of a sentence is capitalized even if it is not a name.
    inside = [match for match in new if match.start() > 0] if pattern is _NAME else new
    return next((match[0] for match in inside or new), "")


def stem_words(text: str) -> list[str]:
    """Return the stems of the meaningful English words (Porter 2001, Snowball)."""
    from snowballstemmer import stemmer  # type: ignore[import-untyped]  # it has no type hints

    meant = [word.replace("’", "'") for word in words(text) if word not in _COMMON]
    # A stemmer keeps its current word, so threads must not share one.
    stemmed: list[str] = stemmer("english").stemWords(meant)
    return stemmed


@cache
def _load_analyzer() -> SentimentIntensityAnalyzer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it opens its lexicon as Python 2 did
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

        return SentimentIntensityAnalyzer()
