"""A text of rules as sentences with their positions, each normalized so that it matches fewer patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from formal_llm.authoring.names import QUOTED, RESERVED
from formal_llm.authoring.simplifying import other_words

_NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
#: A number or bullet before a line; numbered lines are the steps of a procedure.
_BULLET = re.compile(r"[ \t]*(?:\(?\d{1,3}[.)]|[-*•])[ \t]+")
#: "Otherwise" continues the sentence before it.
_ELSE = r"(?:otherwise|else|if not)\b"
#: A clause that cancels an order of steps continues the sentence before it, too.
_WHICHEVER = r"it (?:does not|doesn't) matter (?:which|who|what)\b|only (?:then|afterwards)\b"
_END = re.compile(
    rf"(?:[.!?]|;(?!\s+(?i:{_WHICHEVER})))(?=\s|$)(?!\s+(?i:{_ELSE}))"
    r"|\n[ \t]*\n|\n(?=[ \t]*(?:\(?\d{1,3}[.)]|[-*•])[ \t])"
)

_WORD = rf"(?!(?:{'|'.join(sorted(RESERVED))})\b)[\w'-]+"
#: A thing that later pronouns refer to.
_THING = re.compile(rf"\b(?:the|an?|no|your|any|every|each) ({_WORD}(?: {_WORD}){{0,2}})")
_PRONOUN = re.compile(r"\b(?:it|them)\b")


class Sentence(NamedTuple):
    """A sentence.

    Attributes:
        text: its text as written.
        at: its start in the text.
        plain: the normalized text; only a part of it if it contains two sentences.
        listed: whether it is a numbered item of a list.
    """

    text: str
    at: int
    plain: str
    listed: bool


def split_sentences(text: str) -> Iterator[Sentence]:
    """Split a text into sentences: up to a full stop, a semicolon, an empty line, or the next item of a list."""
    hidden = QUOTED.sub(lambda found: re.sub(r"[.!;\n]", "_", found[0]), text)
    # Comments, and the number before an item, do not end a sentence.
    hidden = re.sub(r"(?m)^[ \t]*#.*$", lambda found: " " * len(found[0]), hidden)
    hidden = re.sub(r"(?m)^[ \t]*\(?\d{1,3}\.", lambda found: found[0][:-1] + ")", hidden)
    begin = 0
    ends = [(found.start(), found.end()) for found in _END.finditer(hidden)] + [(len(text), len(text))]
    for end, after in ends:
        piece = hidden[begin:end]
        bullet = _BULLET.match(piece.lstrip("\n"))
        skipped = len(piece) - len(piece.lstrip("\n")) + (bullet.end() if bullet else 0)
        at = begin + skipped + len(piece[skipped:]) - len(piece[skipped:].lstrip())
        written = text[at:end].strip()
        if written and hidden[at:end].strip():
            listed = bullet is not None and bullet[0].strip() not in "-*•"
            yield Sentence(written, at, normalize_text(written), listed)
        begin = after


def normalize_text(text: str) -> str:
    """Normalize a sentence: lower case, numbers as digits, and one word for several with the same meaning."""
    parts = re.split(f"({QUOTED.pattern.replace('(', '(?:')})", " ".join(text.split()).rstrip(".!?;"))
    return _replace_pronoun(
        "".join(part if number % 2 else _normalize_unquoted(part) for number, part in enumerate(parts)).strip()
    )


def _normalize_unquoted(text: str) -> str:
    text = re.sub(rf"[.;] (?={_ELSE})", ", ", text.lower().replace("’", "'"))
    for pattern, replacement in other_words("forms"):
        text = pattern.sub(replacement, text)
    for number, word in enumerate(_NUMBERS):
        text = re.sub(rf"\b{word} (?=times\b|steps\b|other steps\b)", f"{number} ", text)
        text = re.sub(rf"\b{word} (?=(?:to|or|and|-) (?:\d+|\w+) times\b)", f"{number} ", text)
    text = re.sub(r"\b(\d+) times (to|or|and|-) (?=\d+ times)", r"\1 \2 ", text)
    text = re.sub(r"\b1 time\b", "1 times", text)
    return re.sub(r" +", " ", text)


def _replace_pronoun(text: str) -> str:
    """Replace the pronoun of a sentence by its thing, if only one is named before it."""
    found = _PRONOUN.search(text)
    if found is None or text.startswith("if "):
        return text
    things = dict.fromkeys(thing[1] for thing in _THING.finditer(text[: found.start()]))
    return _PRONOUN.sub(f"the {next(iter(things))}", text) if len(things) == 1 else text
