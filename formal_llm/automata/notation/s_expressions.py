"""S-expressions: from a text to groups of tokens with places.

The syntax is in ``s_expressions.lark``; the modules that read formulas and behaviours define the meaning of words.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple, cast

from formal_llm.automata.models.symbols import unquote_text
from formal_llm.automata.notation.source import Place, SourceText, normalize_name, place_of

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

#: The maximum nesting of parentheses; formulas are processed recursively.
_DEPTH = 100


class SAtom(NamedTuple):
    """A name or a quoted text, and its place."""

    text: str
    place: Place
    quoted: bool = False


class SList(NamedTuple):
    """The items between two parentheses, and the place where they open."""

    items: tuple[Expression, ...]
    place: Place

    @property
    def head(self) -> SAtom | None:
        """The name that it begins with, if any."""
        first = self.items[0] if self.items else None
        return first if isinstance(first, SAtom) and not first.quoted else None


Expression = SAtom | SList


@cache
def _get_parser() -> Lark:
    from lark import Lark

    text = resources.files("formal_llm.automata.notation").joinpath("s_expressions.lark").read_text(encoding="utf-8")
    return Lark(text, parser="lalr", lexer="basic", maybe_placeholders=False)


def read_expressions(source: SourceText) -> tuple[Expression, ...]:
    """Read the expressions of a text, in order.

    Raises:
        NotationError: a parenthesis has no partner, or a text has no closing quote.
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    try:
        tree = _get_parser().parse(source.text)
    except UnexpectedCharacters as error:
        place = Place(error.line, error.column)
        if error.char == '"':
            source.fail_at('a text that does not end on its line (closing " is missing)', place)
        source.fail_at(f"unexpected character {error.char!r}", place)
    except UnexpectedToken as error:
        if error.token.type == "_CLOSE":
            source.fail_at("this parenthesis closes nothing", Place(error.line, error.column))
        open_ones: list[Token] = []
        for token in _get_parser().lex(source.text):
            if token.type == "OPEN":
                open_ones.append(token)
            elif token.type == "_CLOSE":
                open_ones.pop()
        source.fail_at("this parenthesis is never closed", place_of(open_ones[-1]))
    return tuple(_read_tree(child, source, 0) for child in tree.children)


def _read_tree(tree: Tree[Token] | Token, source: SourceText, depth: int) -> Expression:
    if isinstance(tree, str):
        quoted = tree.type == "STRING"
        return SAtom(unquote_text(tree) if quoted else normalize_name(str(tree)), place_of(tree), quoted)
    opening, *items = tree.children
    place = place_of(cast("Token", opening))
    if depth >= _DEPTH:
        source.fail_at(f"parentheses more than {_DEPTH} deep", place)
    return SList(tuple(_read_tree(item, source, depth + 1) for item in items), place)
