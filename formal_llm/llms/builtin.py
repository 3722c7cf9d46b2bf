"""``builtin``: an honest offline stand-in for an LLM, without a language model.

It compares words. The fewer terminals mention a word of the task (in label or description), the more the word is worth;
the value of a plan is that of the words its terminals cover, minus a price for each terminal. The value of an option is
that of its own terminals and of the best continuation that the question's outlook allows. It understands nothing:
no negation, and no order of events except the order in which the task mentions things.

A :data:`Likeness` measures how well terminals match a word of the task. ``builtin`` only compares stems,
``builtin:minilm`` also uses the similarities of a sentence encoder.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Outlook, Prospect, Question, Term

#: The price of a terminal; a word that a single terminal mentions is worth 1.
PRICE = 0.3
#: Takes words of the task, as they are written, and terminals; returns for each terminal how well it matches each word,
#: from 0 to 1, by the index of the word; words that do not match are left out.
Likeness: TypeAlias = Callable[[tuple[str, ...], tuple[Term, ...]], Sequence[Mapping[int, float]]]
#: Called with the numbers of equally good options; the first of them is the answer.
OnTie: TypeAlias = Callable[[Question, tuple[int, ...]], None]

_WORD = re.compile(r"[^\W_]+")
_BRITISH = re.compile(r"(?<=\w{3})our")
_SUFFIXES = (
    "ization", "isation", "ation", "less", "ions", "ion", "ings", "ing", "ies", "ize", "ise", "ers", "er", "ed", "es",
    "at", "iz", "s", "e", "y",
)  # fmt: skip
_STOP_WORDS = frozenset([
    "a", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "could", "do", "does", "for", "from",
    "get", "gets", "give", "given", "gives", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in",
    "into", "is", "it", "its", "let", "me", "my", "of", "on", "one", "or", "our", "please", "return", "say", "says",
    "she", "should", "show", "shows", "so", "some", "step", "steps", "tell", "tells", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "those", "to", "up", "us", "use", "used", "was", "we", "were",
    "what", "where", "which", "who", "will", "with", "would", "you", "your",
])  # fmt: skip


def content_words(text: str) -> tuple[str, ...]:
    """Return the meaningful words of ``text``, in order; in lower case, except names inside a sentence."""
    found = []
    for match in _WORD.finditer(text):
        word, before = match.group(), text[: match.start()].rstrip()
        if word.casefold() not in _STOP_WORDS:
            found.append(word if before and (before[-1].isalnum() or before[-1] == ",") else word.casefold())
    return tuple(found)


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Return a word without its endings."""
    found = _BRITISH.sub("or", word.casefold())
    while (ending := next((e for e in _SUFFIXES if found.endswith(e) and len(found) - len(e) >= 3), None)) is not None:
        found = found[: -len(ending)]
    return found


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """Return the meaningful words of ``text``, without their endings, in order."""
    return tuple(map(stem, content_words(text)))


def term_text(term: Term) -> str:
    """Return the label and the description of a terminal."""
    return f"{term.label} {term.description}"


def equal_stems(words: tuple[str, ...], terms: tuple[Term, ...]) -> list[dict[int, float]]:
    """Match words by their stems: 1 for each word whose stem occurs in the terminal, otherwise nothing."""
    known = [frozenset(stems(term_text(term))) for term in terms]
    return [{place: 1.0 for place, word in enumerate(words) if stem(word) in stems_here} for stems_here in known]


