"""What the symbols of an automaton are called: names, labels, descriptions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, runtime_checkable

from formal_llm.automata import CFG, PDA, Source, Symbol
from formal_llm.automata.lookahead.limited import LimitedAutomaton
from formal_llm.automata.models.automaton import HasTerminals
from formal_llm.automata.models.symbols import Order, quote_text
from formal_llm.errors import AutomatonError

#: How the plan without any step is written.
EMPTY = "ε (the empty plan)"
_PLAIN_NAME = re.compile(r'\w[^\s"]*')


def write_word(word: Iterable[str]) -> str:
    """A word on one line: its names with blanks between them, in quotes where they are not plain."""
    return " ".join(name if _PLAIN_NAME.fullmatch(name) else quote_text(name) for name in word) or EMPTY


@runtime_checkable
class Labelling(Protocol):
    """An automaton of one's own that has texts for its terminals."""

    def label(self, name: str) -> str:
        """The text for a terminal."""


@runtime_checkable
class HasSymbols(Protocol):
    """An automaton of one's own that knows more of its terminals than their texts."""

    @property
    def symbols(self) -> Mapping[str, Symbol]:
        """What is known of them."""
        ...


@runtime_checkable
class Fingerprinted(Protocol):
    """An automaton with a fingerprint that equal automata share."""

    @property
    def fingerprint(self) -> str:
        """A short text that equal automata share, and others have not."""


def fingerprint_of(automaton: object) -> str:
    """What an automaton is known by in files.

    Raises:
        AutomatonError: it has no fingerprint.
    """
    if isinstance(automaton, Fingerprinted):
        return automaton.fingerprint
    raise AutomatonError(
        f"{type(automaton).__name__} has no fingerprint, by which a file tells that it belongs to it: "
        "give it an attribute 'fingerprint', a text that equal automata share"
    )


class Vocabulary:
    """What the symbols of an automaton are called, whether it is under limits or not.

    Args:
        automaton: the automaton.

    Attributes:
        grammar: the grammar that the automaton was made from; None where it comes from none.
        symbols: what is known of its terminals.
        order: which way the word of a plan runs; None where the automaton does not declare it.
        terminals: the alphabet; empty where the automaton does not declare it.
    """

    __slots__ = ("grammar", "label", "order", "symbols", "terminals")

    def __init__(self, automaton: Source) -> None:
        inner = automaton.source if isinstance(automaton, LimitedAutomaton) else automaton
        self.grammar: CFG | None = None
        self.order: Order | None = None
        self.symbols: Mapping[str, Symbol] = {}
        self.terminals: Iterable[str] = ()
        #: The text a person reads for a symbol.
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
        """The description of a terminal beyond its label."""
        symbol = self.symbols.get(name)
        return symbol.description if symbol is not None else ""


def _replace_underscores(name: str) -> str:
    return name.replace("_", " ")


def order_of(source: Source) -> Order:
    """Which way the words of rules run, of steps that stand on lines: as they declare (``%order``), or as is usual.

    A grammar that does not declare it is written from its last step to its first; an automaton that comes from no
    grammar from the first on.
    """
    if isinstance(source, CFG):
        return source.order or "backward"
    words = Vocabulary(source)
    return words.order or ("forward" if words.grammar is None else "backward")
