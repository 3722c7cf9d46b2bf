"""Rules for tool calls as values: the letters, what has to hold of them, and how strictly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from typing import Literal

from formal_llm.guard.rules.data import format_duration, write_constant
from formal_llm.guard.rules.expressions import Expression

Severity = Literal["block", "ask", "warn", "log"]
#: The words of the notation: a letter, tool or rule of that name stands in quotes.
WORDS = (
    "rule", "tools", "user", "assistant", "never", "before", "after", "each", "at", "most", "least", "since", "within",
    "between", "budget", "formula", "grammar", "behaviour", "flowchart", "automaton", "file", "block", "ask", "warn",
    "log", "for", "with", "and", "or", "not", "in", "contains", "starts", "ends", "like", "result",
)  # fmt: skip
_PLAIN_NAME, _PLAIN_TOOL = re.compile(r"[^\W\d][\w-]*"), re.compile(r"[\w*?][\w*?/-]*")
SEVERITIES: tuple[Severity, ...] = ("block", "ask", "warn", "log")
#: What an event is: an agent makes calls and writes texts; results and user turns come from outside.
Kind = Literal["call", "result", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class EventPattern:
    """Which events are meant.

    Attributes:
        kind: a call, a result, or a text of the user or the assistant.
        tool: the tool, where ``*`` stands for any characters; empty for texts.
        condition: what must hold of the event; None for nothing.
        fields: values that the event gives: what a rule sums, and what it tells apart.
    """

    kind: Kind
    tool: str = ""
    condition: Expression | None = None
    fields: tuple[tuple[str, Expression], ...] = ()

    def __str__(self) -> str:
        tool = _quote_name(self.tool, _PLAIN_TOOL)
        said = {"call": tool, "result": f"{tool}.result"}.get(self.kind, self.kind)
        said += f"[{self.condition}]" if self.condition is not None else ""
        given = ", ".join(f"{name} = {value}" for name, value in self.fields)
        return f"{said} with {given}" if given else said


@dataclass(frozen=True, slots=True)
class Letter:
    """A name for events: for those that one of its patterns means."""

    name: str
    patterns: tuple[EventPattern, ...]

    def __str__(self) -> str:
        return f"{_quote_name(self.name)}: {' | '.join(map(str, self.patterns))}"


def _quote_name(name: str, plain: re.Pattern[str] = _PLAIN_NAME) -> str:
    """A name as the notation writes it."""
    return name if plain.fullmatch(name) and name not in WORDS else write_constant(name)


Names = tuple[str, ...]


def _join_names(names: Names) -> str:
    return " or ".join(map(_quote_name, names))


@dataclass(frozen=True, slots=True)
class NeverBody:
    """``never A``, or ``never A after B``."""

    names: Names
    after: Names = ()

    def __str__(self) -> str:
        return f"never {_join_names(self.names)}" + (f" after {_join_names(self.after)}" if self.after else "")


@dataclass(frozen=True, slots=True)
class BeforeBody:
    """``A before B``: so many A before any B; ``A before each B``: since the last B, too."""

    first: Names
    then: Names
    count: int = 1
    each: bool = False

    def __str__(self) -> str:
        number = f"{self.count} " if self.count != 1 else ""
        return f"{number}{_join_names(self.first)} before {'each ' if self.each else ''}{_join_names(self.then)}"


@dataclass(frozen=True, slots=True)
class AfterBody:
    """``A after each B``: behind every B there is an A before the end."""

    first: Names
    then: Names

    def __str__(self) -> str:
        return f"{_join_names(self.first)} after each {_join_names(self.then)}"


@dataclass(frozen=True, slots=True)
class AtLeastBody:
    """``at least 2 A``."""

    count: int
    names: Names

    def __str__(self) -> str:
        return f"at least {self.count} {_join_names(self.names)}"


@dataclass(frozen=True, slots=True)
class AtMostBody:
    """``at most 3 A``, of all, ``since B``, or ``within 1h``."""

    count: int
    names: Names
    since: Names = ()
    within: timedelta | None = None

    def __str__(self) -> str:
        said = f"at most {self.count} {_join_names(self.names)}"
        if self.within is not None:
            return f"{said} within {format_duration(self.within)}"
        return f"{said} since {_join_names(self.since)}" if self.since else said


@dataclass(frozen=True, slots=True)
class ApartBody:
    """``10min between A``: so long from one A to the next."""

    least: timedelta
    names: Names

    def __str__(self) -> str:
        return f"{format_duration(self.least)} between {_join_names(self.names)}"


@dataclass(frozen=True, slots=True)
class BudgetBody:
    """``budget cost <= 500``: the sum of a field of all letters that have it."""

    quantity: str
    most: Fraction

    def __str__(self) -> str:
        return f"budget {self.quantity} <= {write_constant(self.most)}"


@dataclass(frozen=True, slots=True)
class NotationBody:
    """Rules in another notation: a formula, grammar, behaviour, flowchart or automaton, a limit, or a file of these."""

    notation: str
    text: str

    def __str__(self) -> str:
        if self.notation == "limit":
            return self.text
        long = "\n" in self.text or ('"' in self.text and '"""' not in self.text)
        safe = long and "\\" not in self.text and not self.text.endswith('"')
        return f"{self.notation} " + (f'"""{self.text}"""' if safe else write_constant(self.text))


Body = NeverBody | BeforeBody | AfterBody | AtLeastBody | AtMostBody | ApartBody | BudgetBody | NotationBody


@dataclass(frozen=True, slots=True)
class GuardRule:
    """A rule.

    Attributes:
        name: what messages call it.
        body: what must hold.
        severity: what happens to a call after which it cannot be kept: ``"block"``, ``"ask"`` a person, ``"warn"``,
            ``"log"``.
        keys: fields of letters: the rule holds for each value of them by itself.
        says: what a message says of it; empty for its body.
    """

    name: str
    body: Body
    severity: Severity = "block"
    keys: tuple[str, ...] = ()
    says: str = ""

    def __str__(self) -> str:
        if isinstance(self.body, NotationBody) and self.body.notation == "limit":
            return self.body.text
        head = f"rule {_quote_name(self.name)}"
        head += f" {self.severity}" if self.severity != "block" else ""
        head += f" for each {', '.join(self.keys)}" if self.keys else ""
        return f"{head}: {self.body}" + (f"\n    {write_constant(self.says)}" if self.says else "")


@dataclass(frozen=True)
class GuardRuleSet:
    """Letters and rules, as they were written; ``str()`` prints them, and what is read back is equal."""

    letters: tuple[Letter, ...] = ()
    rules: tuple[GuardRule, ...] = ()
    #: Where the files are that rules name.
    folder: str = field(default="", compare=False)

    @cached_property
    def by_name(self) -> Mapping[str, Letter]:
        """The letters."""
        return {letter.name: letter for letter in self.letters}

    def __str__(self) -> str:
        return "".join(f"{one}\n" for one in (*self.letters, *self.rules))


def list_named_letters(body: Body) -> Iterator[str]:
    """The letters that a body in words names."""
    parts: Iterable[Names] = ()
    match body:
        case NeverBody(names, after):
            parts = (names, after)
        case BeforeBody(first, then) | AfterBody(first, then):
            parts = (first, then)
        case AtMostBody(_, names, since):
            parts = (names, since)
        case AtLeastBody(_, names) | ApartBody(_, names):
            parts = (names,)
    for names in parts:
        yield from names
