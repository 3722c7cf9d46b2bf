"""Limits in a flowchart: comments of Mermaid that hold a line of our notation, as ``%% %limit 2 retry``.

Mermaid passes over a comment, so a chart with limits is drawn as it is without them. A comment that begins with ``%``
and a word is such a line, and no other comment is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, NoReturn

from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import did_you_mean, unknown

_COMMENT = re.compile(r"%%(?!\{)([^\n]*)")
_DIRECTIVE = re.compile(r"[ \t]*%([^\W\d]\w*)[ \t]*")
_FORGOTTEN = re.compile(r"[ \t]*(?=(?:limit|require)[ \t]+(?:[0-9]+|\*)[ \t]+\S)(\w+)[ \t]*")
_WORD = re.compile(r"[^\s,]+")
_KNOWN = ("limit", "require")
#: Longer numbers are refused: no limit means that many.
_DIGITS = 100


class Word(NamedTuple):
    """A word of such a line, and the offset at which it stands."""

    text: str
    at: int


class LimitLine(NamedTuple):
    """A line in a comment: ``limit`` or ``require``, and what stands behind it.

    Attributes:
        directive: the word behind the ``%``.
        words: what stands behind it.
        meant: False for a comment that would be a limit, had its author written the ``%``.
    """

    directive: Word
    words: tuple[Word, ...]
    meant: bool = True


def lines_in(text: str, begin: int, end: int) -> Iterator[LimitLine]:
    """The lines in the comments of a part of a text; also those that lack their ``%``."""
    for comment in _COMMENT.finditer(text, begin, end):
        found = _DIRECTIVE.match(text, comment.start(1), comment.end())
        meant = found is not None
        found = found or _FORGOTTEN.match(text, comment.start(1), comment.end())
        if found is not None:
            words = _WORD.finditer(text, found.end(), comment.end())
            yield LimitLine(Word(found[1], found.start(1)), tuple(Word(w[0], w.start()) for w in words), meant)


def read_limits(lines: Iterable[LimitLine], chart: Flowchart, source: SourceText) -> Limits:
    """The limits that the comments of a chart hold; names are those of its steps, and of answers as ``name=answer``.

    Raises:
        NotationError: one cannot be read, or names what the chart does not have; with its place.
    """
    found: dict[str, dict[str, int | None]] = {word: {} for word in _KNOWN}
    known = chart.terminals
    for line in lines:
        if not line.meant:
            if all(word.text in known for word in line.words[1:]):
                _fail(source, line.directive, "this comment is no limit: its % is missing",
                      f"write: %% %{line.directive.text} {' '.join(word.text for word in line.words)}")  # fmt: skip
            continue
        word = line.directive.text
        if word not in _KNOWN:
            near = did_you_mean(word, _KNOWN)
            told = f"did you mean %{near}?" if near else "in a comment of a flowchart stand %limit and %require"
            _fail(source, line.directive, f"unknown directive %{word}", told)
        for name, number in _counted(line, chart, known, source):
            if name.text in found[word]:
                _fail(source, name, f"a second %{word} for {name.text or 'every step and answer'}")
            found[word][name.text] = number
    default = found["limit"].pop("", None)
    return Limits(found["limit"], {name: number or 0 for name, number in found["require"].items()}, default)


def _counted(
    line: LimitLine, chart: Flowchart, known: Sequence[str], source: SourceText
) -> Iterator[tuple[Word, int | None]]:
    """The names of a line, each with its number; an empty name for every step and answer."""
    directive, (count, *names) = line.directive, line.words or (line.directive,)
    star = count.text == "*" and directive.text == "limit"
    if len(names) > 1 and names[0].text in ("<=", ">="):
        _fail(source, count, "steps of a flowchart carry no numbers, so only their uses can be limited")
    if not star and not re.fullmatch(rf"[0-9]{{1,{_DIGITS}}}", count.text):
        _fail(source, count, "the limit has no number", f"write: %% %{directive.text} 1 NAME ...")
    if not names and directive.text == "require":
        _fail(source, directive, "%require needs names", "write: %% %require 1 NAME ...")
    for name in names:
        if name.text not in known:
            answers = chart.answers(name.text) if chart.is_decision(name.text) else {}
            hint = f"it is a decision; count its answers: {', '.join(answers)}" if answers else None
            _fail(source, name, unknown("step or answer in a limit", name.text, known), hint)
    number = None if star else int(count.text)
    for name in names or [Word("", count.at)]:
        yield name, number


def _fail(source: SourceText, word: Word, problem: str, suggestion: str | None = None) -> NoReturn:
    source.fail(problem, source.at(word.at), suggestion=suggestion)
