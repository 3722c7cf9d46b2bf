"""The vocabulary of an automaton: the names, labels and descriptions of its symbols."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from formal_llm.automata import CFG, PDA, Source, Symbol
from formal_llm.automata.lookahead.limited import LimitedAutomaton
from formal_llm.automata.models.automaton import HasTerminals
from formal_llm.automata.models.symbols import Order, quote_text, turn_word
from formal_llm.errors import AutomatonError

#: The notation of the plan without steps.
EMPTY = "ε (the empty plan)"
_PLAIN_NAME = re.compile(r'\w[^\s"]*')


#: What separates steps on one line.
SLASH = " / "


def write_word(word: Sequence[str], order: Order = "forward") -> str:
    """Write a word on one line, in the order of carrying out: its names separated by blanks, quoted where necessary.

    The names of a prefix grammar are separated by slashes, as steps are: names with blanks between them are read as the
    rules write them.
    """
    if order == "prefix":
        return SLASH.join(turn_word(word, order)) or EMPTY
    return " ".join(name if _PLAIN_NAME.fullmatch(name) else quote_text(name) for name in word) or EMPTY


@runtime_checkable
class Labelling(Protocol):
    """A custom automaton that has texts for its terminals."""

    def label(self, name: str) -> str:
        """Return the text for a terminal."""


@runtime_checkable
class HasSymbols(Protocol):
    """A custom automaton with more information about its terminals than their texts."""

    @property
    def symbols(self) -> Mapping[str, Symbol]:
        """The symbols by name."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """An automaton with a fingerprint, by which equal automata can be recognised."""

    @property
    def fingerprint(self) -> str:
        """A short text that equal automata share and different ones do not."""


def fingerprint_of(automaton: object) -> str:
    """Return the fingerprint that identifies an automaton in files.

    Raises:
        AutomatonError: it has no fingerprint.
    """
    if isinstance(automaton, Fingerprinted):
        return automaton.fingerprint
    raise AutomatonError(
        f"{type(automaton).__name__} has no fingerprint, by which a file shows that it belongs to it: "
        "give it an attribute 'fingerprint', a text that equal automata share"
    )


class Vocabulary:
    """The names, labels and descriptions of an automaton's symbols, with or without limits.

    Attributes:
        grammar: the grammar from which the automaton was made; None if there is none.
        order: which way a word is read; ``forward`` for an automaton that does not say it.
        terminals: the alphabet; empty if the automaton does not declare it.
    """

    __slots__ = ("grammar", "label", "order", "symbols", "terminals")

    def __init__(self, automaton: Source) -> None:
        inner = automaton.source if isinstance(automaton, LimitedAutomaton) else automaton
        self.grammar: CFG | None = None
        self.order: Order = "forward"
        self.symbols: Mapping[str, Symbol] = {}
        self.terminals: Iterable[str] = ()
        #: Returns the text that a person reads for a symbol.
        self.label: Callable[[str], str] = _replace_underscores
        if isinstance(inner, PDA):
            self.grammar, self.order = inner.cfg, inner.order
        if isinstance(inner, HasSymbols):
            self.symbols = inner.symbols
        if isinstance(inner, HasTerminals):
            self.terminals = inner.terminals
        if self.grammar is not None:
            self.label = self.grammar.label
        elif isinstance(inner, Labelling):
            self.label = inner.label

    @property
    def start(self) -> str | None:
        """The start symbol of the grammar."""
        return self.grammar.start if self.grammar is not None else None

    def describe_terminal(self, name: str) -> str:
        """Return the description of a terminal."""
        symbol = self.symbols.get(name)
        return symbol.description if symbol is not None else ""


def _replace_underscores(name: str) -> str:
    return name.replace("_", " ")


def order_of(source: Source) -> Order:
    """Return which way the words of rules are read: as they declare it (``%order prefix``), or else forward."""
    return source.order if isinstance(source, CFG) else Vocabulary(source).order
