"""Conditions on the arrows of a flowchart, as ``amount > 10000``: decided by facts, and not asked.

A condition compares names and values: ``amount > 10000``, ``country = "DE"``, ``amount <= limit and not urgent = yes``.
There are ``= == != <> ≠ < <= ≤ > >= ≥``, ``and``, ``or``, ``not`` and parentheses. ``else`` and ``otherwise`` hold
where no other condition of the decision does. Values are numbers, words, and texts in quotes; a word that is the name
of a fact stands for it; so does ``{limit}``, which a task fills in. Two numbers are compared as numbers (exactly), all
else as texts without regard to upper and lower case.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_TOKEN = re.compile(
    r"\s*(?:(?P<sign><=|>=|==|!=|<>|[=<>≤≥≠()])|(?P<number>[-+]?\d[\d_]{0,60}(?:\.\d{1,60})?)(?![\w.])"
    r"|\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|(?P<word>[^\W\d][\w.-]*)|(?P<hole>\{\w+\}))"
)
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<>": operator.ne, "≠": operator.ne, "<": operator.lt,
    "<=": operator.le, "≤": operator.le, ">": operator.gt, ">=": operator.ge, "≥": operator.ge,
}  # fmt: skip
_ELSE = ("else", "otherwise")
#: Longer texts are no conditions; it also bounds how deep they nest.
_LONGEST = 300
Value = str | Fraction


@dataclass(frozen=True)
class FactName:
    """A name of a fact; a word, where there is no such fact."""

    name: str


@dataclass(frozen=True)
class Comparison:
    """Two sides and the sign between them."""

    sign: str
    left: FactName | Value
    right: FactName | Value


@dataclass(frozen=True)
class JoinedConditions:
    """Conditions of which all (``and``), one (``or``) or none (``not``) hold."""

    how: str
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class ElseCondition:
    """Holds where no other condition does."""


Condition = Comparison | JoinedConditions | ElseCondition


def read_condition(text: str) -> Condition | None:
    """The condition that a text is; None for a text that is none, such as "yes"."""
    if text.casefold().strip() in _ELSE:
        return ElseCondition()
    tokens = list(_tokenize_condition(text)) if len(text) <= _LONGEST else [None]
    if None in tokens:
        return None
    reader = _ConditionReader([token for token in tokens if token is not None])
    try:
        found = reader.read_or()
    except _NoCondition:
        return None
    return found if not reader.tokens else None


def list_fact_names(condition: Condition) -> tuple[str, ...]:
    """The names on the left of its comparisons, which have to be facts."""
    if isinstance(condition, Comparison):
        return (condition.left.name,) if isinstance(condition.left, FactName) else ()
    parts = condition.parts if isinstance(condition, JoinedConditions) else ()
    return tuple(dict.fromkeys(name for part in parts for name in list_fact_names(part)))


def holds(condition: Condition, facts: Mapping[str, object]) -> bool:
    """Whether a condition holds; every name on the left of a comparison is a fact.

    Raises:
        ValueError: a number and a text are compared by size.
    """
    if isinstance(condition, ElseCondition):
        return False
    if isinstance(condition, JoinedConditions):
        values = [holds(part, facts) for part in condition.parts]
        return all(values) if condition.how == "and" else any(values) == (condition.how == "or")
    left, right = _value_of_side(condition.left, facts), _value_of_side(condition.right, facts)
    if type(left) is not type(right) and _SIGNS[condition.sign] not in (operator.eq, operator.ne):
        raise ValueError(f"{left} {condition.sign} {right} compares a number and a text")
    return _SIGNS[condition.sign](left, right)


def _value_of_side(side: FactName | Value, facts: Mapping[str, object]) -> Value:
    given = facts.get(side.name, side.name) if isinstance(side, FactName) else side
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, int | float | Fraction):
        return Fraction(given)
    text = str(given).strip()
    return Fraction(text) if re.fullmatch(r"[-+]?\d{1,60}(\.\d{1,60})?", text) else text.casefold()


class _NoCondition(Exception):
    """The text is no condition."""


def _tokenize_condition(text: str) -> Iterator[tuple[str, str] | None]:
    at = 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            yield None
            return
        yield str(found.lastgroup), found[str(found.lastgroup)]
        at = found.end()


class _ConditionReader:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens

    def take_word(self, *words: str) -> str | None:
        """The next token, where it is one of these words or signs."""
        if self.tokens and self.tokens[0][0] in ("sign", "word") and self.tokens[0][1].casefold() in words:
            return self.tokens.pop(0)[1].casefold()
        return None

    def read_or(self) -> Condition:
        return self._read_joined("or", self.read_and)

    def read_and(self) -> Condition:
        return self._read_joined("and", self.read_term)

    def _read_joined(self, word: str, part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self.take_word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else JoinedConditions(word, tuple(parts))

    def read_term(self) -> Condition:
        if self.take_word("not"):
            return JoinedConditions("not", (self.read_term(),))
        if self.take_word("("):
            found = self.read_or()
            if not self.take_word(")"):
                raise _NoCondition
            return found
        left = self.read_side()
        sign = self.take_word(*_SIGNS)
        if sign is None:
            raise _NoCondition
        return Comparison(sign, left, self.read_side())

    def read_side(self) -> FactName | Value:
        if not self.tokens or self.tokens[0][0] == "sign":
            raise _NoCondition
        kind, text = self.tokens.pop(0)
        if kind == "number":
            return Fraction(text.replace("_", ""))
        return FactName(text) if kind == "word" else text
