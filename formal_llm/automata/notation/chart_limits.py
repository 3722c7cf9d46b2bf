"""Limits and numbers in a flowchart: comments of Mermaid that hold a line of our notation, as ``%% %limit 2 retry``.

``%% %numbers retry time=15min cost=1.20`` gives a step numbers, ``%% %parallel drawn`` orders the branches of forks;
all other lines are as in a grammar. ``%% limit retry 2``, ``%% require note 1`` and ``%% budget cost 100`` say the same
in the order of plain words.

Mermaid passes over a comment, so a chart with limits is drawn as it is without them. A comment that begins with ``%``
and a word is such a line; without the ``%`` it is one where it names steps and a number, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, NoReturn

from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.limits import Limits, SumLimit
from formal_llm.automata.models.quantities import Number, read_amount, shown
from formal_llm.automata.models.timetable import Timetable
from formal_llm.automata.notation.limit_lines import (
    EXAMPLES,
    WrongWord,
    is_sum,
    no_count,
    read_sum,
    read_times,
    with_times,
)
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import did_you_mean, unknown

#: A comment of Mermaid, and what it says.
COMMENT = re.compile(r"%%(?!\{)([^\n]*)")
_DIRECTIVE = re.compile(r"[ \t]*%([^\W\d]\w*)[ \t]*")
_NUMBER_FIRST = re.compile(r"[ \t]*(limit|require)[ \t]+([0-9]+|\*)(?P<names>(?:[ \t,]+[^\s,]+)+)[ \t]*$")
_NUMBER_LAST = re.compile(r"[ \t]*(limit|require)(?P<names>(?:[ \t,]+[^\s,]+)+?)[ \t]+([0-9]+)[ \t]*$")
_BUDGET = re.compile(r"[ \t]*(budget)[ \t]+([^\s,]+)[ \t]+([0-9]\S*)[ \t]*$")
_WORD = re.compile(r"[^\s,]+")
_COUNTED = ("limit", "require")
_KNOWN = (*_COUNTED, *(line.removeprefix("%") for line in EXAMPLES), "numbers", "parallel")
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
        meant: False for a comment without ``%``: it is one of these lines if it names steps of the chart.
    """

    directive: Word
    words: tuple[Word, ...]
    meant: bool = True


def lines_in(text: str, begin: int, end: int) -> Iterator[LimitLine]:
    """The lines in the comments of a part of a text."""
    for comment in COMMENT.finditer(text, begin, end):
        start, stop = comment.span(1)
        if found := _DIRECTIVE.match(text, start, stop):
            words = _WORD.finditer(text, found.end(), stop)
            yield LimitLine(Word(found[1], found.start(1)), tuple(Word(w[0], w.start()) for w in words))
        elif found := _BUDGET.match(text, start, stop):
            most = Word("<=", found.start(3)), Word(found[3], found.start(3))
            yield LimitLine(Word("limit", found.start(1)), (Word(found[2], found.start(2)), *most))
        elif found := _NUMBER_LAST.match(text, start, stop) or _NUMBER_FIRST.match(text, start, stop):
            last = found.re is _NUMBER_LAST
            number = Word(found[3 if last else 2], found.start(3 if last else 2))
            names = [Word(w[0], w.start()) for w in _WORD.finditer(text, *found.span("names"))]
            yield LimitLine(Word(found[1], found.start(1)), (number, *names), meant=last and len(names) == 1)


def read_order(lines: Sequence[LimitLine], source: SourceText) -> Literal["any", "drawn"]:
    """How the branches of forks are ordered: what a line ``%parallel`` says."""
    order: Literal["any", "drawn"] = "any"
    for line in lines:
        if line.meant and line.directive.text == "parallel":
            said = [word.text for word in line.words]
            if said not in (["any"], ["drawn"]):
                _fail(source, line.directive, f"%parallel is any or drawn, not {' '.join(said) or 'nothing'}",
                      "write: %% %parallel drawn, to have branches done one after the other")  # fmt: skip
            order = "drawn" if said == ["drawn"] else "any"
    return order


