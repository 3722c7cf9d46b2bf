"""The lines of a plan that anybody wrote: which are steps, which numbers they carry, and what is left out.

People and models write more than steps: "Here is my plan:", bullets, check boxes, bold, a remark behind a step. That is
left out, and reported. It never hides a step: a line or a remark that names one, or nearly, cannot be left out. A
machine writes the steps as they are printed, "Step 1: ...", and nothing else; ``strict`` is for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from typing import NamedTuple

from formal_llm.errors import NotationError, did_you_mean, unknown

#: Signs at the end of a line that are not part of a name.
STOPS = ".;,"
#: How much alike a text and the name of a step are where one was probably meant.
_NEAR = 0.8
_WORDS = re.compile(r"[^\w]+")
_PRINTED = re.compile(r"Step (\d+): (.*)")
_BULLET = re.compile(r"\s*(?:>\s*)*(?:[-*+•‣◦–—]\s+)?(?:\[[ xX✓✔]?\]\s*|[☐☑☒✓✔✅]\s*)?")
_NUMBER = re.compile(r"\s*(?:step\s+(\d+)\s*[:.)–—-]?|\(?(\d+)(?:[.)]+:?|:(?=\s)))\s*", re.IGNORECASE)
_BOLD = re.compile(r"(?<!\w)(\*\*|__|`)(?=\S)(.+?)(?<=\S)\1(?!\w)")
_ITALIC = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]+)(?<=\S)\*(?![\w*])")
_REMARK = re.compile(r"\s+(?=\(|—|–|--|-\s|#\s|//)|(?<=\S)(?=;\s)")
_RULE = re.compile(r"\s*(?:[-*_=]{3,}|```\w*|~~~\w*)\s*")
_BOX = re.compile(r"\s*\[[ xX✓✔]\]")
_HEADING = re.compile(r"\s*#{1,6}\s+")


def fold_text(text: str) -> str:
    """A text as it is compared: blanks and capitals do not count."""
    return " ".join(text.casefold().split())


class StepLine(NamedTuple):
    """A line of a plan with a step.

    Attributes:
        number: the place of the step in the list, from 1.
        place: the line of the text, from 1.
        text: the step, without what comes before and after it.
        given: the number that it carries; None for none.
        printed: whether it begins as a step is printed, "Step 1: ".
    """

    number: int
    place: int
    source: str
    text: str
    given: int | None = None
    printed: bool = False

    @property
    def forms(self) -> tuple[str, ...]:
        """Its possible readings, folded: with and without what comes at its end."""
        text = fold_text(self.text)
        return tuple(dict.fromkeys((text, text.rstrip(STOPS))))


class ReadingProblem(NamedTuple):
    """Why lines describe no plan: what is wrong, the line where it is (None for none), what was possible there."""

    problem: str
    line: StepLine | None = None
    expected: tuple[str, ...] = ()

    def to_error(self) -> NotationError:
        """The same as an error."""
        place, source = (self.line.place, self.line.source) if self.line is not None else (None, None)
        return NotationError(self.problem, file="<plan>", line=place, source_line=source, expected=self.expected)


class SkippedText(NamedTuple):
    """What was left out: the line of the text, from 1, and the words."""

    place: int
    text: str

    def __str__(self) -> str:
        return f"line {self.place}: {self.text}"


@dataclass(frozen=True)
class StepPhrases:
    """The possible readings of a line.

    Args:
        whole: whether a text is a whole step.
        names: what names a step, or begins one; as it is written.
    """

    whole: Callable[[str], bool]
    names: Sequence[str]

    def find_hidden_step(self, text: str) -> str | None:
        """A step that a text names, or nearly is; None for none."""
        within = f" {_WORDS.sub(' ', text.casefold())} "
        for name in self.names:
            words = _WORDS.sub(" ", name.casefold()).strip()
            if (words and f" {words} " in within) or (not words and name.strip() and name in text):
                return name
        near = did_you_mean(text, self.names)
        return near if near and SequenceMatcher(None, text.casefold(), near.casefold()).ratio() > _NEAR else None


def read_plan_lines(text: str, phrases: StepPhrases, *, strict: bool) -> tuple[list[StepLine], list[SkippedText]]:
    """The lines with steps, and what was left out.

    Raises:
        NotationError: a line is no step and cannot be left out.
    """
    if strict:
        return [_read_printed_line(place, line) for place, line in numbered_lines(text)], []
    rows = [(place, line, find_step(line, phrases)) for place, line in numbered_lines(text) if not is_rule(line)]
    marked = any(_is_marked(line) for _, line, step in rows if step is not None)
    last = max((place for place, _, step in rows if step is not None), default=0)
    lines: list[StepLine] = []
    skipped: list[SkippedText] = []
    for place, line, step in rows:
        if step is None:
            _check_skipped(place, line, phrases, marked=marked, begun=bool(lines), over=place > last)
            skipped.append(SkippedText(place, line.strip()))
            continue
        given, step_text, remark, printed = step
        if remark:
            _check_remark(place, line, remark, phrases)
            skipped.append(SkippedText(place, remark))
        lines.append(StepLine(len(lines) + 1, place, line, step_text, given, printed))
    return lines, skipped


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are not empty, with their places. Only newlines part lines, as an editor counts them."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return ((place, line) for place, line in enumerate(lines, 1) if line.strip())


def _read_printed_line(place: int, line: str) -> StepLine:
    found = _PRINTED.fullmatch(line)
    if found is None:
        raise NotationError(
            "strict reading takes steps as they are printed, 'Step 1: ...', and nothing else",
            file="<plan>", line=place, source_line=line,
        )  # fmt: skip
    return StepLine(int(found[1]), place, line, found[2], int(found[1]), True)


#: The number that a line carries, the step, a remark behind it, and whether it begins as a step is printed.
_Step = tuple[int | None, str, str, bool]


def find_step(line: str, phrases: StepPhrases) -> _Step | None:
    """The step of a line; None where it has none."""
    exact = _PRINTED.fullmatch(line)
    if exact is not None and phrases.whole(exact[2]):
        return int(exact[1]), exact[2], "", True
    ways = list(_strip_markers(line))
    for given, text in ways:
        if phrases.whole(text):
            return given, text, "", False
    for given, text in reversed(ways):
        for split in reversed(list(_REMARK.finditer(text))):
            before = text[: split.start()].strip()
            if before and phrases.whole(before):
                return given, before, text[split.end() :].strip(), False
    return None


def _strip_markers(line: str) -> Iterator[tuple[int | None, str]]:
    """A line without its bullet, its number, its bold type; the least taken away first."""
    yield None, line.strip()
    for plain in dict.fromkeys((line, strip_emphasis(line))):
        text = plain[_measure_prefix(_BULLET, plain) :]
        yield None, text.strip()
        number = _NUMBER.match(text)
        if number is not None:
            given, rest = int(number[1] or number[2]), text[number.end() :]
            yield given, rest.strip()
            # A check box may come after the number.
            yield given, rest[_measure_prefix(_BULLET, rest) :].strip()


def strip_emphasis(line: str) -> str:
    """A line without bold and italic type."""
    return _ITALIC.sub(r"\1", _BOLD.sub(r"\2", line))


def is_rule(line: str) -> bool:
    """Whether a line only parts others: a rule, the fence of a block of code."""
    return _RULE.fullmatch(line) is not None


def is_box(line: str) -> bool:
    """Whether a line begins with a check box."""
    return _BOX.match(line) is not None


def find_wrong_number(lines: Sequence[StepLine], decisions: Sequence[bool]) -> ReadingProblem | None:
    """What is wrong with the numbers that the lines carry; decisions need not be counted."""
    steps = list(accumulate(not decision for decision in decisions))
    for places in (steps, range(1, len(lines) + 1)):
        wrong = [(line, place) for line, place in zip(lines, places, strict=True) if line.given not in (None, place)]
        if not wrong:
            return None
    line, place = wrong[0]
    return ReadingProblem(f"this is step {place} of the plan, and it is numbered {line.given}", line)


def _measure_prefix(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found is not None else 0


def _is_marked(line: str) -> bool:
    """Whether a line carries a number or a bullet."""
    plain = strip_emphasis(line)
    bullet = _measure_prefix(_BULLET, plain)
    return bool(plain[:bullet].strip()) or _NUMBER.match(plain[bullet:]) is not None


def _check_skipped(
    place: int, line: str, phrases: StepPhrases, *, marked: bool, begun: bool, over: bool
) -> None:  # fmt: skip
    """Raise where a line that is no step cannot be left out."""
    heading = _measure_prefix(_HEADING, line)
    text = next(iter(list(_strip_markers(line))[::-1]))[1] if _is_marked(line) else strip_emphasis(line).strip()
    introduces = not begun and line.rstrip(" *_").endswith(":")
    aside = marked and (not _is_marked(line) or (begun and not over and line[:1].isspace() and not _is_numbered(line)))
    if not (heading or introduces or aside):
        raise unknown_step(text, phrases.names, place, line)
    _check_hidden(
        line[heading:], place, line, phrases,
        "this line is no step, and it cannot be left out, since it names one ({}); "
        "write the step on a line of its own, or take the line out",
    )  # fmt: skip


def _is_numbered(line: str) -> bool:
    plain = strip_emphasis(line)
    return _NUMBER.match(plain[_measure_prefix(_BULLET, plain) :]) is not None


def _check_remark(place: int, line: str, remark: str, phrases: StepPhrases) -> None:
    _check_hidden(
        remark, place, line, phrases,
        "the remark behind this step names a step ({}), so it is not left out; write each step on a line of its own",
    )  # fmt: skip


def _check_hidden(text: str, place: int, line: str, phrases: StepPhrases, message: str) -> None:
    """Raise where a text that would be left out names a step."""
    hidden = phrases.find_hidden_step(text)
    if hidden is not None:
        raise NotationError(message.format(hidden), file="<plan>", line=place, source_line=line)


def unknown_step(text: str, known: Iterable[str], place: int, line: str) -> NotationError:
    """The error for a line that no step reads like."""
    bare = re.sub(r"(?i)^use\s+", "", text.strip())
    names = list(known)
    problem, some = (
        unknown("step", bare, names),
        () if did_you_mean(bare, names) else sorted(n for n in names if n[:4] != "Use ")[:20],
    )
    return NotationError(problem, file="<plan>", line=place, source_line=line, expected=some)
