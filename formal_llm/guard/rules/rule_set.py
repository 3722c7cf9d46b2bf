"""Rules for tool calls as data: the letters, the conditions on them, and their severities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from functools import cached_property
from typing import Literal

from formal_llm.control.machines import ANY_CALL, OTHERS
from formal_llm.guard.rules.data import format_duration, write_constant
from formal_llm.guard.rules.expressions import Expression

Severity = Literal["block", "ask", "warn", "log"]
#: The keywords of the notation: a letter, tool or rule with such a name is quoted.
WORDS = (
    "rule", "tools", "user", "assistant", "never", "before", "after", "each", "at", "most", "least", "since", "within",
    "between", "budget", "formula", "grammar", "behaviour", "flowchart", "automaton", "file", "block", "ask", "warn",
    "log", "for", "with", "and", "or", "not", "in", "contains", "starts", "ends", "like", "result", "until", "only",
    "calls",
)  # fmt: skip
_PLAIN_NAME, _PLAIN_TOOL = re.compile(r"[^\W\d][\w-]*"), re.compile(r"[\w*?][\w*?/-]*")
SEVERITIES: tuple[Severity, ...] = ("block", "ask", "warn", "log")
#: What happens to a call after which it is not known whether the rules can be kept; the strictest first.
Unsure = Literal["block", "ask", "allow"]
UNSURE: tuple[Unsure, ...] = ("block", "ask", "allow")
#: The kind of an event: an agent makes calls and writes texts; results and user texts come from outside.
Kind = Literal["call", "result", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class EventPattern:
    """A pattern of events.

    Attributes:
        kind: a call, a result, or a text of the user or the assistant.
        tool: the tool, in which ``*`` stands for any characters; empty for texts.
        condition: the condition on the event; None if there is none.
        fields: the values that the event provides, which rules sum or distinguish.
    """

    kind: Kind
    tool: str = ""
    condition: Expression | None = None
    fields: tuple[tuple[str, Expression], ...] = ()

    def __str__(self) -> str:
        tool = _quote_name(self.tool, _PLAIN_TOOL)
        text = {"call": tool, "result": f"{tool}.result"}.get(self.kind, self.kind)
        text += f"[{self.condition}]" if self.condition is not None else ""
        fields_text = ", ".join(f"{name} = {value}" for name, value in self.fields)
        return f"{text} with {fields_text}" if fields_text else text


@dataclass(frozen=True, slots=True)
class Letter:
    """A name for the events that match one of its patterns.

    Attributes:
        until: the letters that end it: conditions on the past no longer find occurrences before them. A letter that
            gives some of the same fields ends only the occurrences with the same values.
    """

    name: str
    patterns: tuple[EventPattern, ...]
    until: tuple[str, ...] = ()

    def __str__(self) -> str:
        until = f" until {_join_names(self.until)}" if self.until else ""
        return f"{_quote_name(self.name)}: {' | '.join(map(str, self.patterns))}{until}"


def _quote_name(name: str, plain: re.Pattern[str] = _PLAIN_NAME) -> str:
    """Write a name in the notation."""
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
class OnlyBody:
    """``only A or B``: no calls but these."""

    names: Names

    @property
    def others(self) -> str:
        """The letter of all other calls."""
        return OTHERS + _join_names(self.names)

    def __str__(self) -> str:
        return f"only {_join_names(self.names)}"


@dataclass(frozen=True, slots=True)
class BeforeBody:
    """``A before B``: ``count`` A before any B; ``A before each B``: also since the last B."""

    first: Names
    then: Names
    count: int = 1
    each: bool = False

    def __str__(self) -> str:
        number = f"{self.count} " if self.count != 1 else ""
        return f"{number}{_join_names(self.first)} before {'each ' if self.each else ''}{_join_names(self.then)}"


@dataclass(frozen=True, slots=True)
class AfterBody:
    """``A after each B``: every B is followed by an A before the end, ``within 3 calls``, or ``within 10min``."""

    first: Names
    then: Names
    within: int | timedelta | None = None

    def __str__(self) -> str:
        order = "after each"
        if isinstance(self.within, int):
            order = f"within {self.within} call{'s' if self.within != 1 else ''} after"
        elif self.within is not None:
            order = f"within {format_duration(self.within)} after"
        return f"{_join_names(self.first)} {order} {_join_names(self.then)}"


@dataclass(frozen=True, slots=True)
class AtLeastBody:
    """``at least 2 A``."""

    count: int
    names: Names

    def __str__(self) -> str:
        return f"at least {self.count} {_join_names(self.names)}"


@dataclass(frozen=True, slots=True)
class AtMostBody:
    """``at most 3 A``: in total, ``since B``, or ``within 1h``."""

    count: int
    names: Names
    since: Names = ()
    within: timedelta | None = None

    def __str__(self) -> str:
        text = f"at most {self.count} {_join_names(self.names)}"
        if self.within is not None:
            return f"{text} within {format_duration(self.within)}"
        return f"{text} since {_join_names(self.since)}" if self.since else text


@dataclass(frozen=True, slots=True)
class ApartBody:
    """``10min between A``: the minimum time from one A to the next."""

    least: timedelta
    names: Names

    def __str__(self) -> str:
        return f"{format_duration(self.least)} between {_join_names(self.names)}"


@dataclass(frozen=True, slots=True)
class BudgetBody:
    """``budget cost <= 500``: a limit on the sum of a field over all letters that have it."""

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


Body = NeverBody | OnlyBody | BeforeBody | AfterBody | AtLeastBody | AtMostBody | ApartBody | BudgetBody | NotationBody


@dataclass(frozen=True, slots=True)
class GuardRule:
    """A rule.

    Attributes:
        name: its name in messages.
        body: what must hold.
        severity: what happens to a call after which it cannot be kept: ``"block"``, ``"ask"`` a person, ``"warn"``,
            ``"log"``.
        keys: fields of letters: the rule holds separately for each of their values.
        says: its description in messages; empty to show its body.
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
    """Letters and rules as written; ``str()`` prints them, and reading the text back gives an equal value."""

    letters: tuple[Letter, ...] = ()
    rules: tuple[GuardRule, ...] = ()
    #: The folder of the files that rules name.
    folder: str = field(default="", compare=False)
    #: What its line ``%unsure`` says; None without one.
    unsure: Unsure | None = None

    @cached_property
    def by_name(self) -> Mapping[str, Letter]:
        """The letters by name."""
        return {letter.name: letter for letter in self.letters}

    @cached_property
    def others(self) -> Mapping[str, frozenset[str]]:
        """The letters that calls have by what they are not: each with the letters that a call with it has not."""
        found = {rule.body.others: frozenset(rule.body.names) for rule in self.rules if isinstance(rule.body, OnlyBody)}
        counted = any(isinstance(rule.body, AfterBody) and rule.body.within is not None for rule in self.rules)
        return {**found, ANY_CALL: frozenset()} if counted else found

    def __str__(self) -> str:
        directives = [f"%unsure {self.unsure}"] if self.unsure else []
        return "".join(f"{one}\n" for one in (*directives, *self.letters, *self.rules))


def list_named_letters(body: Body) -> Iterator[str]:
    """Yield the letters that a body in words names."""
    parts: Iterable[Names] = ()
    match body:
        case NeverBody(names, after):
            parts = (names, after)
        case BeforeBody(first, then) | AfterBody(first, then):
            parts = (first, then)
        case AtMostBody(_, names, since):
            parts = (names, since)
        case OnlyBody(names) | AtLeastBody(_, names) | ApartBody(_, names):
            parts = (names,)
    for names in parts:
        yield from names
