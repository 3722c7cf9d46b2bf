"""Statements of tokens: what the notations of grammars and of automata have in common.

Both have lines of limits, ``%order``, ``%start``, and descriptions of terminals, ``name "label" "description" cost=5``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, NoReturn

from formal_llm.automata.models.quantities import format_amount
from formal_llm.automata.models.symbols import ORDERS, Order, Symbol, quote_text, suggest_order, unquote_text
from formal_llm.automata.notation.limit_lines import DIRECTIVES, LimitsReader, read_numbers
from formal_llm.automata.notation.source import Place, SourceText, Word, normalize_name
from formal_llm.errors import unknown

#: A line with a rule about order: what stands behind the directive is read as a whole.
_RULE = re.compile(r"""[ \t\f]*(?P<directive>%rule)(?!\w)(?P<rule>(?:"(?:[^"\\]|\\.)*"|[^"\#])*)(?:\#.*)?""")
_WRONG_ARROW = re.compile(r"=>|⇒|⟶|:=|<-|[—–―]>?|(?<![-=<>:])[:=](?![=:])|-(?=\s)|(?<![<-])>")
_ARROW = re.compile("->|→|::=")


class Token(NamedTuple):
    """A token of a line: its kind, its text, its place, and the column after it."""

    kind: str
    text: str
    place: Place
    end: int


def split_tokens(pattern: re.Pattern[str], line: str, number: int) -> list[Token]:
    """Return the tokens of a line. Names have one Unicode form, texts their own.

    Args:
        pattern: what matches any token; its groups are the kinds, ``blank`` for what is skipped.
        line: the line.
        number: which line of the text it is, from 1.
    """
    if rule := _RULE.fullmatch(line):
        groups = ("directive", "rule")
        return [Token(kind, rule[kind], Place(number, rule.start(kind) + 1), rule.end(kind) + 1) for kind in groups]
    tokens = []
    for found in pattern.finditer(line):
        kind = str(found.lastgroup)
        if kind != "blank":
            text = found[0] if kind == "text" else normalize_name(found[0])
            tokens.append(Token(kind, text, Place(number, found.start() + 1), found.end() + 1))
    return tokens


def describe_symbol(symbol: Symbol) -> str:
    """Write what is known of a symbol, as it stands behind its name; empty where that is nothing."""
    texts = [symbol.label, symbol.description] if symbol.description else [symbol.label] if symbol.label else []
    numbers = (f" {quantity}={format_amount(value)}" for quantity, value in symbol.numbers.items())
    return "".join([*(f" {quote_text(text)}" for text in texts), *numbers])


