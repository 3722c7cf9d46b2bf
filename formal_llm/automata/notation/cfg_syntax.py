"""The syntax of the grammar notation: from a text to its syntax tree, or to an error that says what was expected where.

The syntax is in ``cfg.lark``. What ``lark`` says of a text that does not follow it is put into words for its author.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, cast

from formal_llm.automata.notation.limit_lines import EXAMPLES
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import did_you_mean

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

#: The arrow of a rule, in each way of writing it.
ARROW = re.compile(r"->|→|::=")
_DECIMAL_COMMA = re.compile(r"=\s*(\d+,\d+)")
#: What a line may begin with, besides a symbol.
DIRECTIVES = ("%start", "%order", "%limit", "%require", *EXAMPLES)
#: What a person calls the tokens of ``cfg.lark``.
_TOKEN_NAMES = {
    "SYMBOL": "a symbol",
    "ARROW": "'->'",
    "STRING": 'a "text"',
    "EMPTY": "ε",
    "_VBAR": "'|'",
    "EQUALS": "'='",
    "COMMA": "','",
    "LPAR": "'('",
    "RPAR": "')'",
    "_SOME": "some(...)",
    "COMPARE": "'<=' or '>='",
    "_NL": "the end of the line",
    "$END": "the end of the file",
    "_START": "%start",
    "_ORDER": "%order",
    "_LIMIT": "%limit",
    "_REQUIRE": "%require",
    "TIMES": "%clock, %window, %deadline, %gap",
}


@cache
def _parser() -> Lark:
    from lark import Lark

    text = resources.files("formal_llm.automata.notation").joinpath("cfg.lark").read_text(encoding="utf-8")
    return Lark(
        text, parser="lalr", propagate_positions=False, maybe_placeholders=False, lexer_callbacks={"SYMBOL": _stripped}
    )


def _stripped(symbol: Token) -> Token:
    """A symbol without the blanks after it."""
    text = symbol.rstrip(" \t\f")
    return symbol if len(text) == len(symbol) else symbol.update(value=text)


def parse(source: SourceText) -> Tree[Token]:
    """The syntax tree of a grammar; its children are the statements.

    Raises:
        GrammarError: the text does not follow the notation; with the place and what was expected there.
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    if not re.sub(r"#[^\n]*", "", source.text).strip():
        source.fail("the grammar is empty", None, suggestion="write at least one rule, such as: S -> a S | b")
    try:
        return _parser().parse(source.text)
    except UnexpectedToken as error:
        expected = _expected(error.accepts or error.expected)
        place = Place(error.line, error.column)
        at_end = error.token.type in {"$END", "_NL"}
        if error.token.type == "$END":
            lines = source.text.rstrip("\n").split("\n")
            place = Place(len(lines), len(lines[-1]) + 1)
        elif error.token.type == "_NL":
            place = Place(error.line, len(_uncommented(source.text.split("\n")[error.line - 1])) + 1)
        what = "the line ends too early" if at_end else f"unexpected {error.token.rstrip()!r}"
        line = _uncommented(source.text.split("\n")[place.line - 1])
        comma = _DECIMAL_COMMA.search(line)
        if comma and error.token.type == "COMMA":
            source.fail(f"{comma[1]!r} has a comma for a decimal point", Place(place.line, comma.start(1) + 1),
                        suggestion=f"write {comma[1].replace(',', '.')}")  # fmt: skip
        heads = re.match(r"\s*([^\s%|\"(]+)\s+([^\s|\"(]+)[^|\"(]*?(?:->|→|::=)", line)
        if heads and place.column <= heads.end() and not ARROW.match(heads[2]):
            source.fail(f"two symbols before the arrow: {heads[1]} and {heads[2]}",
                        Place(place.line, heads.start(2) + 1),
                        suggestion=f"one nonterminal stands there; write: {heads[1]} -> ...")  # fmt: skip
        second = re.match(r"\s*[^\s%|\"]+\s*", line)
        if second and not ARROW.search(line) and '"' not in line:
            what, expected = "the arrow is missing", ["'->' after the symbol", 'or a "label" for it']
            place = Place(place.line, second.end() + 1)
        source.fail(what, place, expected=expected, suggestion=_advice(source, place))
    except UnexpectedCharacters as error:
        place = Place(error.line, error.column)
        what = f"unexpected character {error.char!r}"
        if error.char == "%":
            what = f"unknown directive {source.text.split(chr(10))[error.line - 1][error.column - 1 :].split()[0]}"
        if error.char == '"':
            what = 'a text that does not end on its line (closing " is missing)'
        source.fail(what, place, expected=_expected(error.allowed or ()), suggestion=_advice(source, place))
    except UnexpectedInput as error:
        source.fail("this cannot be read", Place(error.line, error.column))


def _uncommented(line: str) -> str:
    """A line without its comment and the blanks at its end; a number sign in a text begins no comment."""
    kept = re.match(r'(?:[^"#]|"(?:[^"\\]|\\.)*"?)*', line)
    return (kept[0] if kept else line).rstrip()


def _expected(names: object) -> list[str]:
    shown = [_TOKEN_NAMES.get(name, name) for name in sorted(cast("set[str]", names))]
    return [name for name in dict.fromkeys(shown) if not name.startswith("__") and name not in {"COMMENT", "BLANK"}]


def _advice(source: SourceText, place: Place) -> str | None:
    """What the author of the line probably meant."""
    line = source.text.split("\n")[place.line - 1]
    wrong_arrow = re.search(r"=>|⇒|⟶|:=|(?<![-=<>:])[:=](?![=:])|<-|-(?=\s)|>", line)
    if wrong_arrow and not re.search(r"->|→|::=", line) and not line.lstrip().startswith("%"):
        return f"write '->' instead of {wrong_arrow[0]!r}"
    if "==" in line and line.lstrip().startswith("%limit"):
        return f"write {' '.join(line.replace('==', ' = ').split())}"
    word = line[place.column - 1 :].split()[0] if line[place.column - 1 :].split() else ""
    if word.startswith("%"):
        near = did_you_mean(word, [*DIRECTIVES, "%empty"])
        return f"did you mean {near}?" if near else f"directives are {', '.join(DIRECTIVES)}"
    return None