class BuiltinLLM(LLM):
    """Chooses options by the words they share with the task; see the module's docstring.

    Args:
        likeness: measures how well terminals match words.
        on_tie: called for each question whose best options are equally good.
    """

    def __init__(self, likeness: Likeness = equal_stems, on_tie: OnTie | None = None) -> None:
        self.likeness = likeness
        self.on_tie = on_tie

    def answer(self, question: Question, /) -> Answer:
        """Choose the option, or the options, of the highest value; the first of equals, after calling ``on_tie``."""
        outlook = question.outlook
        if outlook is None:  # each option uses what its text names
            outlook = Outlook((), tuple(Prospect((Term(option.text, option.text),)) for option in question.options))
        values = _Values(content_words(question.task), outlook, self.likeness)
        scores = [values.of(prospect) for prospect in outlook.prospects]
        if question.several:
            wanted = [number for number, prospect in enumerate(outlook.prospects, 1) if values.wanted(prospect)]
            if wanted:
                return Answer(question.nearest(wanted))
        best = tuple(number for number, score in enumerate(scores, 1) if score == max(scores))
        if len(best) > 1 and self.on_tie is not None:
            self.on_tie(question, best)
        return Answer(question.nearest(best[:1]) if question.several else best[:1])


def worths(question: Question, likeness: Likeness = equal_stems) -> list[float] | None:
    """Compute the value of each option from the words it covers; a word of a single terminal is worth 1.

    Return None if the question has no outlook.
    """
    outlook = question.outlook
    if outlook is None:
        return None
    values = _Values(content_words(question.task), outlook, likeness)
    return [values.of(prospect)[0] for prospect in outlook.prospects]


class _Values:
    """The values of terminals for a task at one question."""

    def __init__(self, words: tuple[str, ...], outlook: Outlook, likeness: Likeness) -> None:
        terms = {t.name: t for p in outlook.prospects for t in (*p.uses, *(allowed for allowed, _ in p.allows))}
        terms |= {term.name: term for term in outlook.so_far}
        matches = likeness(words, tuple(terms.values()))
        #: For each terminal how well it matches each stem of the task's words.
        self._spoken: dict[str, dict[str, float]] = {}
        for name, matched in zip(terms, matches, strict=True):
            found = self._spoken[name] = {}
            for place, share in matched.items():
                family = stem(words[place])
                found[family] = max(share, found.get(family, 0.0))
        totals: Counter[str] = Counter()
        for found in self._spoken.values():
            totals.update(found)
        self._weight = {family: 1 / max(share, 1.0) for family, share in totals.items()}
        self._covered = self._match_stems(outlook.so_far)
        self._place = {stem(word): place for place, word in enumerate(words)}
        self._prefix = outlook.prefix

    def _match_stems(self, terms: Sequence[Term], covered: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return how well the terminals together match each stem, starting from ``covered``."""
        found = dict(covered or {})
        for term in terms:
            for family, share in self._spoken[term.name].items():
                found[family] = max(share, found.get(family, 0.0))
        return found

    def _compute_gain(self, words: Mapping[str, float], covered: Mapping[str, float]) -> float:
        return sum(self._weight[family] * max(share - covered.get(family, 0.0), 0.0) for family, share in words.items())

    def wanted(self, prospect: Prospect) -> bool:
        """Return whether the value of an option's own terminals exceeds their price."""
        return self._compute_gain(self._match_stems(prospect.uses), self._covered) > PRICE * len(prospect.uses)

    def of(self, prospect: Prospect) -> tuple[float, float, float]:
        """Return (value of the best plan with this option, place in the task of what it adds, likeness to the task)."""
        uses = self._match_stems(prospect.uses)
        value = self._compute_gain(uses, self._covered) - PRICE * (len(prospect.uses) + prospect.length)
        covered = self._match_stems(prospect.uses, self._covered)
        # The best continuation, greedily: add the terminal with the largest gain after its price, while there is one.
        rest = [(term, PRICE * detour) for term, detour in prospect.allows if self._spoken[term.name]]
        while rest:
            gain, best = max(
                ((self._compute_gain(self._spoken[term.name], covered) - price, term) for term, price in rest),
                key=lambda entry: entry[0],
            )
            if gain <= 0:
                break
            value += gain
            covered = self._match_stems((best,), covered)
        added = [self._place[family] for family in uses if family not in self._covered]
        place = float(max(added, default=-1) if self._prefix else -min(added, default=len(self._place)))
        return round(value, 9), place, round(self._compute_gain(uses, {}), 9)
