"""Context-free grammars.

A grammar G = (V, T, P, S): nonterminals V, terminals T, productions P, a start symbol S (Hopcroft, Motwani and Ullman,
chapter 5). Here it is an immutable value that also carries what people read, labels and descriptions, and what a plan
may use up, its limits.

A body may hold a *selection* ``some(a, b, c)``: any non-empty subset of the terminals, in that order. It is sugar for
the unambiguous right-linear productions that :attr:`CFG.expanded` adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from formal_llm.automata.models.automaton import Intersectable
from formal_llm.automata.models.closures import closure, reach
from formal_llm.automata.models.limits import Limits
from formal_llm.errors import GrammarError, did_you_mean
from formal_llm.pictures.picture import Drawable, Picture

if TYPE_CHECKING:
    import networkx

    from formal_llm.automata.languages.cfg_warnings import Diagnostic
    from formal_llm.automata.languages.derivations import Derivations

_SUBSET = re.compile(r"(some|any)\((.*)\)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Symbol:
    """What is known of a symbol beside its name.

    Attributes:
        label: the text that a person reads for it; empty where none was given.
        description: a sentence more, empty where none was given.
        numbers: amounts that a terminal carries (minutes, money).
    """

    label: str = ""
    description: str = ""
    numbers: Mapping[str, int | float] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Production:
    """A production ``head -> body``; an empty body is ε. ``text`` is the wording of the step it stands for."""

    head: str
    body: tuple[str, ...]
    text: str | None = None

    def __str__(self) -> str:
        words = [self.head, "->", *(self.body or ("ε",))]
        if self.text is not None:
            words.append(quote(self.text))
        return " ".join(words)


def quote(text: str) -> str:
    """``text`` as the notation's string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def unquote(literal: str) -> str:
    """The text of a string literal of the notation."""
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), literal[1:-1])


def selection(*terminals: str) -> str:
    """The body symbol for any non-empty subset of ``terminals``, kept in this order."""
    return f"some({', '.join(terminals)})"


def members(symbol: str) -> tuple[str, ...] | None:
    """The terminals of a selection symbol, None for any other symbol."""
    match = _SUBSET.fullmatch(symbol) if symbol.endswith(")") else None
    return tuple(match[2].split(", ")) if match else None


def spelled_out(selections: Iterable[str]) -> list[Production]:
    """Productions that give selection symbols ``some(...)`` their meaning."""
    productions: list[Production] = []
    seen: set[str] = set()
    todo = list(selections)
    while todo:
        symbol = todo.pop()
        if symbol not in seen:
            seen.add(symbol)
            added = _subset_productions(symbol)
            productions += added
            todo += [name for p in added for name in p.body if members(name) is not None]
    return productions


def _subset_productions(symbol: str) -> list[Production]:
    """``some(a, b)`` takes the first member or leaves it; ``any(...)``, what follows a taken one, may stay empty."""
    kind, names = symbol[: symbol.index("(")], members(symbol) or ()
    first, rest = names[0], ", ".join(names[1:])
    if not rest:
        return [Production(symbol, (first,)), *([Production(symbol, ())] if kind == "any" else [])]
    return [Production(symbol, (first, f"any({rest})")), Production(symbol, (f"{kind}({rest})",))]


