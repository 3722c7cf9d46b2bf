"""Reading conditions: from the syntax tree of a rule file to an expression that names only what there is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, cast

from formal_llm.agents.guard.data import Unsaid, Value, read_duration
from formal_llm.agents.guard.expressions import (
    Apply,
    Binary,
    Const,
    Expression,
    Happened,
    Last,
    Negated,
    Path,
    Range,
    SetOf,
    every,
)  # fmt: skip
from formal_llm.agents.guard.functions import FUNCTIONS
from formal_llm.automata.models.symbols import unquote
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import did_you_mean

if TYPE_CHECKING:
    from lark import Token, Tree

#: How deeply conditions may be nested, and how long a number may be.
_DEEPEST, _DIGITS = 60, 100
_WORDS: Mapping[str, Value] = {"true": True, "false": False, "null": None}
_SIGNS = {
    "contains": "contains",
    "starts": "starts with",
    "ends": "ends with",
    "like": "like",
}


class ConditionReader:
    """Reads the conditions of one file.

    Args:
        source: the text.
        letters: the letters there are, each with the fields that it gives.
    """

    def __init__(self, source: SourceText, letters: Mapping[str, tuple[str, ...]]) -> None:
        self.source = source
        self.letters = letters

    def read(self, tree: object, depth: int = 0) -> Expression:
        """The expression that a part of the syntax tree writes.

        Raises:
            NotationError: an unknown function, a wrong number of values, a date that there is not, too deep a nesting.
        """
        if depth > _DEEPEST:
            self._fail(f"a condition nested more than {_DEEPEST} deep", tree)
        if not hasattr(tree, "data"):
            return Const(self._constant(cast("Token", tree)))
        branch = cast("Tree[Token]", tree)
        kind, parts = str(branch.data), branch.children
        match kind:
            case "path":
                return self._path(branch)
            case "apply":
                return self._apply(branch, depth)
            case "set":
                return SetOf(tuple(self._item(part, depth) for part in parts))
            case "or_" | "and_":
                return every(kind[:-1], [self.read(part, depth + 1) for part in parts])
            case "negated":
                return Negated(self.read(parts[0], depth + 1))
            case "group":
                return self.read(parts[0], depth + 1)
            case "minus":
                inner = self.read(parts[1], depth + 1)
                if isinstance(inner, Const) and isinstance(inner.value, int | Fraction):
                    return Const(-inner.value)
                return Binary("-", Const(Fraction(0)), inner)
            case "from_to":
                return Range(self.read(parts[0], depth + 1), self.read(parts[1], depth + 1))
            case "sum" | "product":
                found = self.read(parts[0], depth + 1)
                for sign, part in zip(parts[1::2], parts[2::2], strict=True):
                    found = Binary(str(sign), found, self.read(part, depth + 1))
                return found
            case "compare":
                return Binary(str(parts[1]), self.read(parts[0], depth + 1), self.read(parts[2], depth + 1))
        left, right = (self.read(part, depth + 1) for part in parts)
        if kind in ("among", "not_among"):
            found = Binary("in", left, right)
            return Negated(found) if kind == "not_among" else found
        return Binary(_SIGNS[kind], left, right)

    def _item(self, part: object, depth: int) -> Expression:
        """An item of a set; a bare word is a text there."""
        found = self.read(part, depth + 1)
        return Const(str(found.steps[0])) if isinstance(found, Path) and len(found.steps) == 1 else found

    def _path(self, tree: Tree[Token]) -> Expression:
        first = str(tree.children[0])
        if len(tree.children) == 1 and first in _WORDS:
            return Const(_WORDS[first])
        steps: list[str | int | None] = [first]
        for part in tree.children[1:]:
            token = cast("Token", cast("Tree[Token]", part).children[0])
            if token.type == "INT" and len(token) > 6:
                self._fail(f"{token} is too large a place in a list", token)
            steps.append(int(token) if token.type == "INT" else None if token.type == "STAR" else str(token))
        return Path(tuple(steps))

    def _apply(self, tree: Tree[Token], depth: int) -> Expression:
        name = str(tree.children[0])
        if name == "last":
            return self._last(tree)
        given = tuple(self.read(part, depth + 1) for part in tree.children[1:])
        if name in FUNCTIONS:
            function = FUNCTIONS[name]
            if len(given) < function.least or (function.most is not None and len(given) > function.most):
                self._fail(f"{name} takes {function.least} value{'s' if function.least > 1 else ''}", tree.children[0])
            return Apply(name, given)
        fields = self.letters.get(name)
        if fields is None:
            near = did_you_mean(name, (*FUNCTIONS, *self.letters))
            self._fail(
                f"unknown function or letter: {name}", tree.children[0],
                suggestion=f"did you mean {near}?" if near else f"functions are {', '.join(FUNCTIONS)}, last",
            )  # fmt: skip
        if len(given) > len(fields):
            told = ", ".join(fields) or "none"
            self._fail(f"{name} gives fewer fields ({told}) than it is asked for", tree.children[0])
        return Happened(name, given)

    def _last(self, tree: Tree[Token]) -> Expression:
        found = self.read(tree.children[1]) if len(tree.children) == 2 else None
        if not isinstance(found, Path) or len(found.steps) != 2:
            self._fail("last takes a field of a letter", tree.children[0], suggestion="write last(LETTER.FIELD)")
        letter, name = map(str, found.steps)
        if name not in self.letters.get(letter, ()):
            near = did_you_mean(letter, self.letters)
            what = f"{letter} gives no {name}" if letter in self.letters else f"unknown letter: {letter}"
            self._fail(what, tree.children[0], suggestion=f"did you mean {near}?" if near and near != letter else None)
        return Last(letter, name)

    def _constant(self, token: Token) -> Value:
        text = str(token)
        try:
            match token.type:
                case "INT" | "NUMBER":
                    if len(text) > _DIGITS:
                        self._fail(f"a number of {len(text)} digits", token)
                    return Fraction(text)
                case "DATE":
                    return date.fromisoformat(text)
                case "DATETIME":
                    return datetime.fromisoformat(text)
                case "TIME":
                    return time.fromisoformat(text.rjust(len(text) + text.find(":") % 2, "0"))
                case "DURATION":
                    return read_duration(text)
        except (ValueError, Unsaid):
            self._fail(f"{text} is no date, time or duration that there is", token)
        return unquote(text)

    def _fail(self, problem: str, part: object, suggestion: str | None = None) -> NoReturn:
        at = part if hasattr(part, "line") else getattr(part, "meta", None)
        place = Place(getattr(at, "line", 1), getattr(at, "column", 1))
        self.source.fail(problem, place, suggestion=suggestion)
