"""``builtin``: an honest offline stand-in for an LLM. It is not one.

It compares words. Each task word is worth the more, the fewer terminals speak of it (in label or description); a plan
is worth the words its terminals cover, less a price for each terminal. An option is valued by what it uses at once and
by the best that its rest still allows, as far as the question's outlook tells. It understands nothing: no negation, no
synonyms, no order of events but the order in which the task mentions things.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from formal_llm.llms.question import Answer, Outlook, Prospect, Question, Term

#: What one more terminal costs; a word that a single terminal speaks of is worth 1.
PRICE = 0.3

_WORD = re.compile(r"[^\W_]+")
_SUFFIXES = (
    "ization", "isation", "ation", "ions", "ion", "ings", "ing", "ies", "ers", "er", "ed", "es", "at", "s", "e",
    "y",
)  # fmt: skip
_STOP_WORDS = frozenset([
    "a", "an", "and", "are", "as", "at", "by", "for", "from", "give", "gives", "given", "how", "i", "in", "into",
    "is", "it", "its", "of", "on", "one", "or", "return", "show", "shows", "step", "steps", "that", "the", "then",
    "they", "this", "to", "use", "used", "with", "what",
])  # fmt: skip


@lru_cache(maxsize=4096)
def stems(text: str) -> tuple[str, ...]:
    """The words of ``text`` that carry meaning, without their endings, in order."""
    found = []
    for word in _WORD.findall(text.casefold()):
        if word in _STOP_WORDS:
            continue
        stem = word
        while (
            ending := next((e for e in _SUFFIXES if stem.endswith(e) and len(stem) - len(e) >= 3), None)
        ) is not None:
            stem = stem[: -len(ending)]
        found.append(stem)
    return tuple(found)


def _words(terms: Iterable[Term]) -> set[str]:
    return {stem for term in terms for stem in stems(f"{term.label} {term.description}")}


class BuiltinLLM:
    """Chooses options by the words they share with the task; see the module for what that means."""

    def choose(self, question: Question) -> Answer:
        """The option, or options, of the highest value; the first of equals."""
        task = stems(question.task)
        outlook = question.outlook
        if outlook is None:  # each option uses what its text names
            outlook = Outlook((), tuple(Prospect((Term(option.text, option.text),)) for option in question.options))
        values = _Values(task, outlook)
        scores = [values.of(prospect) for prospect in outlook.prospects]
        best = scores.index(max(scores)) + 1
        if question.several:
            wanted = [number for number, prospect in enumerate(outlook.prospects, 1) if values.wanted(prospect)]
            return Answer(tuple(wanted or [best]))
        return Answer((best,))


class _Values:
    """What terminals are worth for a task at one question."""

    def __init__(self, task: Sequence[str], outlook: Outlook) -> None:
        terms = {t.name: t for p in outlook.prospects for t in (*p.uses, *(allowed for allowed, _ in p.allows))}
        terms |= {term.name: term for term in outlook.so_far}
        speak = Counter(word for term in terms.values() for word in _words((term,)))
        self._weight = {word: 1 / speak[word] for word in task if speak[word]}
        self._covered = _words(outlook.so_far)
        self._place = {word: place for place, word in enumerate(task)}
        self._backward = outlook.backward

    def _gain(self, words: set[str], covered: set[str]) -> float:
        return sum(self._weight[word] for word in words - covered if word in self._weight)

    def wanted(self, prospect: Prospect) -> bool:
        """Whether what it uses at once pays."""
        return self._gain(_words(prospect.uses), self._covered) > PRICE * len(prospect.uses)

    def of(self, prospect: Prospect) -> tuple[float, float, float]:
        """(worth of the best plan through it, place of what it adds in the task, likeness to the task)."""
        uses = _words(prospect.uses)
        value = self._gain(uses, self._covered) - PRICE * (len(prospect.uses) + prospect.length)
        covered = self._covered | uses
        # The best of the rest, greedily: the terminal that adds most for its detour, as long as it pays.
        rest = [(_words((term,)), PRICE * detour) for term, detour in prospect.allows]
        while rest:
            gain, best = max(((self._gain(words, covered) - price, words) for words, price in rest), key=lambda e: e[0])
            if gain <= 0:
                break
            value += gain
            covered = covered | best
        added = [self._place[word] for word in uses - self._covered if word in self._weight]
        place = float(max(added, default=-1) if self._backward else -min(added, default=len(self._place)))
        return round(value, 9), place, self._gain(uses, set())
