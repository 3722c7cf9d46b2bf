"""Limits and numbers in a flowchart: Mermaid comments that contain a line of our notation, as ``%% %limit 2 retry``.

``%% %numbers retry time=15min cost=1.20`` gives a step numbers, ``%% %parallel drawn`` orders the branches of forks;
all other lines are as in a grammar. ``%% limit retry 2``, ``%% require note 1`` and ``%% budget cost 100`` express the
same in plain words.

Mermaid ignores comments, so limits do not change how a chart is drawn. A comment that begins with ``%`` and a word is
such a line; one without the ``%`` is such a line if it contains only names of steps and a number.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, NoReturn

from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.flowgraph import one_line
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.quantities import Number, format_amount, read_amount
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.notation.limit_lines import DIRECTIVES, LimitsReader, PlacedWord
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import did_you_mean, unknown

#: A Mermaid comment, and its content.
COMMENT = re.compile(r"%%(?!\{)([^\n]*)")
_DIRECTIVE = re.compile(r"[ \t]*%([^\W\d]\w*)[ \t]*")
_NUMBER_FIRST = re.compile(r"[ \t]*(limit|require)[ \t]+([0-9]+|\*)(?P<names>(?:[ \t,]+[^\s,]+)+)[ \t]*$")
_NUMBER_LAST = re.compile(r"[ \t]*(limit|require)(?P<names>(?:[ \t,]+[^\s,]+)+?)[ \t]+([0-9]+)[ \t]*$")
_BUDGET = re.compile(r"[ \t]*(budget)[ \t]+([^\s,]+)[ \t]+([0-9]\S*)[ \t]*$")
_WORD = re.compile(r"[^\s,]+")
_KNOWN = (*DIRECTIVES, "%rule", "%numbers", "%parallel")


class LimitLine(NamedTuple):
    """A line in a comment: ``%limit`` or another directive, and its words.

    Attributes:
        directive: the directive; its place is that of the word after the ``%``.
        meant: False for a comment without ``%``, which is a limit line only if it names steps of the chart.
    """

    directive: PlacedWord
    words: tuple[PlacedWord, ...]
    meant: bool = True


def lines_in(source: SourceText, begin: int, end: int) -> Iterator[LimitLine]:
    """Yield the limit lines in the comments of a part of a text."""
    text = source.text

    def find_words(start: int, stop: int) -> Iterator[PlacedWord]:
        return (PlacedWord(found[0], source.place_of(found.start())) for found in _WORD.finditer(text, start, stop))

    for comment in COMMENT.finditer(text, begin, end):
        start, stop = comment.span(1)
        if found := _DIRECTIVE.match(text, start, stop):
            rest = PlacedWord(text[found.end() : stop], source.place_of(found.end()))
            words = (rest,) if found[1] == "rule" else tuple(find_words(found.end(), stop))
            yield LimitLine(_place_directive(source, found), words)
        elif found := _BUDGET.match(text, start, stop):
            (quantity,), (most,) = find_words(*found.span(2)), find_words(*found.span(3))
            yield LimitLine(_place_directive(source, found, "%limit"), (quantity, PlacedWord("<=", most.place), most))
        elif found := _NUMBER_LAST.match(text, start, stop) or _NUMBER_FIRST.match(text, start, stop):
            last = found.re is _NUMBER_LAST
            (number,), names = find_words(*found.span(3 if last else 2)), tuple(find_words(*found.span("names")))
            yield LimitLine(_place_directive(source, found), (number, *names), meant=last and len(names) == 1)


def _place_directive(source: SourceText, found: re.Match[str], directive: str = "") -> PlacedWord:
    return PlacedWord(directive or f"%{found[1]}", source.place_of(found.start(1)))


def read_order(lines: Sequence[LimitLine], source: SourceText) -> Literal["any", "drawn"]:
    """Return how the branches of forks are ordered, as declared in a line ``%parallel``."""
    order: Literal["any", "drawn"] = "any"
    for line in lines:
        if line.meant and line.directive.text == "%parallel":
            values = [word.text for word in line.words]
            if values not in (["any"], ["drawn"]):
                _fail_at(source, line.directive, f"%parallel is any or drawn, not {' '.join(values) or 'nothing'}",
                      "write: %% %parallel drawn, to have branches done one after the other")  # fmt: skip
            order = "drawn" if values == ["drawn"] else "any"
    return order


def read_limits(
    lines: Sequence[LimitLine], chart: Flowchart, source: SourceText
) -> tuple[Limits, dict[str, dict[str, Number]]]:
    """Read the limits in the comments of a chart, and the numbers of its steps.

    Names are those of its steps, and of answers as ``name=answer``.

    Raises:
        NotationError: a line cannot be read, or names something that is not in the chart; with its place.
    """
    reader, numbers = LimitsReader(source, "%% "), dict[str, dict[str, Number]]()
    known = chart.terminals
    for line in lines:
        directive = line.directive.text
        if directive == "%parallel" or not is_limit_line(line, known):
            continue
        if directive == "%numbers":
            _read_numbers(line, known, numbers, source)
        elif directive == "%rule":
            reader.read_rule(*line.words[0])
        elif directive in DIRECTIVES:
            reader.read_line(line.directive, line.words)
        else:
            near = did_you_mean(directive, _KNOWN)
            hint = f"did you mean {near}?" if near else "a comment of a flowchart may hold %limit and %require"
            _fail_at(source, line.directive, f"unknown directive {directive}", hint)
    for name in reader.names:
        if name.text not in known:
            answers = chart.answers(name.text) if chart.is_decision(name.text) else {}
            way_out = f"it is a decision; count its answers: {', '.join(answers)}" if answers else None
            source.fail_at(unknown("step or answer in a limit", name.text, known), name.place, suggestion=way_out)
    texts = {node.id: one_line(node.text) for node in chart.nodes}
    symbols = {name: Symbol(texts.get(name, ""), numbers=numbers.get(name, {})) for name in known}
    return reader.build_limits(known, symbols, called="step or answer"), numbers


def is_limit_line(line: LimitLine, known: Collection[str]) -> bool:
    """Return whether a line is a limit line; a comment in plain words is one if it names steps."""
    return line.meant or all(word.text in known for word in line.words[1:])


def number_lines(numbers: Mapping[str, Mapping[str, Number]]) -> list[str]:
    """Return the numbers of steps as lines for comments."""
    return [
        " ".join([f"%numbers {name}", *(f"{quantity}={format_amount(value)}" for quantity, value in amounts.items())])
        for name, amounts in numbers.items()
    ]


def _read_numbers(
    line: LimitLine, known: Sequence[str], numbers: dict[str, dict[str, Number]], source: SourceText
) -> None:
    name, *pairs = line.words or (line.directive,)
    if not pairs:
        _fail_at(source, name, "%numbers has a step and its numbers", "write: %% %numbers NAME time=15min")
    if name.text not in known:
        _fail_at(source, name, unknown("step or answer", name.text, known))
    for at, pair in enumerate(pairs, 1):
        quantity, sign, value = pair.text.partition("=")
        if pair.text.isdigit() and pairs[at - 2].text[-1:].isdigit():
            _fail_at(source, pairs[at - 2], "a comma stands for a decimal point here",
                  f"write {pairs[at - 2].text}.{pair.text}")  # fmt: skip
        if not sign:
            _fail_at(source, pair, f"{pair.text!r} is no number", "write, for instance, time=15min")
        amounts = numbers.setdefault(name.text, {})
        if quantity in amounts:
            _fail_at(source, pair, f"{name.text} has two numbers for {quantity}")
        try:
            amounts[quantity] = read_amount(value)
        except ValueError as error:
            _fail_at(source, pair, str(error))


def _fail_at(source: SourceText, word: PlacedWord, problem: str, suggestion: str | None = None) -> NoReturn:
    source.fail_at(problem, word.place, suggestion=suggestion)
