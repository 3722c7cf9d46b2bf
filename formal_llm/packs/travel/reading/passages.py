"""A text with the parts of it that have been understood, and whether it asks for what it mentions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from importlib.resources import files

from formal_llm.authored.tables import parse_toml
from formal_llm.packs.travel.reading.numbers import CLOCK, COUNT, DIGITS, IN_WORDS

_TABLES = parse_toml(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"), "words.toml")
_PARTS = {"count": COUNT, "clock": CLOCK, "digits": DIGITS, "in_words": IN_WORDS} | _TABLES["parts"]


def read_forms(table: str) -> dict[str, re.Pattern[str]]:
    """Return the forms in a table of ``words.toml``, by their names."""
    forms: dict[str, re.Pattern[str]] = {}
    for name, text in _TABLES[table].items():
        for _ in range(2):  # a part may have parts
            text = re.sub(r"\{([a-z_]+)\}", lambda part: _PARTS[part[1]], text)
        forms[name] = re.compile(text.replace("\n", ""), re.IGNORECASE)
    return forms


_FILLER = frozenset(_TABLES["filler"].split())
_FORMS = read_forms("stances")
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ings?|ed|es|s|e|ly)$")
_CLAUSE = re.compile(r"[^.;!?,:\n()]+(?:\.(?=\S)[^.;!?,:\n()]*)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+", re.UNICODE)


class Stance(StrEnum):
    """What a text says about something that it mentions."""

    wanted = "wanted"
    only = "only"
    excluded = "excluded"
    open = "open"  # neither asked for nor excluded: "we would not mind flying"
    unclear = "unclear"


class Passage:
    """A text with the parts of it that have been understood.

    Args:
        text: the text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._understood = bytearray(len(text))

    def mark_spans(self, *spans: tuple[int, int]) -> None:
        """Mark spans of the text as understood."""
        for begin, end in spans:
            self._understood[begin:end] = b"\1" * (end - begin)

    def is_free(self, begin: int, end: int) -> bool:
        """Return whether no part of a span has been understood yet."""
        return not any(self._understood[begin:end])

    def left_over(self) -> Iterator[str]:
        """Iterate over what was not understood: whole sentences and clauses, single words and numbers in the others."""
        for begin, end in self.clauses:
            words = [(one.start() + begin, one.end() + begin) for one in _WORD.finditer(self.text[begin:end])]
            remaining = [span for span in words if self.is_free(*span) and self._is_meaningful(*span)]
            sentence = self.sentence_span(begin)
            scope = sentence if self.is_free(*sentence) else (begin, end)
            text = self.text[slice(*scope)]
            wishes = len(_WORD.findall(text)) > 2 and any(_FORMS[name].search(text) for name in ("negations", "wish"))
            if (remaining or wishes) and self.is_free(*scope):
                yield text.strip(" -–—…\"'")
            else:
                yield from (self.text[a:b] for a, b in self._join_words(remaining))

    def is_plain(self, begin: int, end: int) -> bool:
        """Return whether a span has no word that describes a trip by itself and has not been understood."""
        words = [(one.start() + begin, one.end() + begin) for one in _WORD.finditer(self.text[begin:end])]
        return not any(self.is_free(*span) and self._is_meaningful(*span) for span in words)

    def _join_words(self, words: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Join adjacent words without understood text between them to spans."""
        run: list[tuple[int, int]] = []
        for word in words:
            if run and not self.is_free(run[0][0], word[1]):
                yield run[0][0], run[-1][1]
                run = []
            run.append(word)
        if run:
            yield run[0][0], run[-1][1]

    def _is_meaningful(self, begin: int, end: int) -> bool:
        """Return whether a word describes a trip by itself; contractions such as "I'd" and "we're" do not."""
        word = self.text[begin:end].casefold()
        return (
            _ENDING.sub("", word) not in _FILLER and not re.search(r"['’]", word) and (len(word) > 1 or word.isdigit())
        )

    def find_stance(self, begin: int, end: int) -> Stance:
        """Return what the clause around a mention says about it.

        Negations are counted within the part of the clause that no "and" or "but" separates from the mention; phrases
        such as "not necessary", and "anything but", come first. What is understood of the clause is marked.
        """
        left_begin, right_end = self.clause_span(begin)
        before, behind = self.text[left_begin:begin], self.text[end:right_end]
        if all_but := _FORMS["all_but"].search(before):
            self.mark_spans((left_begin + all_but.start(), begin))
            denied = bool(_FORMS["negations"].search(before[: all_but.start()]))
            return Stance.only if denied != all_but["all"].casefold().startswith("no") else Stance.excluded
        cleft = _FORMS["only"].search(before) and _FORMS["cleft"].match(behind)
        behind = _FORMS["relative"].split(_FORMS["joins"].split(behind)[0])[0]
        *begun, before = _FORMS["begins"].split(_FORMS["joins"].split(before)[-1])
        if begun and _FORMS["supposes"].search(begun[-1]):
            before = begun[-1] + before
        # "Avoid, if possible, any flights": a clause without a verb of its own continues the one before.
        first, last = self.sentence_span(begin)
        earlier = [span for span in self.clauses if first <= span[0] and span[1] <= left_begin][-2:]
        dangling = [one for one in earlier if _FORMS["dangling"].search(self.text[slice(*one)])]
        if dangling and before.strip() in ("", "any", "the", "all"):
            self.mark_spans(*dangling)
            return Stance.excluded
        in_front, after = (begin - len(before), before), (end, behind)
        self._find_spans("subject", in_front)
        if self._find_spans("open_before", in_front) or self._find_spans("open_behind", after):
            return Stance.open
        negations, only = (self._find_spans(name, in_front, after) for name in ("negations", "only"))
        if cleft:  # "only the train that we cannot take"
            self.mark_spans((end, end + cleft.end()))
            return Stance.excluded
        asks = _FORMS["question"].search(self.text[first : last + 1])
        if len(negations) > 2 or asks or _FORMS["if"].search(self.text[left_begin:right_end]):
            return Stance.unclear
        # "We do not miss shared rooms": of an unknown word between them nobody knows what it does to the negation.
        if not negations and any(_FORMS["doubt"].search(part) for part in (before, behind)):
            return Stance.unclear
        near = negations if len(negations) == 1 else [] if negations else only[:1]
        for one in near:
            between = min(one[1], end), max(begin, one[0])
            if not self.is_plain(*between) or (negations and _FORMS["partly"].search(self.text[slice(*between)])):
                return Stance.unclear
        later = self.text[end : near[0][0]] if near and near == only[:1] and near[0][0] > end else None
        if later is not None and (_FORMS["verb"].search(later) or not self.is_plain(end, right_end)):
            return Stance.unclear  # "a car would only cost money", "only in an emergency"
        return Stance.excluded if len(negations) == 1 else Stance.only if near else Stance.wanted

    def _find_spans(self, name: str, *parts: tuple[int, str]) -> list[tuple[int, int]]:
        """Find a form in parts of the text, each with its place, and mark what is found."""
        found = [(at + one.start(), at + one.end()) for at, part in parts for one in _FORMS[name].finditer(part)]
        self.mark_spans(*found)
        return found

    @cached_property
    def clauses(self) -> tuple[tuple[int, int], ...]:
        """The spans of the clauses, the parts between commas, full stops and the like."""
        return tuple(found.span() for found in _CLAUSE.finditer(self._plain) if found.group().strip())

    def clause_span(self, place: int) -> tuple[int, int]:
        """Return the span of the clause around a position."""
        index = bisect_right(self.clauses, (place, len(self.text))) - 1
        return self.clauses[index] if index >= 0 and place < self.clauses[index][1] else (place, place)

    def quote_clause(self, place: int) -> str:
        """Return the clause around a position."""
        return self.text[slice(*self.clause_span(place))].strip()

    def sentence_span(self, place: int) -> tuple[int, int]:
        """Return the span of the sentence around a position."""
        begin = max(self._plain.rfind(sign, 0, place) for sign in ".;!?\n") + 1
        ends = [at for sign in ".;!?\n" if (at := self._plain.find(sign, place)) >= 0]
        return begin, min(ends, default=len(self._plain))

    @cached_property
    def _plain(self) -> str:
        return protect_signs(self.text)


def protect_signs(text: str) -> str:
    """Return a text of the same length without the punctuation in numbers and abbreviations, which ends no clause."""
    text = re.sub(r"(?<=\d)[.,:](?=\d)", "_", text)
    text = re.sub(r"\b(St|Mt|Ft|Mr|Mrs|Dr|max|approx|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.", r"\1_", text)
    return re.sub(r"(?<=\d)\.(?=\s*[-–]|\s+[A-Z][a-z]+\s+\d{4})", "_", text)