def read_limits(
    lines: Sequence[LimitLine], chart: Flowchart, source: SourceText
) -> tuple[Limits, dict[str, dict[str, Number]]]:
    """The limits that the comments of a chart hold, and the numbers of its steps.

    Names are those of its steps, and of answers as ``name=answer``.

    Raises:
        NotationError: one cannot be read, or names what the chart does not have; with its place.
    """
    found: dict[str, dict[str, int | None]] = {word: {} for word in _COUNTED}
    sums: list[SumLimit] = []
    times = Timetable()
    numbers: dict[str, dict[str, Number]] = {}
    known = chart.terminals
    for line in lines:
        if line.directive.text == "parallel" or (
            not line.meant and any(one.text not in known for one in line.words[1:])
        ):
            continue
        word, texts = line.directive.text, [one.text for one in line.words]
        if word not in _KNOWN:
            near = did_you_mean(word, _KNOWN)
            told = f"did you mean %{near}?" if near else "in a comment of a flowchart stand %limit and %require"
            _fail(source, line.directive, f"unknown directive %{word}", told)
        try:
            if word == "numbers":
                _read_numbers(line, known, numbers, source)
            elif f"%{word}" in EXAMPLES:
                times = with_times(times, read_times(f"%{word}", texts))
            elif word == "limit" and texts and is_sum(texts):
                sums.append(read_sum(texts)[0])
            else:
                _read_counts(line, found[word], chart, source)
        except WrongWord as error:
            _fail(source, [*line.words, line.directive][min(error.at, len(texts))], str(error), error.suggestion)
    if times and times.clock is None:
        first = next(line for line in lines if line.meant and f"%{line.directive.text}" in EXAMPLES)
        _fail(source, first.directive, f"%{first.directive.text} needs a clock", f"write: %% {EXAMPLES['%clock']}")
    default = found["limit"].pop("", None)
    least = {name: number or 0 for name, number in found["require"].items()}
    return Limits(found["limit"], least, default, tuple(sums), times), numbers


def number_lines(numbers: Mapping[str, Mapping[str, Number]]) -> list[str]:
    """The numbers of steps as lines of comments."""
    return [
        " ".join([f"%numbers {name}", *(f"{quantity}={shown(value)}" for quantity, value in amounts.items())])
        for name, amounts in numbers.items()
    ]


def _read_numbers(
    line: LimitLine, known: Sequence[str], numbers: dict[str, dict[str, Number]], source: SourceText
) -> None:
    name, *pairs = line.words or (line.directive,)
    if not pairs:
        _fail(source, name, "%numbers has a step and its numbers", "write: %% %numbers NAME time=15min")
    if name.text not in known:
        _fail(source, name, unknown("step or answer", name.text, known))
    for at, pair in enumerate(pairs, 1):
        quantity, sign, value = pair.text.partition("=")
        if pair.text.isdigit() and pairs[at - 2].text[-1:].isdigit():
            _fail(source, pairs[at - 2], "a comma stands for a decimal point here",
                  f"write {pairs[at - 2].text}.{pair.text}")  # fmt: skip
        if not sign:
            _fail(source, pair, f"{pair.text!r} is no number", "write, for instance, time=15min")
        try:
            amounts = numbers.setdefault(name.text, {})
            if quantity in amounts:
                raise WrongWord(at, f"{name.text} has two numbers for {quantity}")
            amounts[quantity] = read_amount(value)
        except ValueError as error:
            raise error if isinstance(error, WrongWord) else WrongWord(at, str(error)) from None


def _read_counts(line: LimitLine, found: dict[str, int | None], chart: Flowchart, source: SourceText) -> None:
    for name, number in _counted(line, chart, chart.terminals, source):
        if name.text in found:
            _fail(source, name, f"a second %{line.directive.text} for {name.text or 'every step and answer'}")
        found[name.text] = number


def _counted(
    line: LimitLine, chart: Flowchart, known: Sequence[str], source: SourceText
) -> Iterator[tuple[Word, int | None]]:
    """The names of a line, each with its number; an empty name for every step and answer."""
    directive, (count, *names) = line.directive, line.words or (line.directive,)
    star = count.text == "*" and directive.text == "limit"
    if not star and not re.fullmatch(rf"[0-9]{{1,{_DIGITS}}}", count.text):
        _fail(source, count, *no_count(f"%% %{directive.text}", count.text))
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
