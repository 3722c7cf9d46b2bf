"""Reading and writing grammars as text.

A statement is a line: a directive such as ``%start S``, a rule ``head -> body | body``, or what is known of a terminal,
``name "label" "description" minutes=5``. A line that begins with ``|`` continues the one before. What is written of a
grammar reads back as an equal one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NoReturn

from formal_llm.automata.languages.grammar_warnings import cfg_warnings, empty_reason, nested_calls_warning
from formal_llm.automata.models.cfg import CFG, EMPTY_WORDS
from formal_llm.automata.models.quantities import format_amount, read_amount
from formal_llm.automata.models.repetition import Repetition, parse_repetition, spell_out, write_group
from formal_llm.automata.models.symbols import (
    ORDERS,
    Order,
    Production,
    Symbol,
    find_derivable_heads,
    quote_text,
    selection,
    selection_members,
    suggest_order,
    unquote_text,
)
from formal_llm.automata.notation.limit_lines import EXAMPLES, LimitsReader, split_rule_line
from formal_llm.automata.notation.source import Place, SourceText, Token, split_tokens
from formal_llm.errors import GrammarError, did_you_mean, unknown

#: How deep groups may be nested.
MOST_DEEP = 20
#: The arrow of a rule, in each spelling.
ARROW = re.compile(r"->|→|::=")
#: The directives that a line may begin with.
DIRECTIVES = ("%start", "%order", "%limit", "%require", "%rule", *EXAMPLES)
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
_WRONG_ARROW = re.compile(r"=>|⇒|⟶|:=|(?<![-=<>:])[:=](?![=:])|<-|-(?=\s)|>")


# -- writing ----------------------------------------------------------------------------------------------------------


def write_grammar(cfg: CFG) -> str:
    """Write a grammar in its notation; reading it back gives an equal grammar."""
    # The order that is there without the line is left out, unless reading the grammar back would then warn.
    declared = cfg.order == "prefix" or nested_calls_warning(cfg) is not None
    lines = [f"%start {cfg.start}", *([f"%order {cfg.order}"] if declared else [])]
    described = list(_write_terminals(cfg))
    lines += [*cfg.limits.lines(), "", *_write_rules(cfg), *([""] if described else []), *described]
    return "\n".join(lines) + "\n"


def _write_terminals(cfg: CFG) -> Iterator[str]:
    """Yield the lines of terminals with labels or numbers."""
    for name, symbol in cfg.symbols.items():
        if name in cfg.terminals:
            numbers = "".join(f" {quantity}={format_amount(value)}" for quantity, value in symbol.numbers.items())
            yield f"{name}{_write_description(cfg, name)}{numbers}"


def _write_rules(cfg: CFG) -> Iterator[str]:
    """Yield the rules, one line each."""
    line, previous = "", None
    for production in cfg.authored:
        text = "" if production.text is None else f" {quote_text(production.text)}"
        body = f"{' '.join(production.body) or 'ε'}{text}"
        if production.head == previous:
            line += f" | {body}"
            continue
        if previous is not None:
            yield line
        # A label is written at the first rule of its symbol.
        first = production is cfg.by_head[production.head][0]
        line = f"{production.head}{_write_description(cfg, production.head) if first else ''} -> {body}"
        previous = production.head
    yield line


def _write_description(cfg: CFG, name: str) -> str:
    symbol = cfg.symbols.get(name)
    if symbol is None or not (symbol.label or symbol.description):
        return ""
    return f" {quote_text(symbol.label)}" + (f" {quote_text(symbol.description)}" if symbol.description else "")


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
    for message, place in reader.list_warnings(cfg):
        source.warn_at(message, place, stacklevel=3)
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
        tokens = split_rule_line(line, number) or split_tokens(_TOKEN, line, number)
        if not tokens:
            continue
        if statement and tokens[0].text != "|":
            yield statement
            statement = []
        end = tokens[-1].end
        statement = [*statement[:-1], *tokens, Token("end", "", Place(number, end), end)]
    if statement:
        yield statement


class _GrammarReader:
    """Collects the statements of a grammar file."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.productions: list[Production] = []
        self.groups: dict[str, list[tuple[str, ...]]] = {}
        self.start: Token | None = None
        self.order: Order | None = None
        self.symbols: dict[str, Symbol] = {}
        self.limits = LimitsReader(source)
        self._described: list[Token] = []
        #: The selections read so far, each with the token of each of its terminals.
        self._chosen: list[tuple[str, Token]] = []
        self._closing: list[Token] = []
        #: The tokens of the statement that is being read, and how many of them have been.
        self._tokens: Sequence[Token] = ()
        self._at = 0

    # -- tokens -------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, kind: str, *expected: str) -> Token:
        if self._next.kind != kind:
            self._refuse(*expected)
        return self._take()

    def _fail(self, problem: str, token: Token, suggestion: str | None = None) -> NoReturn:
        self.source.fail_at(problem, token.place, suggestion=suggestion)

    def _refuse(self, *expected: str) -> NoReturn:
        """Raise for the next token, which cannot stand where it does."""
        token = self._next
        line = self.source.text.split("\n")[token.place.line - 1]
        first, second, before = self._tokens[0], self._tokens[1], self._tokens[max(self._at - 1, 0)]
        place, character = token.place, token.text[:1]
        arrow = next((one for one in self._tokens if one.kind == "arrow"), None)
        problem, suggestion = f"unexpected {token.text!r}", _guess_mistake(line)
        if token.kind == "end":
            problem = "the line ends too early"
        elif token.kind == "wrong":
            problem = f"unexpected character {character!r}"
            if character == '"':
                problem = 'a text that does not end on its line (closing " is missing)'
        if token.kind == "directive" and self._at == 0:
            problem, expected = f"unknown directive {token.text}", ()
            near = did_you_mean(token.text, [*DIRECTIVES, "%empty"])
            suggestion = f"did you mean {near}?" if near else f"directives are {', '.join(DIRECTIVES)}"
        elif len(re.findall(r'(?<!\\)"', line)) % 2 or (before.kind == "text" and before.end == place.column):
            suggestion = 'a text stands between two signs "; one inside of it is written \\"'
        elif (comma := re.search(r"=\s*(\d+,\d+)", line)) and character == ",":
            problem, place = f"{comma[1]!r} has a comma for a decimal point", Place(place.line, comma.start(1) + 1)
            suggestion, expected = f"write {comma[1].replace(',', '.')}", ()
        elif character == "(" and re.match(r"\w", line[: place.column - 1][-1:]):
            problem, suggestion = "unexpected character '('", "a group stands behind a blank, as in: f (x | y)"
        elif arrow and first.kind == second.kind == "name" and self._at < self._tokens.index(arrow):
            problem, place = f"two symbols before the arrow: {first.text} and {second.text}", second.place
            suggestion, expected = f"one nonterminal stands there; write: {first.text} -> ...", ()
        elif first.kind == "name" and not arrow and '"' not in line:
            problem, place = "the arrow is missing", second.place
            expected = ("'->' after the symbol", 'or a "label" for it')
        self.source.fail_at(problem, place, expected=expected, suggestion=suggestion)

    # -- statements ---------------------------------------------------------------------------------------------

    def read_statement(self, tokens: Sequence[Token]) -> None:
        """Read one statement; its last token is its end."""
        self._tokens, self._at = tokens, 0
        first = tokens[0]
        if first.kind == "directive" and first.text in DIRECTIVES:
            self._read_directive()
            return
        name = self._expect("name", "a symbol", *DIRECTIVES)
        texts: list[str] = []
        while self._next.kind == "text" and len(texts) < 2:
            texts.append(unquote_text(self._take().text))
        if self._next.kind == "arrow":
            self._read_rule(name, texts)
        elif texts or (self._next.kind == "name" and tokens[self._at + 1].text == "="):
            if texts:
                self._describe(name, texts)
            self._read_numbers(name)
        else:
            self._refuse("'->' after the symbol", 'or a "label" for it')

    def _read_directive(self) -> None:
        directive = self._take()
        if directive.text in ("%start", "%order"):
            name = self._expect("name", "a symbol")
            if self._next.kind != "end":
                self._refuse("the end of the line")
            known = self.start and self.start.text if directive.text == "%start" else self.order
            if known is not None:
                what = "start symbol" if directive.text == "%start" else "order"
                self._fail(f"a second {what}; the first was {known}", name)
            if directive.text == "%start":
                self.start = name
            elif name.text not in ORDERS:
                self._fail(unknown("order", name.text, ORDERS), name, suggest_order(name.text))
            else:
                self.order = name.text
            return
        if self._next.kind == "rule":
            self.limits.read_rule(self._next.text, self._next.place)
            return
        words = self._tokens[1:-1]
        while self._next.kind != "end":
            if self._next.kind not in ("name", "arrow") and self._next.text[:1] not in "<>=":
                self._refuse("a symbol")
            self._take()
        if not words:
            self._refuse("a symbol")
        counted = directive.text in ("%limit", "%require")
        self.limits.read_line(directive._replace(place=words[0].place) if counted else directive, words)

    def _read_rule(self, head: Token, texts: Sequence[str]) -> None:
        name = self._note(head)
        if parse_repetition(name) is not None:
            self._fail(f"{name} reads as a repetition, and can have no rule of its own", head,
                       "give the symbol another name, and this one as its label")  # fmt: skip
        # A rule is the place of its head, even if the symbol was used before.
        if not self.productions or self.productions[-1].head != name:
            self.source.places[name] = head.place
        if texts:
            self._describe(head, texts)
        self._take()
        self.productions += [Production(name, tuple(body), text) for body, text in self._read_bodies(0)]
        if self._next.kind != "end":
            self._refuse("a symbol", "'|'", "'('", 'a "text"', "the end of the line")
        last = self._tokens[-2]
        if last.kind == "name" and last.text.endswith(";"):
            self._closing.append(last)

    def _describe(self, name: Token, texts: Sequence[str]) -> None:
        self._described.append(name)
        label, description = (*texts, "")[:2]
        old = self.symbols.get(name.text, Symbol())
        if old.label and (old.label, old.description) != (label, description):
            self._fail(f"{name.text} has two labels: {old.label!r} and {label!r}", name)
        self.symbols[name.text] = Symbol(label, description, old.numbers)

    def _read_numbers(self, name: Token) -> None:
        self._described.append(name)
        old = self.symbols.get(name.text, Symbol())
        amounts = dict(old.numbers)
        while self._next.kind != "end":
            quantity = self._expect("name", "a number such as minutes=5", "the end of the line")
            if self._next.text != "=":
                self._refuse("'='")
            self._take()
            value = self._expect("name", "a number")
            if quantity.text in amounts:
                self._fail(f"{name.text} has two numbers for {quantity.text}", quantity)
            try:
                amounts[quantity.text] = read_amount(value.text)
            except ValueError as error:
                self._fail(str(error), value)
        self.symbols[name.text] = Symbol(old.label, old.description, amounts)

    # -- bodies -------------------------------------------------------------------------------------------------

    def _note(self, token: Token) -> str:
        """Return the name of a symbol, and note its place."""
        name = token.text
        if token.text in EMPTY_WORDS:
            self._fail(f"{name!r} cannot be the name of a symbol", token, "ε stands alone, as an empty body")
        self.source.places.setdefault(name, token.place)
        return name

    def _read_bodies(self, depth: int) -> list[tuple[list[str], str | None]]:
        """Read the alternatives of a rule or of a group: the symbols of each, and its text."""
        bodies = [self._read_body(depth)]
        while self._next.text == "|":
            self._take()
            bodies.append(self._read_body(depth))
        return bodies

    def _read_body(self, depth: int) -> tuple[list[str], str | None]:
        names: list[str] = []
        if self._next.text in EMPTY_WORDS:
            self._take()
        else:
            while self._next.kind == "name" or self._next.text == "(":
                names.append(self._read_item(depth))
            if not names:
                self._refuse("a symbol", "'('", "ε")
        if self._next.kind != "text":
            return names, None
        if depth:
            self._fail("a text stands at the end of a production, and not in a group", self._next,
                       "give what is in the brackets a name and a rule of its own")  # fmt: skip
        return names, unquote_text(self._take().text)

    def _read_item(self, depth: int) -> str:
        before, token = self._tokens[self._at - 1], self._next
        if token.kind == "name":
            self._take()
            if token.text == "some" and self._next.text == "(":
                return self._read_selection()
            again = parse_repetition(token.text)
            if again is None:
                return self._note(token)
            return self._repeat(self._note(token._replace(text=again.of)), again, token)
        if before.kind == "name" and (before.place.line, before.end) == token.place:
            self._refuse()
        self._take()
        if depth >= MOST_DEEP:
            self._fail(f"groups more than {MOST_DEEP} deep", self._next, "give the inner ones a name and a rule")
        first = self._next
        bodies = list(dict.fromkeys(tuple(names) for names, _ in self._read_bodies(depth + 1)))
        if self._next.text[:1] != ")":
            self._refuse("a symbol", "'|'", "'('", "')'")
        close = self._take().text
        name = write_group(bodies)
        self.groups[name] = bodies
        self.source.places.setdefault(name, first.place)
        again = parse_repetition(name + close[1:])
        return name if again is None else self._repeat(name, again, first)

    def _repeat(self, of: str, again: Repetition, token: Token) -> str:
        """Return the one form of a repetition; ``X{0,}`` is ``X*``."""
        if parse_repetition(of) is not None:
            self._fail(f"{token.text} repeats a repetition", token,
                       f"one sign is enough; or put {of} in brackets: ({of})")  # fmt: skip
        try:
            name = str(Repetition(of, again.least, again.most))
        except ValueError as error:
            self._fail(str(error), token, "write least and most, as in X{1,3}")
        self.source.places.setdefault(name, token.place)
        return name

    def _read_selection(self) -> str:
        self._take()
        tokens = [self._expect("name", "a symbol")]
        while self._next.text == ",":
            self._take()
            tokens.append(self._expect("name", "a symbol"))
        if self._next.text[:1] != ")":
            self._refuse("','", "')'")
        close = self._take()
        if close.text != ")":
            self._fail(f"a selection cannot be repeated: {close.text[1:]} behind it", close,
                       "give it a name, such as: A -> some(a, b), and repeat A")  # fmt: skip
        names = [self._note(token) for token in tokens]
        chosen = selection(*names)
        repeated = next((token for token in tokens if parse_repetition(token.text)), None)
        if repeated is not None:
            self._fail(f"a selection is made of terminals, and {repeated.text} reads as a repetition", repeated)
        for place, token in enumerate(tokens):
            self._chosen.append((chosen, token))
            if names[place] in names[:place]:
                self._fail(f"{chosen} names a terminal twice: {token.text}", token)
        return chosen

    # -- the whole grammar --------------------------------------------------------------------------------------

    def build_grammar(self) -> CFG:
        """Build the grammar of all statements."""
        if not self.productions:
            self.source.fail_at("the grammar has no rule", None, suggestion="write at least one, such as: S -> a S | b")
        spelled = spell_out([production.body for production in self.productions], self.groups)
        productions = [*self.productions, *spelled]
        heads = {production.head for production in productions}
        terminals = {
            name for p in productions for symbol in p.body for name in selection_members(symbol) or (symbol,)
        } - heads
        self._check_repeated(productions, spelled)
        if self.start and self.start.text not in heads:
            self._fail(unknown("start symbol", self.start.text, heads), self.start, "it needs a rule")
        self._check_names(heads, terminals)
        limits = self.limits.build_limits(terminals, self.symbols, called="symbol")
        start = self.start.text if self.start else ""
        try:
            return CFG(productions, start, self.symbols, limits, self.order or "forward")
        except GrammarError as error:
            self.source.fail_at(error.problem, None, suggestion=error.suggestion)

    def _check_names(self, heads: AbstractSet[str], terminals: AbstractSet[str]) -> None:
        for symbol, token in self._chosen:
            if token.text in heads:
                self._fail(f"{symbol} holds the nonterminal {token.text}; a selection is made of terminals", token)
        for named in (*self._described, *self.limits.names):
            again = parse_repetition(named.text)
            if again is not None and (again.of in heads or again.of in terminals):
                problem = f"{named.text} reads as a repetition of {again.of}; labels and limits are of symbols"
                self.source.fail_at(problem, named.place)
        for token in self._described:
            name = token.text
            if name not in heads | terminals:
                self._fail(unknown("symbol", token.text, heads | terminals), token)
            if name in heads and self.symbols[name].numbers:
                self._fail(f"{token.text} is a nonterminal; only terminals carry numbers", token)
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

    def list_warnings(self, cfg: CFG) -> Iterator[tuple[str, Place | None]]:
        """Yield what is legal and means something else in other notations."""
        for token in self._closing:
            if token.text not in cfg.symbols:
                yield (f"{token.text} is the name of a symbol; a rule ends with its line, without a sign", token.place)


def _guess_mistake(line: str) -> str | None:
    """Return advice on what the author of a line probably meant."""
    if not ARROW.search(line) and not line.lstrip().startswith("%"):
        wrong_arrow = _WRONG_ARROW.search(line)
        if wrong_arrow:
            return f"write '->' instead of {wrong_arrow[0]!r}"
    if _SENTENCES.fullmatch(line.strip()):
        return "if these are sentences, make rules of them first: formal-llm author @FILE --out rules.agent"
    return None
