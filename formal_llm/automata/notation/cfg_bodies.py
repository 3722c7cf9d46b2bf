"""Reading the bodies of productions: symbols, selections, repetitions, groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast

from formal_llm.automata.models.cfg import EMPTY_WORDS
from formal_llm.automata.models.repetition import MOST_DEEP, parse_repetition, problem_of, write_group
from formal_llm.automata.models.symbols import selection
from formal_llm.automata.notation.source import Place, SourceText

if TYPE_CHECKING:
    from lark import Token, Tree


class Bodies:
    """Reads bodies, and remembers where symbols stand.

    Attributes:
        chosen: the selections that were read, each with the place of each of its terminals.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.chosen: list[tuple[str, Token]] = []
        self._depth = 0

    def fail_at(self, problem: str, token: Token, *, suggestion: str | None = None) -> NoReturn:
        """Raise for a problem at a token."""
        self.source.fail_at(problem, Place(token.line or 1, token.column or 1), suggestion=suggestion)

    def read_body(self, alternative: Tree[Token]) -> tuple[tuple[str, ...], Token | None]:
        """The symbols of a body, and its text."""
        items, text = _split_alternative(alternative)
        return tuple(self._read_item(item) for item in items), text

    def note_symbol(self, token: Token) -> str:
        """The name of a symbol, whose place is remembered."""
        name = str(token)
        if name in EMPTY_WORDS:
            self.fail_at(
                f"{name!r} cannot be the name of a symbol", token, suggestion="ε stands alone, as an empty body"
            )
        self.source.places.setdefault(name, Place(token.line or 1, token.column or 1))
        return name

    def _read_item(self, item: Tree[Token] | Token) -> str:
        if isinstance(item, str):
            found = parse_repetition(str(item))
            if found is None:
                return self.note_symbol(item)
            self.note_symbol(item.update(value=found.of))
            return self._read_repetition(str(item), item)
        if item.data == "group":
            return self._read_group(*item.children)
        children = cast("list[Token]", item.children)
        if children[-1].startswith(")"):
            close = children[-1]
            self.fail_at(f"a selection cannot be repeated: {close[1:]} behind it", close,
                      suggestion="give it a name, such as: A -> some(a, b), and repeat A")  # fmt: skip
        names = [self.note_symbol(name) for name in children]
        for place, token in enumerate(children):
            self.chosen.append((selection(*names), token))
            if names[place] in names[:place]:
                self.fail_at(f"{selection(*names)} names a terminal twice: {token}", token)
        return selection(*names)

    def _read_group(self, inner: Tree[Token] | Token, close: Tree[Token] | Token | str = ")") -> str:
        """``(a b | c)``, and how often it is repeated."""
        first = first_token(inner)
        if self._depth >= MOST_DEEP:
            self.fail_at(f"groups more than {MOST_DEEP} deep", first,
                      suggestion="give the inner ones a name and a rule")  # fmt: skip
        bodies = []
        self._depth += 1
        for alternative in cast("Tree[Token]", inner).children:
            items, text = _split_alternative(cast("Tree[Token]", alternative))
            if text is not None:
                self.fail_at("a text stands at the end of a production, and not in a group", text,
                          suggestion="give what is in the brackets a name and a rule of its own")  # fmt: skip
            bodies.append([self._read_item(item) for item in items])
        self._depth -= 1
        return self._read_repetition(write_group(bodies) + str(close)[1:], first)

    def _read_repetition(self, symbol: str, token: Token) -> str:
        """A repetition or a group as it is kept; ``X{0,}`` is ``X*``."""
        found = parse_repetition(symbol)
        wrong = problem_of(symbol)
        try:
            kept = symbol if found is None else str(found)
            wrong = problem_of(kept)
        except ValueError:
            kept = symbol
        if wrong is not None:
            self.fail_at(wrong[0], token, suggestion=wrong[1])
        self.source.places.setdefault(kept, Place(token.line or 1, token.column or 1))
        return kept


def first_token(tree: Tree[Token] | Token) -> Token:
    """Where a part of a rule begins. It does not recurse, since brackets may be nested without end."""
    while not isinstance(tree, str):
        tree = tree.children[0]
    return tree


def _split_alternative(alternative: Tree[Token]) -> tuple[list[Tree[Token] | Token], Token | None]:
    """The symbols of a body, and its text."""
    items = list(alternative.children)
    text = cast("Token", items.pop()) if items and getattr(items[-1], "type", "") == "STRING" else None
    return ([] if alternative.data == "empty" else items), text
