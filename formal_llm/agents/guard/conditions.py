"""Reading conditions: from the syntax tree of a rule file to an expression that names only what there is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, cast

from formal_llm.agents.guard.data import Undetermined, Value, read_duration
from formal_llm.agents.guard.expressions import (
    BinaryOperation,
    Constant,
    Expression,
    FieldPath,
    FunctionCall,
    LastValue,
    Negation,
    PastLetter,
    ValueRange,
    ValueSet,
    join_conditions,
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

    def read_condition(self, tree: object, depth: int = 0) -> Expression:
        """The expression that a part of the syntax tree writes.

        Raises:
            NotationError: an unknown function, a wrong number of values, a date that there is not, too deep a nesting.
        """
        if depth > _DEEPEST:
            self._raise_error(f"a condition nested more than {_DEEPEST} deep", tree)
        if not hasattr(tree, "data"):
            return Constant(self._read_constant(cast("Token", tree)))
        branch = cast("Tree[Token]", tree)
        kind, parts = str(branch.data), branch.children
        match kind:
            case "path":
                return self._read_path(branch)
            case "apply":
                return self._read_function_call(branch, depth)
            case "set":
                return ValueSet(tuple(self._read_set_item(part, depth) for part in parts))
            case "or_" | "and_":
                return join_conditions(kind[:-1], [self.read_condition(part, depth + 1) for part in parts])
            case "negated":
                return Negation(self.read_condition(parts[0], depth + 1))
            case "group":
                return self.read_condition(parts[0], depth + 1)
            case "minus":
                inner = self.read_condition(parts[1], depth + 1)
                if isinstance(inner, Constant) and isinstance(inner.value, int | Fraction):
                    return Constant(-inner.value)
                return BinaryOperation("-", Constant(Fraction(0)), inner)
            case "from_to":
                return ValueRange(self.read_condition(parts[0], depth + 1), self.read_condition(parts[1], depth + 1))
            case "sum" | "product":
                found = self.read_condition(parts[0], depth + 1)
                for sign, part in zip(parts[1::2], parts[2::2], strict=True):
                    found = BinaryOperation(str(sign), found, self.read_condition(part, depth + 1))
                return found
            case "compare":
                return BinaryOperation(
                    str(parts[1]), self.read_condition(parts[0], depth + 1), self.read_condition(parts[2], depth + 1)
                )
        left, right = (self.read_condition(part, depth + 1) for part in parts)
        if kind in ("among", "not_among"):
            found = BinaryOperation("in", left, right)
            return Negation(found) if kind == "not_among" else found
        return BinaryOperation(_SIGNS[kind], left, right)

    def _read_set_item(self, part: object, depth: int) -> Expression:
        """An item of a set; a bare word is a text there."""
        found = self.read_condition(part, depth + 1)
        return Constant(str(found.steps[0])) if isinstance(found, FieldPath) and len(found.steps) == 1 else found

    def _read_path(self, tree: Tree[Token]) -> Expression:
        first = str(tree.children[0])
        if len(tree.children) == 1 and first in _WORDS:
            return Constant(_WORDS[first])
        steps: list[str | int | None] = [first]
        for part in tree.children[1:]:
            token = cast("Token", cast("Tree[Token]", part).children[0])
            if token.type == "INT" and len(token) > 6:
                self._raise_error(f"{token} is too large a place in a list", token)
            steps.append(int(token) if token.type == "INT" else None if token.type == "STAR" else str(token))
        return FieldPath(tuple(steps))

    def _read_function_call(self, tree: Tree[Token], depth: int) -> Expression:
        name = str(tree.children[0])
        if name == "last":
            return self._read_last_value(tree)
        given = tuple(self.read_condition(part, depth + 1) for part in tree.children[1:])
        if name in FUNCTIONS:
            function = FUNCTIONS[name]
            if len(given) < function.least or (function.most is not None and len(given) > function.most):
                self._raise_error(
                    f"{name} takes {function.least} value{'s' if function.least > 1 else ''}", tree.children[0]
                )
            return FunctionCall(name, given)
        fields = self.letters.get(name)
        if fields is None:
            near = did_you_mean(name, (*FUNCTIONS, *self.letters))
            self._raise_error(
                f"unknown function or letter: {name}", tree.children[0],
                suggestion=f"did you mean {near}?" if near else f"functions are {', '.join(FUNCTIONS)}, last",
            )  # fmt: skip
        if len(given) > len(fields):
            told = ", ".join(fields) or "none"
            self._raise_error(f"{name} gives fewer fields ({told}) than it is asked for", tree.children[0])
        return PastLetter(name, given)

    def _read_last_value(self, tree: Tree[Token]) -> Expression:
        found = self.read_condition(tree.children[1]) if len(tree.children) == 2 else None
        if not isinstance(found, FieldPath) or len(found.steps) != 2:
            self._raise_error("last takes a field of a letter", tree.children[0], suggestion="write last(LETTER.FIELD)")
        letter, name = map(str, found.steps)
        if name not in self.letters.get(letter, ()):
            near = did_you_mean(letter, self.letters)
            what = f"{letter} gives no {name}" if letter in self.letters else f"unknown letter: {letter}"
            self._raise_error(
                what, tree.children[0], suggestion=f"did you mean {near}?" if near and near != letter else None
            )
        return LastValue(letter, name)

    def _read_constant(self, token: Token) -> Value:
        text = str(token)
        try:
            match token.type:
                case "INT" | "NUMBER":
                    if len(text) > _DIGITS:
                        self._raise_error(f"a number of {len(text)} digits", token)
                    return Fraction(text)
                case "DATE":
                    return date.fromisoformat(text)
                case "DATETIME":
                    return datetime.fromisoformat(text)
                case "TIME":
                    return time.fromisoformat(text.rjust(len(text) + text.find(":") % 2, "0"))
                case "DURATION":
                    return read_duration(text)
        except (ValueError, Undetermined):
            self._raise_error(f"{text} is no date, time or duration that there is", token)
        return unquote(text)

    def _raise_error(self, problem: str, part: object, suggestion: str | None = None) -> NoReturn:
        at = part if hasattr(part, "line") else getattr(part, "meta", None)
        place = Place(getattr(at, "line", 1), getattr(at, "column", 1))
        self.source.fail(problem, place, suggestion=suggestion)
