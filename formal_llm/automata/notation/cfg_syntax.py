"""The syntax of the grammar notation: from a text to its syntax tree, or to an error that names what was expected.

The syntax is in ``cfg.lark``. Errors from ``lark`` are rephrased for the author of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

from formal_llm.automata.notation.limit_lines import EXAMPLES
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import did_you_mean

if TYPE_CHECKING:
    from lark import Lark, Token, Tree
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken


class PlacedName(NamedTuple):
    """A name and its place, counted from 1."""

    text: str
    line: int
    column: int


#: The arrow of a rule, in each spelling.
ARROW = re.compile(r"->|→|::=")
_DECIMAL_COMMA = re.compile(r"=\s*(\d+,\d+)")
#: The directives that a line may begin with.
DIRECTIVES = ("%start", "%order", "%limit", "%require", "%rule", *EXAMPLES)
#: A plain name: a symbol as in ``cfg.lark``, except those with a percent sign, an ε, or a sign
#: of repetitions.
_NAME = r"""(?:[^\s\x00-\x1f\x7f|"#(),=%ε<>:→*+?{}-]|-(?!>)|:(?!:=)|[<>](?!=))+"""
_PLAIN_NAME = re.compile(_NAME)
_BODY = rf"[ \t\f]*{_NAME}(?:[ \t\f]+{_NAME})*[ \t\f]*"
_PLAIN = re.compile(rf"[ \t\f]*{_NAME}[ \t\f]*(?:->|→|::=){_BODY}(?:\|{_BODY})*")
#: The tokens of ``cfg.lark`` in words for messages.
_TOKEN_NAMES = {
    "SYMBOL": "a symbol",
    "ARROW": "'->'",
    "STRING": 'a "text"',
    "EMPTY": "ε",
    "_VBAR": "'|'",
    "EQUALS": "'='",
    "COMMA": "','",
    "_OPEN": "'('",
    "_CLOSE": "')'",
    "CLOSE": "')'",
    "REPEATED": "a symbol",
    "_SOME": "some(...)",
    "COMPARE": "'<=' or '>='",
    "_NL": "the end of the line",
    "$END": "the end of the file",
    "_START": "%start",
    "_ORDER": "%order",
    "_LIMIT": "%limit",
    "_REQUIRE": "%require",
    "RULE": "%rule",
    "TIMES": "%clock, %window, %deadline, %gap",
}


@cache
def _get_parser() -> Lark:
    from lark import Lark

    text = resources.files("formal_llm.automata.notation").joinpath("cfg.lark").read_text(encoding="utf-8")
    stripped = dict.fromkeys(("SYMBOL", "REPEATED", "CLOSE"), _strip_blanks)
    return Lark(text, parser="lalr", propagate_positions=False, maybe_placeholders=False, lexer_callbacks=stripped)


def _strip_blanks(symbol: Token) -> Token:
    """Return a symbol without trailing whitespace."""
    text = symbol.rstrip(" \t\f")
    return symbol if len(text) == len(symbol) else symbol.update(value=text)


class PlainRule(NamedTuple):
    """A rule of bare names on one line, like nearly all lines of a long grammar: ``A -> b C | d``."""

    line: int
    text: str

    @property
    def head(self) -> PlacedName:
        """The symbol before the arrow."""
        return next(self.list_names())

    @property
    def bodies(self) -> list[list[str]]:
        """The alternatives after the arrow."""
        return [alternative.split() for alternative in ARROW.split(self.text, maxsplit=1)[1].split("|")]

    def list_names(self) -> Iterator[PlacedName]:
        """Yield all names with their places."""
        return (PlacedName(found[0], self.line, found.start() + 1) for found in _PLAIN_NAME.finditer(self.text))


def read_statements(source: SourceText) -> list[Tree[Token] | PlainRule]:
    """Read the statements of a grammar: its plain rules, and the syntax trees of all others.

    Raises:
        GrammarError: as :func:`parse_grammar` does.
    """
    lines = source.text.split("\n")
    plain = _plain_rules(lines)
    for rule in plain:
        lines[rule.line - 1] = ""
    rest = "\n".join(lines)
    if not re.sub(r"#[^\n]*", "", rest).strip(" \t\f\n"):
        return [*plain] if plain else [*cast("list[Tree[Token]]", parse_grammar(source).children)]
    # A plain rule is a whole statement, so the rest is readable without it if and only if it is readable with it. An
    # error is reported for the whole text.
    tree = _try_parse(rest)
    if tree is None:
        return cast("list[Tree[Token] | PlainRule]", parse_grammar(source).children)
    return sorted([*plain, *cast("list[Tree[Token]]", tree.children)], key=_line_of)


def _plain_rules(lines: Sequence[str]) -> list[PlainRule]:
    """Return the lines that are plain rules, except those that the next line continues."""
    found = []
    continued = False
    for number in range(len(lines), 0, -1):
        line = lines[number - 1]
        if not continued and _PLAIN.fullmatch(line):
            found.append(PlainRule(number, line))
            continue
        begins = line.lstrip(" \t\f")[:1]
        continued = begins == "|" or (continued and begins in ("", "#"))
    return found[::-1]


def _line_of(statement: Tree[Token] | PlainRule) -> int:
    return statement.line if isinstance(statement, PlainRule) else cast("Token", statement.children[0]).line or 1


def _try_parse(text: str) -> Tree[Token] | None:
    """Parse a text; return None if it has no syntax tree."""
    from lark.exceptions import UnexpectedInput

    try:
        return _get_parser().parse(text)
    except UnexpectedInput:
        return None


def parse_grammar(source: SourceText) -> Tree[Token]:
    """Parse a grammar; the children of its syntax tree are the statements.

    Raises:
        GrammarError: the text violates the notation; with the place and what was expected there.
    """
    from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

    if not re.sub(r"#[^\n]*", "", source.text).strip():
        source.fail_at("the grammar is empty", None, suggestion="write at least one rule, such as: S -> a S | b")
    try:
        return _get_parser().parse(source.text)
    except UnexpectedToken as error:
        _refuse_token(source, error)
    except UnexpectedCharacters as error:
        _refuse_character(source, error)
    except UnexpectedInput as error:
        source.fail_at("this cannot be read", Place(error.line, error.column))


def _refuse_token(source: SourceText, error: UnexpectedToken) -> NoReturn:
    """Raise what is wrong about a token that the notation does not allow in its place."""
    expected = _name_expected(error.accepts or error.expected)
    place = Place(error.line, error.column)
    at_end = error.token.type in {"$END", "_NL"}
    if error.token.type == "$END":
        lines = source.text.rstrip("\n").split("\n")
        place = Place(len(lines), len(lines[-1]) + 1)
    elif error.token.type == "_NL":
        place = Place(error.line, len(strip_comment(source.text.split("\n")[error.line - 1])) + 1)
    what = "the line ends too early" if at_end else f"unexpected {error.token.rstrip()!r}"
    line = strip_comment(source.text.split("\n")[place.line - 1])
    comma = _DECIMAL_COMMA.search(line)
    if comma and error.token.type == "COMMA":
        source.fail_at(f"{comma[1]!r} has a comma for a decimal point", Place(place.line, comma.start(1) + 1),
                    suggestion=f"write {comma[1].replace(',', '.')}")  # fmt: skip
    heads = re.match(r"\s*([^\s%|\"(]+)\s+([^\s|\"(]+)[^|\"(]*?(?:->|→|::=)", line)
    if heads and place.column <= heads.end() and not ARROW.match(heads[2]):
        source.fail_at(f"two symbols before the arrow: {heads[1]} and {heads[2]}",
                    Place(place.line, heads.start(2) + 1),
                    suggestion=f"one nonterminal stands there; write: {heads[1]} -> ...")  # fmt: skip
    second = re.match(r"\s*[^\s%|\"]+\s*", line)
    if second and not ARROW.search(line) and '"' not in line:
        what, expected = "the arrow is missing", ["'->' after the symbol", 'or a "label" for it']
        place = Place(place.line, second.end() + 1)
    source.fail_at(what, place, expected=expected, suggestion=_guess_mistake(source, place))


def _refuse_character(source: SourceText, error: UnexpectedCharacters) -> NoReturn:
    """Raise what is wrong about a character that begins no token."""
    place = Place(error.line, error.column)
    line = source.text.split("\n")[error.line - 1]
    what = f"unexpected character {error.char!r}"
    if error.char == "%":
        what = f"unknown directive {line[error.column - 1 :].split()[0]}"
    if error.char == "(" and re.match(r"\w", line[: error.column - 1][-1:]):
        source.fail_at(what, place, suggestion="a group stands behind a blank, as in: f (x | y)")
    if error.char == '"':
        what = 'a text that does not end on its line (closing " is missing)'
    source.fail_at(what, place, expected=_name_expected(error.allowed or ()), suggestion=_guess_mistake(source, place))


def strip_comment(line: str) -> str:
    """Remove the comment and trailing whitespace of a line; a number sign in a text begins no comment."""
    kept = re.match(r'(?:[^"#]|"(?:[^"\\]|\\.)*"?)*', line)
    return (kept[0] if kept else line).rstrip()


def _name_expected(names: object) -> list[str]:
    labels = [_TOKEN_NAMES.get(name, name) for name in sorted(cast("set[str]", names))]
    return [name for name in dict.fromkeys(labels) if not name.startswith("__") and name not in {"COMMENT", "BLANK"}]


def _guess_mistake(source: SourceText, place: Place) -> str | None:
    """Return advice on what the author of the line probably meant."""
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
    if re.fullmatch(r"(?:[^\s.]+\s+){3,}[^\s.]+\.(?:\s.*)?", line.strip()):
        return "if these are sentences, make rules of them first: formal-llm author @FILE --out rules.agent"
    return None
