"""Reading grammars as text.

The syntax is in :mod:`formal_llm.automata.notation.cfg_syntax`; this module defines the meaning of statements. Every
token has its place, so that an error can name file, line and column and draw a caret. The output of
:mod:`formal_llm.automata.notation.cfg` for a grammar reads back as an equal one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, NoReturn, cast

from formal_llm.automata.languages.grammar_warnings import cfg_warnings, empty_reason, nested_calls_warning
from formal_llm.automata.models.cfg import CFG, EMPTY_WORDS
from formal_llm.automata.models.quantities import format_amount, read_amount
from formal_llm.automata.models.repetition import MOST_DEEP, expand_all_sugar, parse_repetition, problem_of, write_group
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
from formal_llm.automata.notation.cfg_syntax import PlainRule, read_statements
from formal_llm.automata.notation.limit_lines import LimitsReader, PlacedWord
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import GrammarError, unknown

if TYPE_CHECKING:
    from lark import Token, Tree


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


class Bodies:
    """Reads bodies, and records the places of symbols.

    Attributes:
        chosen: the selections read so far, each with the token of each of its terminals.
    """

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.chosen: list[tuple[str, Token]] = []
        self._depth = 0

    def fail_at(self, problem: str, token: Token, *, suggestion: str | None = None) -> NoReturn:
        """Raise an error for a problem at a token."""
        self.source.fail_at(problem, Place(token.line or 1, token.column or 1), suggestion=suggestion)

    def read_body(self, alternative: Tree[Token]) -> tuple[tuple[str, ...], Token | None]:
        """Read the symbols of a body, and its text."""
        items, text = _split_alternative(alternative)
        return tuple(self._read_item(item) for item in items), text

    def note_symbol(self, token: Token) -> str:
        """Record the place of a symbol and return its name."""
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
        """Read ``(a b | c)`` with its repetition."""
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
        """Return the normal form of a repetition or a group; ``X{0,}`` is ``X*``."""
        found = parse_repetition(symbol)
        problem = problem_of(symbol)
        try:
            kept = symbol if found is None else str(found)
            problem = problem_of(kept)
        except ValueError:
            kept = symbol
        if problem is not None:
            self.fail_at(problem[0], token, suggestion=problem[1])
        self.source.places.setdefault(kept, Place(token.line or 1, token.column or 1))
        return kept


def first_token(tree: Tree[Token] | Token) -> Token:
    """Return the first token of a part of a rule, without recursion, since the nesting of brackets is unbounded."""
    while not isinstance(tree, str):
        tree = tree.children[0]
    return tree


def _split_alternative(alternative: Tree[Token]) -> tuple[list[Tree[Token] | Token], Token | None]:
    """Split a body into its symbols and its text."""
    items = list(alternative.children)
    text = cast("Token", items.pop()) if items and getattr(items[-1], "type", "") == "STRING" else None
    return ([] if alternative.data == "empty" else items), text


def read_grammar(text: str, file: str | None = None) -> CFG:
    """Read the grammar that ``text`` describes; see :meth:`CFG.from_string`."""
    source = SourceText(text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n"), file)
    reader = _GrammarReader(source)
    for statement in read_statements(source):
        reader.read_statement(statement)
    cfg = reader.build_grammar()
    check_grammar_text(cfg, source)
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


class _GrammarReader:
    """Collects the statements of a grammar file."""

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.productions: list[Production] = []
        self.start: Token | None = None
        self.order: Order | None = None
        self.symbols: dict[str, Symbol] = {}
        self.limits = LimitsReader(source)
        self.described: list[Token] = []
        self.bodies = Bodies(source)

    def read_statement(self, statement: Tree[Token] | PlainRule) -> None:
        if isinstance(statement, PlainRule):
            self._plain_rule(statement)
        else:
            self._READERS[str(statement.data)](self, *statement.children)

    def fail_at(self, problem: str, token: Token, *, suggestion: str | None = None) -> NoReturn:
        self.source.fail_at(problem, _place_of(token), suggestion=suggestion)

    # -- statements ---------------------------------------------------------------------------------------------

    def _start_symbol(self, name: Token) -> None:
        if self.start is not None:
            self.fail_at(f"a second start symbol; the first was {self.start}", name)
        self.start = name

    def _read_order(self, name: Token) -> None:
        if self.order is not None:
            self.fail_at(f"a second order; the first was {self.order}", name)
        if name not in ORDERS:
            self.fail_at(unknown("order", name, ORDERS), name, suggestion=suggest_order(str(name)))
        self.order = cast("Order", str(name))

    def _read_rule(self, head: Token, *parts: Tree[Token] | Token) -> None:
        name = self.bodies.note_symbol(head)
        if parse_repetition(name) is not None:
            self.fail_at(f"{name} reads as a repetition, and can have no rule of its own", head,
                      suggestion="give the symbol another name, and this one as its label")  # fmt: skip
        self._begin_rule(name, _place_of(head))
        *texts, _, alternatives = parts
        if texts:
            self._set_description(head, cast("Tree[Token]", texts[0]))
        for alternative in cast("Tree[Token]", alternatives).children:
            body, text = self.bodies.read_body(cast("Tree[Token]", alternative))
            self.productions.append(Production(name, body, unquote_text(text) if text is not None else None))

    def _plain_rule(self, rule: PlainRule) -> None:
        head, places = rule.head, self.source.places
        self._begin_rule(head.text, Place(head.line, head.column))
        for body in rule.bodies:
            if not all(name in places for name in body):
                for name in rule.list_names():
                    places.setdefault(name.text, Place(name.line, name.column))
            self.productions.append(Production(head.text, tuple(body)))

    def _begin_rule(self, head: str, place: Place) -> None:
        """Set the place of a rule to its head, even if the symbol was used before."""
        if not self.productions or self.productions[-1].head != head:
            self.source.places[head] = place

    def _read_terminal(self, name: Token, text: Tree[Token], *numbers: Tree[Token]) -> None:
        self._set_description(name, text)
        self._read_numbers(name, *numbers)

    def _read_numbers(self, name: Token, *numbers: Tree[Token]) -> None:
        self.described.append(name)
        old = self.symbols.get(str(name), Symbol())
        amounts = dict(old.numbers)
        for pair in numbers:
            quantity, _, value = cast("list[Token]", pair.children)
            if str(quantity) in amounts:
                self.fail_at(f"{name} has two numbers for {quantity}", quantity)
            amounts[str(quantity)] = self._read_amount(value)
        self.symbols[str(name)] = Symbol(old.label, old.description, amounts)

    def _set_description(self, name: Token, text: Tree[Token]) -> None:
        self.described.append(name)
        label, *more = (unquote_text(cast("Token", part)) for part in text.children)
        old = self.symbols.get(str(name), Symbol())
        new = Symbol(label, more[0] if more else "", old.numbers)
        if old.label and (old.label, old.description) != (new.label, new.description):
            self.fail_at(f"{name} has two labels: {old.label!r} and {label!r}", name)
        self.symbols[str(name)] = new

    def _read_limit(self, *words: Token) -> None:
        self._limit_line("%limit", words, words[0])

    def _read_requirement(self, *words: Token) -> None:
        self._limit_line("%require", words, words[0])

    def _read_timetable(self, directive: Token, *words: Token) -> None:
        self._limit_line(str(directive), words, directive)

    def _read_order_rule(self, line: Token) -> None:
        place = _place_of(line)
        self.limits.read_rule(line.removeprefix("%rule"), Place(place.line, place.column + len("%rule")))

    #: How each kind of statement in ``cfg.lark`` is read.
    _READERS: ClassVar[Mapping[str, Callable[..., None]]] = {
        "start_symbol": _start_symbol,
        "order": _read_order,
        "rule": _read_rule,
        "terminal": _read_terminal,
        "numbers": _read_numbers,
        "limit": _read_limit,
        "sum_limit": _read_limit,
        "require": _read_requirement,
        "times": _read_timetable,
        "order_rule": _read_order_rule,
    }

    def _limit_line(self, directive: str, words: Sequence[Token], first: Token) -> None:
        placed = [PlacedWord(word.strip(), _place_of(word)) for word in words]
        self.limits.read_line(PlacedWord(directive, _place_of(first)), placed)

    def _read_amount(self, token: Token) -> int | Decimal:
        try:
            return read_amount(str(token))
        except ValueError as error:
            self.fail_at(str(error), token)

    # -- the whole grammar --------------------------------------------------------------------------------------

    def build_grammar(self) -> CFG:
        if not self.productions:
            self.source.fail_at("the grammar has no rule", None, suggestion="write at least one, such as: S -> a S | b")
        spelled = [*self.productions, *expand_all_sugar(self.productions)]
        heads = {production.head for production in spelled}
        terminals = {
            name for p in spelled for symbol in p.body for name in selection_members(symbol) or (symbol,)
        } - heads
        self._check_repeated(spelled)
        if self.start is not None and str(self.start) not in heads:
            self.fail_at(unknown("start symbol", self.start, heads), self.start, suggestion="it needs a rule")
        for symbol, name in self.bodies.chosen:
            if str(name) in heads:
                self.fail_at(f"{symbol} holds the nonterminal {name}; a selection is made of terminals", name)
        for name in self.described:
            self._check_symbol(str(name), _place_of(name), heads, terminals)
            if str(name) not in heads | terminals:
                self.fail_at(unknown("symbol", name, heads | terminals), name)
            if str(name) in heads and self.symbols.get(str(name), Symbol()).numbers:
                self.fail_at(f"{name} is a nonterminal; only terminals carry numbers", name)
        for limited in self.limits.names:
            self._check_symbol(limited.text, limited.place, heads, terminals)
            if limited.text in heads:
                self.source.fail_at(f"{limited.text} is a nonterminal; limits count terminals", limited.place)
        limits = self.limits.build_limits(terminals, self.symbols, called="symbol")
        try:
            return CFG(self.productions, str(self.start or ""), self.symbols, limits, self.order or "forward")
        except GrammarError as error:
            self.source.fail_at(error.problem, None, suggestion=error.suggestion)

    def _check_symbol(self, name: str, place: Place, heads: Container[str], terminals: Container[str]) -> None:
        again = parse_repetition(name)
        if again is not None and (again.of in heads or again.of in terminals):
            problem = f"{name} reads as a repetition of {again.of}; labels and limits are of symbols"
            self.source.fail_at(problem, place)

    def _check_repeated(self, spelled: Sequence[Production]) -> None:
        nullable = find_derivable_heads([(production.head, production.body) for production in spelled], ())
        for production in spelled:
            again = parse_repetition(production.head)
            if again is not None and again.of in nullable:
                self.source.fail_at(
                    f"{again.of} may be empty, so to repeat it would make the same plan in many ways",
                    self.source.places.get(production.head),
                    suggestion=f"write {again.of}" if again.most == 1 else f"leave ε out of the rules of {again.of}",
                )


def _place_of(token: Token) -> Place:
    return Place(token.line or 1, token.column or 1)