@dataclass(frozen=True, eq=False)
class CFG(Drawable, Intersectable):
    """A context-free grammar with labels and limits.

    Args:
        productions: in the order in which options are shown.
        start: the start symbol; the head of the first production where left out.
        symbols: labels, descriptions and numbers of symbols.
        limits: bounds that every plan must keep.

    Raises:
        GrammarError: a name that the notation cannot write, no production at all, an unknown start symbol, a limit or
            label for an unknown symbol.

    Warnings that do not make it unusable are in :attr:`warnings`.
    """

    productions: tuple[Production, ...]
    start: str = ""
    symbols: Mapping[str, Symbol] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    def __init__(
        self,
        productions: Iterable[Production | tuple[str, Sequence[str]]],
        start: str = "",
        symbols: Mapping[str, Symbol] | None = None,
        limits: Limits | None = None,
    ) -> None:
        from formal_llm.automata.models.wellformed import check_wellformed

        made = tuple(
            dict.fromkeys(p if isinstance(p, Production) else Production(p[0], tuple(p[1])) for p in productions)
        )
        if not made:
            raise GrammarError("a grammar needs at least one production", suggestion="write one: S -> a")
        object.__setattr__(self, "productions", made)
        object.__setattr__(self, "start", start or made[0].head)
        named = {name: symbol for name, symbol in (symbols or {}).items() if symbol != Symbol()}
        object.__setattr__(self, "symbols", MappingProxyType(named))
        object.__setattr__(self, "limits", limits or Limits())
        check_wellformed(self)

    @staticmethod
    def unknown(what: str, name: str, known: Iterable[str]) -> str:
        """The sentence for a name that is not known, with the nearest one that is."""
        near = did_you_mean(name, known)
        return f"unknown {what}: {name}" + (f" (did you mean {near}?)" if near else "")

    # -- reading and writing ------------------------------------------------------------------------------------

    @classmethod
    def from_string(cls, text: str, *, file: str | None = None) -> CFG:
        """Read the grammar notation.

        Warns with :class:`~formal_llm.errors.GrammarWarning` for each thing that looks like a mistake but is legal.

        Raises:
            GrammarError: with line, column, a caret and what was expected there.
        """
        from formal_llm.automata.notation.cfg import read_grammar

        return read_grammar(text, file=file)

    @classmethod
    def from_file(cls, path: str | Path) -> CFG:
        """Read a ``.cfg`` file (UTF-8, with or without a byte order mark)."""
        from formal_llm.automata.notation.cfg import read_grammar
        from formal_llm.automata.notation.source import read_file

        return read_grammar(read_file(path), file=str(path))

    @classmethod
    def from_letters(cls, text: str, start: str = "") -> CFG:
        """Read the compact notation of papers, ``T → BI|DT|EIT|FTT``: a letter, with digits or primes, is a symbol.

        Rules stand on lines of their own or are parted by semicolons. Subscript digits are read as digits.
        """
        from formal_llm.automata.notation.letters import read_letters

        return read_letters(text, start)

    def __str__(self) -> str:
        from formal_llm.automata.notation.cfg import write_grammar

        return write_grammar(self)

    def __repr__(self) -> str:
        return (
            f"<CFG {self.start}: {len(self.nonterminals)} nonterminals, {len(self.terminals)} terminals, "
            f"{len(self.productions)} productions>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CFG):
            return NotImplemented
        mine = (self.start, self.productions, dict(self.symbols), self.limits)
        return mine == (other.start, other.productions, dict(other.symbols), other.limits)

    def __hash__(self) -> int:
        return hash((self.start, self.productions))

    # -- parts --------------------------------------------------------------------------------------------------

    @cached_property
    def nonterminals(self) -> Mapping[str, None]:
        """The heads, in order of appearance (an ordered set)."""
        return MappingProxyType(dict.fromkeys(production.head for production in self.productions))

    @cached_property
    def selections(self) -> Mapping[str, None]:
        """The selection symbols ``some(...)`` that bodies use, in order (an ordered set)."""
        return MappingProxyType(
            dict.fromkeys(name for p in self.productions for name in p.body if members(name) is not None)
        )

    @cached_property
    def terminals(self) -> Mapping[str, None]:
        """The symbols without a rule, in order of appearance (an ordered set)."""
        names: dict[str, None] = {}
        for production in self.productions:
            for symbol in production.body:
                for name in members(symbol) or (symbol,):
                    if name not in self.nonterminals:
                        names[name] = None
        return MappingProxyType(names)

    @cached_property
    def expanded(self) -> tuple[Production, ...]:
        """All productions, those that spell out selections included: a plain grammar for the same language."""
        return (*self.productions, *spelled_out(self.selections))

    @cached_property
    def by_head(self) -> Mapping[str, tuple[Production, ...]]:
        """The expanded productions of each nonterminal."""
        table: dict[str, list[Production]] = {}
        for production in self.expanded:
            table.setdefault(production.head, []).append(production)
        return MappingProxyType({head: tuple(group) for head, group in table.items()})

    @cached_property
    def classes(self) -> frozenset[str]:
        """The nonterminals that stand for a choice of one terminal: all their productions are single terminals."""
        return frozenset(
            head
            for head in self.nonterminals
            if all(len(p.body) == 1 and p.body[0] in self.terminals and p.text is None for p in self.by_head[head])
        )

    @cached_property
    def productive(self) -> frozenset[str]:
        """The nonterminals (selections included) from which some word can be derived."""
        return closure(self.expanded, self.terminals)

    @cached_property
    def nullable(self) -> frozenset[str]:
        """The nonterminals from which the empty word can be derived."""
        return closure(self.expanded, ())

    @cached_property
    def reachable(self) -> frozenset[str]:
        """The symbols that occur in some string derived from the start symbol."""
        return reach(self.by_head, self.start)

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is legal and still looks like a mistake; see :mod:`formal_llm.automata.languages.cfg_warnings`."""
        from formal_llm.automata.languages.cfg_warnings import check_grammar

        return check_grammar(self)

    def label(self, name: str) -> str:
        """The text a person reads for a symbol: its label, or its name in words."""
        symbol = self.symbols.get(name)
        if symbol is not None and symbol.label:
            return symbol.label
        chosen = members(name)
        return "some of " + ", ".join(map(self.label, chosen)) if chosen else name.replace("_", " ")

    # -- other forms --------------------------------------------------------------------------------------------

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Symbols and productions as a graph; see :func:`formal_llm.automata.drawing.cfg.cfg_graph`."""
        from formal_llm.automata.drawing.cfg import cfg_graph

        return cfg_graph(self)

    def _picture(self) -> Picture:
        from formal_llm.automata.drawing.cfg import cfg_picture

        return cfg_picture(self)

    # -- changed copies -----------------------------------------------------------------------------------------

    def with_start(self, start: str) -> CFG:
        """The same grammar from another start symbol."""
        return CFG(self.productions, start, self.symbols, self.limits)

    def with_limits(self, limits: Limits) -> CFG:
        """The same grammar under these limits and no others."""
        return CFG(self.productions, self.start, self.symbols, limits)

    def with_labels(self, labels: Mapping[str, str]) -> CFG:
        """The same grammar with other labels for some symbols."""
        symbols = dict(self.symbols)
        for name, label in labels.items():
            symbols[name] = replace(symbols.get(name, Symbol()), label=label)
        return CFG(self.productions, self.start, symbols, self.limits)

    # -- questions ----------------------------------------------------------------------------------------------

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether the grammar derives ``word``. Exact for every grammar and always ends; limits are not looked at."""
        from formal_llm.automata.models.membership import Recognizer

        return Recognizer.of(self).accepts(tuple(word))

    @cached_property
    def is_finite(self) -> bool:
        """Whether the language has finitely many words; limits are not looked at, here and below."""
        from formal_llm.automata.languages.lengths import is_finite

        return is_finite(self)

    @cached_property
    def shortest_length(self) -> int | None:
        """The number of terminals of a shortest word, None for the empty language."""
        from formal_llm.automata.languages.lengths import shortest_length

        return shortest_length(self)

    @cached_property
    def longest_length(self) -> int | None:
        """The number of terminals of a longest word; None for an infinite language, and for the empty one."""
        from formal_llm.automata.languages.lengths import longest_length

        return longest_length(self)

    def words(self, max_length: int) -> Iterator[tuple[str, ...]]:
        """The words of at most ``max_length`` terminals; see :func:`formal_llm.automata.languages.words.words`."""
        from formal_llm.automata.languages.words import words

        return words(self, max_length)

    def derivations(self, word: Iterable[str], limit: int = 100) -> Derivations:
        """The leftmost derivations of a word; see :func:`formal_llm.automata.languages.derivations.derivations`."""
        from formal_llm.automata.languages.derivations import derivations

        return derivations(self, word, limit)