class StatementReader:
    """Reads statements, token by token.

    Attributes:
        start: the token after ``%start``.
        order: what stands after ``%order``.
        symbols: what is known of each symbol that is described.
        limits: the limits.
        described: the token of each symbol that is described.
    """

    #: What messages call what ``%start`` names.
    start_called: ClassVar[str]

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.start: Token | None = None
        self.order: Order | None = None
        self.symbols: dict[str, Symbol] = {}
        self.limits = LimitsReader(source)
        self.described: list[Token] = []
        #: The tokens of the statement that is being read, and how many of them have been.
        self.tokens: Sequence[Token] = ()
        self.at = 0

    # -- tokens -------------------------------------------------------------------------------------------------

    @property
    def next(self) -> Token:
        """The token that is to be read; at the end of a statement one of the kind ``end``."""
        return self.tokens[self.at]

    def take(self) -> Token:
        """Go on to the next token, and return this one."""
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, kind: str, *expected: str) -> Token:
        """Take the next token, which must be of a kind."""
        if self.next.kind != kind:
            self.refuse(*expected)
        return self.take()

    def expect_text(self, *expected: str) -> str:
        """Take a text, and return what it says."""
        return unquote_text(self.expect("text", *expected).text)

    def fail(self, problem: str, token: Word, suggestion: str | None = None) -> NoReturn:
        """Raise an error at a token."""
        self.source.fail_at(problem, token.place, suggestion=suggestion)

    def refuse(self, *expected: str, suggestion: str | None = None) -> NoReturn:
        """Raise for the next token, which cannot stand where it does."""
        token, before = self.next, self.tokens[max(self.at - 1, 0)]
        line = self.source.lines[token.place.line - 1]
        problem, place, sign = f"unexpected {token.text!r}", token.place, token.text[:1]
        comma = re.search(r"=\s*(\d+,\d+)", line)
        if token.kind == "directive" and self.at == 0:
            otherwise = f"directives are {', '.join(self.readers)}"
            self.source.fail_near(f"unknown directive {token.text}", place, token.text, self.readers, otherwise)
        if token.kind == "end":
            problem = "the line ends too early"
        elif token.kind == "wrong" and sign in "\"'":
            problem, expected = f"a text that does not end on its line (closing {sign} is missing)", ()
            suggestion = None
        elif token.kind == "wrong":
            problem = f"unexpected character {sign!r}"
        if comma is not None and comma.start() < token.end and place.column <= comma.end() + 1:
            problem, place = f"{comma[1]!r} has a comma for a decimal point", Place(place.line, comma.start(1) + 1)
            suggestion, expected = f"write {comma[1].replace(',', '.')}", ()
        elif len(re.findall(r'(?<!\\)"', line)) % 2 or (before.kind == "text" and before.end == place.column):
            suggestion = 'a text stands between two signs "; one inside of it is written \\"'
        elif not (_ARROW.search(line) or line.lstrip().startswith("%")) and (wrong := _WRONG_ARROW.search(line)):
            here = wrong.start() + 1 == place.column or any("->" in one for one in expected)
            suggestion = f"write '->' instead of {wrong[0]!r}" if here else suggestion
        self.source.fail_at(problem, place, expected=expected, suggestion=suggestion)

    # -- statements ---------------------------------------------------------------------------------------------

    def read_statement(self, tokens: Sequence[Token]) -> None:
        """Read one statement; its last token is its end."""
        self.tokens, self.at = tokens, 0
        directive = tokens[0]
        if directive.kind != "directive":
            self.read_plain()
        elif directive.text in self.readers:
            self.readers[directive.text](self, self.take())
        else:
            self.refuse()

    def read_plain(self) -> None:
        """Read a statement that does not begin with a directive."""
        raise NotImplementedError

    def _read_one_name(self, what: str, known: str | None, *expected: str) -> Token:
        """Read the single name behind a directive that a text has once."""
        if self.next.kind not in ("name", "quoted"):
            self.refuse(*expected)
        name = self.take()
        if self.next.kind != "end":
            self.refuse("the end of the line")
        if known is not None:
            self.fail(f"a second {what}; the first was {known}", name)
        return name

    def _read_start(self, _: Token) -> None:
        what = f"a {self.start_called.split()[-1]}"
        self.start = self._read_one_name(self.start_called, self.start and self.start.text, what)

    def _read_order(self, _: Token) -> None:
        name = self._read_one_name("order", self.order, *ORDERS)
        if name.text not in ORDERS:
            self.fail(unknown("order", name.text, ORDERS), name, suggest_order(name.text))
        self.order = name.text

    def _read_rule(self, _: Token) -> None:
        self.limits.read_rule(self.next.text, self.next.place)

    def _read_limit(self, directive: Token) -> None:
        while self.next.kind != "end":
            if self.next.kind in ("text", "directive", "wrong") or self.next.text[0] in "(|)":
                sign = self.next.text[:1]
                self.refuse("a name", suggestion=f"write {sign}=, which allows that amount too"
                            if sign in "<>" else None)  # fmt: skip
            before, comma = self.tokens[self.at - 1], self.take()
            joined = before.end == comma.place.column and comma.end == self.next.place.column
            if comma.text == "," and joined and before.text.isdigit() and self.next.text[:1].isdigit():
                written = f"{before.text},{self.next.text}"
                hint = f"write {before.text}.{self.next.text}"
                self.fail(f"{written!r} has a comma for a decimal point", before, hint)
        self.limits.read_line(directive, [token for token in self.tokens[1:-1] if token.text != ","])

    #: How each directive is read.
    readers: ClassVar[Mapping[str, Callable[[Any, Token], None]]] = {
        "%start": _read_start,
        "%order": _read_order,
        "%rule": _read_rule,
        **dict.fromkeys(DIRECTIVES, _read_limit),
    }

    # -- descriptions -------------------------------------------------------------------------------------------

    def read_texts(self) -> list[str]:
        """Read the texts that are next, two at most."""
        texts: list[str] = []
        while self.next.kind == "text" and len(texts) < 2:
            texts.append(self.expect_text())
        return texts

    def describe(self, name: Token, texts: Sequence[str], numbers: Iterator[tuple[Word, Word]]) -> None:
        """Record the texts and numbers of a symbol."""
        self.described.append(name)
        label, description = (*texts, "", "")[:2]
        old = self.symbols.get(name.text, Symbol())
        if texts and old.label and (old.label, old.description) != (label, description):
            self.fail(f"{name.text} has two labels: {old.label!r} and {label!r}", name)
        if not texts:
            label, description = old.label, old.description
        known = read_numbers(self.source, name.text, numbers, old.numbers)
        self.symbols[name.text] = Symbol(label, description, known)
