"""A text that is being read: what of it has been understood, and which of its clauses have not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Words that tell nothing of a trip, or only that one is wanted.
_FILLER = frozenset(
    [
        "a",
        "able",
        "about",
        "adult",
        "adventure",
        "afternoon",
        "again",
        "ahead",
        "all",
        "alone",
        "also",
        "altogether",
        "am",
        "an",
        "and",
        "any",
        "anything",
        "are",
        "around",
        "arrange",
        "arranging",
        "as",
        "assemble",
        "assist",
        "at",
        "available",
        "back",
        "be",
        "because",
        "been",
        "before",
        "begin",
        "beginning",
        "begins",
        "being",
        "best",
        "between",
        "book",
        "both",
        "break",
        "brief",
        "but",
        "by",
        "can",
        "city",
        "come",
        "comes",
        "coming",
        "compose",
        "conclude",
        "could",
        "craft",
        "crafting",
        "create",
        "creating",
        "day",
        "days",
        "dear",
        "depart",
        "departing",
        "departs",
        "departure",
        "design",
        "desired",
        "destination",
        "details",
        "develop",
        "devise",
        "do",
        "does",
        "draft",
        "each",
        "end",
        "ending",
        "ends",
        "enjoy",
        "ensure",
        "excited",
        "experience",
        "explore",
        "exploring",
        "fine",
        "first",
        "follow",
        "following",
        "for",
        "formulate",
        "from",
        "fully",
        "generate",
        "generating",
        "get",
        "getaway",
        "give",
        "go",
        "going",
        "good",
        "grateful",
        "great",
        "group",
        "guests",
        "happy",
        "have",
        "having",
        "head",
        "heading",
        "hello",
        "help",
        "helping",
        "hey",
        "hi",
        "holiday",
        "hope",
        "i",
        "idea",
        "if",
        "in",
        "individual",
        "into",
        "is",
        "it",
        "itinerary",
        "its",
        "journey",
        "just",
        "keep",
        "kind",
        "kindly",
        "last",
        "leave",
        "leaving",
        "let",
        "like",
        "little",
        "look",
        "looking",
        "lovely",
        "make",
        "making",
        "may",
        "me",
        "month",
        "more",
        "morning",
        "move",
        "moving",
        "much",
        "must",
        "my",
        "need",
        "needed",
        "needs",
        "new",
        "next",
        "nice",
        "night",
        "nights",
        "of",
        "off",
        "on",
        "one",
        "only",
        "open",
        "or",
        "organise",
        "organize",
        "our",
        "ourselves",
        "out",
        "outline",
        "over",
        "overall",
        "own",
        "people",
        "person",
        "persons",
        "place",
        "places",
        "plan",
        "planned",
        "planner",
        "planning",
        "please",
        "possible",
        "prefer",
        "preferred",
        "prepare",
        "proposal",
        "propose",
        "provide",
        "put",
        "quick",
        "ready",
        "request",
        "require",
        "return",
        "returning",
        "rough",
        "round",
        "schedule",
        "see",
        "set",
        "setting",
        "short",
        "should",
        "show",
        "sketch",
        "so",
        "some",
        "someone",
        "specific",
        "stay",
        "staying",
        "start",
        "starting",
        "starts",
        "state",
        "stop",
        "stopping",
        "such",
        "suggest",
        "take",
        "takes",
        "taking",
        "thank",
        "thanks",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "think",
        "this",
        "those",
        "through",
        "time",
        "to",
        "too",
        "total",
        "tour",
        "town",
        "towards",
        "travel",
        "traveler",
        "travelers",
        "traveling",
        "traveller",
        "travellers",
        "travelling",
        "travels",
        "trip",
        "trips",
        "two",
        "until",
        "up",
        "us",
        "vacation",
        "very",
        "via",
        "visit",
        "visiting",
        "visits",
        "wanna",
        "want",
        "wanted",
        "wants",
        "way",
        "we",
        "week",
        "weekend",
        "well",
        "what",
        "when",
        "where",
        "which",
        "while",
        "will",
        "wish",
        "with",
        "within",
        "would",
        "year",
        "you",
        "your",
        "yours",
        "hey",
        "everyone",
        "responsible",
        "proper",
        "thing",
        "things",
        "whole",
        "entire",
        "itinerary",
        "lasting",
        "spanning",
        "span",
        "duration",
        "period",
        "during",
        "approximately",
        "roughly",
        "total",
        "maximum",
        "max",
        "budget",
        "dollars",
        "money",
        "spend",
        "spending",
        "cost",
        "costs",
        "intend",
        "intending",
        "looking",
        "forward",
    ]
)
_CLAUSE = re.compile(r"[^.;!?,:\n()]+(?:\.(?=\S)[^.;!?,:\n()]*)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+", re.UNICODE)


@dataclass
class Passage:
    """A text, and the parts of it that have been understood.

    Attributes:
        text: the text.
        understood: begin and end of each part that has been.
    """

    text: str
    understood: list[tuple[int, int]] = field(default_factory=list)

    def mark(self, *spans: tuple[int, int]) -> None:
        """Note that these parts have been understood."""
        self.understood += spans

    def is_free(self, begin: int, end: int) -> bool:
        """Whether nothing of a part has been understood as something else."""
        return all(end <= a or b <= begin for a, b in self.understood)

    def left_over(self) -> Iterator[str]:
        """Clauses in which something is said that nobody understood: a number, or words of which none was."""
        for begin, end in self.clauses():
            clause = self.text[begin:end]
            marked = not self.is_free(begin, end)
            words = [
                (word.start() + begin, word.end() + begin, word.group())
                for word in _WORD.finditer(clause)
                if self.is_free(word.start() + begin, word.end() + begin)
            ]
            numbers = [word for _, _, word in words if word.isdigit()]
            telling = [word for _, _, word in words if word.casefold() not in _FILLER and not word.isdigit()]
            if numbers or (telling and not marked):
                yield clause.strip(" -–—…\"'")

    def clauses(self) -> Iterator[tuple[int, int]]:
        """Where each clause begins and ends: what stands between commas, full stops and the like."""
        at = 0
        for found in _CLAUSE.finditer(protected(self.text)):
            begin, end = found.span()
            assert begin >= at
            at = end
            if found.group().strip():
                yield begin, end

    def sentence_at(self, place: int) -> str:
        """The sentence around a place."""
        return self.text[slice(*self.sentence_span(place))]

    def sentence_span(self, place: int) -> tuple[int, int]:
        """Where the sentence around a place begins and ends."""
        plain = protected(self.text)
        begin = max(plain.rfind(sign, 0, place) for sign in ".;!?\n") + 1
        ends = [at for sign in ".;!?\n" if (at := plain.find(sign, place)) >= 0]
        return begin, min(ends, default=len(plain))


def protected(text: str) -> str:
    """A text of the same length in which no sign inside of a number or an abbreviation looks like the end of a clause."""
    text = re.sub(r"(?<=\d)[.,](?=\d)", "_", text)
    text = re.sub(r"\b(St|Mt|Ft|Mr|Mrs|Dr|max|approx|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\.", r"\1_", text)
    return re.sub(r"(?<=\d)\.(?=\s*[-–]|\s+[A-Z][a-z]+\s+\d{4})", "_", text)
