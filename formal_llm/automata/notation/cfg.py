"""Reading and writing grammars as text.

A statement is a line: a directive such as ``%start S``, a rule ``head -> body | body``, or what is known of a terminal,
``name "label" "description" minutes=5``. A line that begins with ``|`` continues the one before. What is written of a
grammar reads back as an equal one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NoReturn

from formal_llm.automata.languages.grammar_warnings import cfg_warnings, empty_reason, nested_calls_warning
from formal_llm.automata.models.cfg import CFG, EMPTY_WORDS
from formal_llm.automata.models.repetition import Repetition, parse_repetition, spell_out, write_group
from formal_llm.automata.models.symbols import (
    Production,
    Symbol,
    find_derivable_heads,
    quote_text,
    selection,
    selection_members,
)
from formal_llm.automata.notation.source import Place, SourceText, Word
from formal_llm.automata.notation.statements import StatementReader, Token, describe_symbol, split_tokens
from formal_llm.errors import GrammarError, unknown

#: How deep groups may be nested.
MOST_DEEP = 20
#: The arrow of a rule, in each spelling.
ARROW = re.compile(r"->|→|::=")
_CHARACTER = r'(?:[^\s\x00-\x1f\x7f|"#(),=→<>:-]|-(?!>)|:(?!:=)|[<>](?!=))'
_TOKEN = re.compile(
    rf"""
      (?P<blank>[ \t\f]+|\#.*)
    | (?P<name>(?!%)(?:{_CHARACTER}+\{{\d*,\d*\}}|{_CHARACTER}+))
    | (?P<arrow>->|→|::=)
    | (?P<sign>\)(?:[*+?]|\{{\d*(?:,\d*)?\}})|[|(),]|<=|>=|=[=<>]?)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<directive>%[^\s|"#(),=]*)
    | (?P<wrong>.+)
    """,
    re.VERBOSE,
)
_SENTENCES = re.compile(r"(?:[^\s.]+\s+){3,}[^\s.]+\.(?:\s.*)?")


# -- writing ----------------------------------------------------------------------------------------------------------


def write_grammar(cfg: CFG) -> str:
    """Write a grammar in its notation; reading it back gives an equal grammar."""
    # The order that is there without the line is left out, unless reading the grammar back would then warn.
    declared = cfg.order == "prefix" or nested_calls_warning(cfg) is not None
    lines = [f"%start {cfg.start}", *([f"%order {cfg.order}"] if declared else [])]
    described = [f"{name}{describe_symbol(known)}" for name, known in cfg.symbols.items() if name in cfg.terminals]
    lines += [*cfg.limits.lines(), "", *_write_rules(cfg), *([""] if described else []), *described]
    return "\n".join(lines) + "\n"


def _write_rules(cfg: CFG) -> Iterator[str]:
    """Yield the rules, one line each; a label is written at the first rule of its symbol."""
    labels = {head: describe_symbol(cfg.symbols.get(head, Symbol())) for head in cfg.nonterminals}
    for head, group in groupby(cfg.authored, lambda production: production.head):
        bodies = [
            (" ".join(one.body) or "ε") + ("" if one.text is None else f" {quote_text(one.text)}") for one in group
        ]
        yield f"{head}{labels.pop(head, '')} -> {' | '.join(bodies)}"


# -- reading ----------------------------------------------------------------------------------------------------------


def read_grammar(text: str, file: str | None = None) -> CFG:
    """Read the grammar that ``text`` describes; see :meth:`CFG.from_string`."""
    source = SourceText(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), file)
    reader = _GrammarReader(source)
    statements = list(_split_statements(source.text))
    if not statements:
        source.fail_at("the grammar is empty", None, suggestion="write at least one rule, such as: S -> a S | b")
    for statement in statements:
        reader.read_statement(statement)
    cfg = reader.build_grammar()
    check_grammar_text(cfg, source)
    for token in (one for one in reader.closing if one.text not in cfg.symbols):
        message = f"{token.text} is the name of a symbol; a rule ends with its line, without a sign"
        source.warn_at(message, token.place, stacklevel=3)
    looks = nested_calls_warning(cfg) if reader.order is None else None
    if looks is not None:
        source.warn_at(looks.message, source.places.get(looks.symbol), stacklevel=3)
    return cfg


def check_grammar_text(cfg: CFG, source: SourceText) -> None:
    """Raise if a grammar that was read describes no word, and warn of likely mistakes; both with the place.

    Raises:
        GrammarError: the language is empty.
    """
    reason = empty_reason(cfg)
    if reason is not None:
        source.fail_at(reason.message, source.places.get(reason.symbol), suggestion=reason.suggestion)
    for warning in cfg_warnings(cfg):
        source.warn_at(warning.message, source.places.get(warning.symbol), stacklevel=4)


def _split_statements(text: str) -> Iterator[list[Token]]:
    """Yield the tokens of each statement, and its end."""
    statement: list[Token] = []
    for number, line in enumerate(text.split("\n"), 1):
        tokens = split_tokens(_TOKEN, line, number)
        if not tokens:
            continue
        if statement and tokens[0].text != "|":
            yield statement
            statement = []
        end = tokens[-1].end
        statement = [*statement[:-1], *tokens, Token("end", "", Place(number, end), end)]
    if statement:
        yield statement


class _GrammarReader(StatementReader):
    """Collects the statements of a grammar file."""

    start_called = "start symbol"

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self.productions: list[Production] = []
        self.groups: dict[str, list[tuple[str, ...]]] = {}
        #: The selections read so far, each with the token of each of its terminals.
        self._chosen: list[tuple[str, Token]] = []
        #: The last symbols of rules that end with a semicolon.
        self.closing: list[Token] = []

    def refuse(self, *expected: str, suggestion: str | None = None) -> NoReturn:
        """Raise for the next token, with what its author probably meant."""
        token, first, second = self.next, self.tokens[0], self.tokens[1]
        line = self.source.lines[token.place.line - 1]
        arrow = next((at for at, one in enumerate(self.tokens) if one.kind == "arrow"), None)
        if token.text[:1] == "(" and re.match(r"\w", line[: token.place.column - 1][-1:]):
            suggestion = "a group stands behind a blank, as in: f (x | y)"
        elif arrow and first.kind == second.kind == "name" and self.at < arrow:
            self.fail(f"two symbols before the arrow: {first.text} and {second.text}", second,
                      f"one nonterminal stands there; write: {first.text} -> ...")  # fmt: skip
        elif _SENTENCES.fullmatch(line.strip()):
            suggestion = "if these are sentences, make rules of them first: formal-llm author @FILE --out rules.agent"
        super().refuse(*expected, suggestion=suggestion)

    # -- statements ---------------------------------------------------------------------------------------------

    def read_plain(self) -> None:
        """Read a rule, or what is known of a terminal."""
        name = self.expect("name", "a symbol", "a directive such as %start")
        texts = self.read_texts()
        if self.next.kind == "arrow":
            self._read_production(name, texts)
        elif texts or (self.next.kind == "name" and self.tokens[self.at + 1].text == "="):
            self.describe(name, texts, self._read_numbers())
        else:
            self.refuse("'->' after the symbol", 'or a "label" for it')

    def _read_numbers(self) -> Iterator[tuple[Word, Word]]:
        while self.next.kind != "end":
            quantity = self.expect("name", "a number such as minutes=5", "the end of the line")
            if self.next.text != "=":
                self.refuse("'='")
            self.take()
            yield quantity, self.expect("name", "a number")

    def _read_production(self, head: Token, texts: Sequence[str]) -> None:
        name = self._note(head)
        if parse_repetition(name) is not None:
            self.fail(f"{name} reads as a repetition, and can have no rule of its own", head,
                       "give the symbol another name, and this one as its label")  # fmt: skip
        # A rule is the place of its head, even if the symbol was used before.
        if not self.productions or self.productions[-1].head != name:
            self.source.places[name] = head.place
        if texts:
            self.describe(head, texts, iter(()))
        self.take()
        self.productions += [Production(name, tuple(body), text) for body, text in self._read_bodies(0)]
        if self.next.kind != "end":
            self.refuse("a symbol", "'|'", "'('", 'a "text"', "the end of the line")
        last = self.tokens[-2]
        if last.kind == "name" and last.text.endswith(";"):
            self.closing.append(last)

    # -- bodies -------------------------------------------------------------------------------------------------

    def _note(self, token: Token) -> str:
        """Return the name of a symbol, and note its place."""
        name = token.text
        if token.text in EMPTY_WORDS:
            self.fail(f"{name!r} cannot be the name of a symbol", token, "ε stands alone, as an empty body")
        self.source.places.setdefault(name, token.place)
        return name

    def _read_bodies(self, depth: int) -> list[tuple[list[str], str | None]]:
        """Read the alternatives of a rule or of a group: the symbols of each, and its text."""
        bodies = [self._read_body(depth)]
        while self.next.text == "|":
            self.take()
            bodies.append(self._read_body(depth))
        return bodies

    def _read_body(self, depth: int) -> tuple[list[str], str | None]:
        names: list[str] = []
        if self.next.text in EMPTY_WORDS:
            self.take()
        else:
            while self.next.kind == "name" or self.next.text == "(":
                names.append(self._read_item(depth))
            if not names:
                self.refuse("a symbol", "'('", "ε")
        if self.next.kind != "text":
            return names, None
        if depth:
            self.fail("a text stands at the end of a production, and not in a group", self.next,
                       "give what is in the brackets a name and a rule of its own")  # fmt: skip
        return names, self.expect_text()

    def _read_item(self, depth: int) -> str:
        before, token = self.tokens[self.at - 1], self.next
        if token.kind == "name":
            self.take()
            if token.text == "some" and self.next.text == "(":
                return self._read_selection()
            again = parse_repetition(token.text)
            if again is None:
                return self._note(token)
            return self._repeat(self._note(token._replace(text=again.of)), again, token)
        if before.kind == "name" and (before.place.line, before.end) == token.place:
            self.refuse()
        self.take()
        if depth >= MOST_DEEP:
            self.fail(f"groups more than {MOST_DEEP} deep", self.next, "give the inner ones a name and a rule")
        first = self.next
        bodies = list(dict.fromkeys(tuple(names) for names, _ in self._read_bodies(depth + 1)))
        if self.next.text[:1] != ")":
            self.refuse("a symbol", "'|'", "'('", "')'")
        close = self.take().text
        name = write_group(bodies)
        self.groups[name] = bodies
        self.source.places.setdefault(name, first.place)
        again = parse_repetition(name + close[1:])
        return name if again is None else self._repeat(name, again, first)

    def _repeat(self, of: str, again: Repetition, token: Token) -> str:
        """Return the one form of a repetition; ``X{0,}`` is ``X*``."""
        if parse_repetition(of) is not None:
            self.fail(f"{token.text} repeats a repetition", token,
                       f"one sign is enough; or put {of} in brackets: ({of})")  # fmt: skip
        try:
            name = str(Repetition(of, again.least, again.most))
        except ValueError as error:
            self.fail(str(error), token, "write least and most, as in X{1,3}")
        self.source.places.setdefault(name, token.place)
        return name

    def _read_selection(self) -> str:
        self.take()
        tokens = [self.expect("name", "a symbol")]
        while self.next.text == ",":
            self.take()
            tokens.append(self.expect("name", "a symbol"))
        if self.next.text[:1] != ")":
            self.refuse("','", "')'")
        close = self.take()
        if close.text != ")":
            self.fail(f"a selection cannot be repeated: {close.text[1:]} behind it", close,
                       "give it a name, such as: A -> some(a, b), and repeat A")  # fmt: skip
        names = [self._note(token) for token in tokens]
        chosen = selection(*names)
        repeated = next((token for token in tokens if parse_repetition(token.text)), None)
        if repeated is not None:
            self.fail(f"a selection is made of terminals, and {repeated.text} reads as a repetition", repeated)
        for place, token in enumerate(tokens):
            self._chosen.append((chosen, token))
            if names[place] in names[:place]:
                self.fail(f"{chosen} names a terminal twice: {token.text}", token)
        return chosen

    # -- the whole grammar --------------------------------------------------------------------------------------

    def build_grammar(self) -> CFG:
        """Build the grammar of all statements."""
        if not self.productions:
            self.source.fail_at("the grammar has no rule", None, suggestion="write at least one, such as: S -> a S | b")
        spelled = spell_out([production.body for production in self.productions], self.groups)
        productions = [*self.productions, *spelled]
        heads = dict.fromkeys(production.head for production in productions)
        names = [name for p in productions for symbol in p.body for name in selection_members(symbol) or (symbol,)]
        terminals = dict.fromkeys(name for name in names if name not in heads)
        self._check_repeated(productions, spelled)
        if self.start and self.start.text not in heads:
            self.fail(unknown("start symbol", self.start.text, heads), self.start, "it needs a rule")
        self._check_names(heads, terminals)
        limits = self.limits.build_limits(terminals, self.symbols, called="symbol")
        start = self.start.text if self.start else ""
        try:
            return CFG(productions, start, self.symbols, limits, self.order or "forward")
        except GrammarError as error:
            self.source.fail_at(error.problem, None, suggestion=error.suggestion)

    def _check_names(self, heads: Mapping[str, None], terminals: Mapping[str, None]) -> None:
        for symbol, token in self._chosen:
            if token.text in heads:
                self.fail(f"{symbol} holds the nonterminal {token.text}; a selection is made of terminals", token)
        for named in (*self.described, *self.limits.names):
            again = parse_repetition(named.text)
            if again is not None and (again.of in heads or again.of in terminals):
                problem = f"{named.text} reads as a repetition of {again.of}; labels and limits are of symbols"
                self.source.fail_at(problem, named.place)
        for token in self.described:
            name = token.text
            if name not in heads and name not in terminals:
                self.fail(unknown("symbol", token.text, (*heads, *terminals)), token)
            if name in heads and self.symbols[name].numbers:
                self.fail(f"{token.text} is a nonterminal; only terminals carry numbers", token)
        for limited in self.limits.names:
            if limited.text in heads:
                self.source.fail_at(f"{limited.text} is a nonterminal; limits count terminals", limited.place)

    def _check_repeated(self, productions: Sequence[Production], spelled: Sequence[Production]) -> None:
        nullable = find_derivable_heads([(production.head, production.body) for production in productions], ())
        for production in spelled:
            again = parse_repetition(production.head)
            if again is not None and again.of in nullable:
                self.source.fail_at(
                    f"{again.of} may be empty, so to repeat it would make the same plan in many ways",
                    self.source.places.get(production.head),
                    suggestion=f"write {again.of}" if again.most == 1 else f"leave ε out of the rules of {again.of}",
                )
