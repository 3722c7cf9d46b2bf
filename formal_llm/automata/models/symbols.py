"""Symbols, productions, selections: the parts of grammars and automata.

A body may hold a *selection* ``some(a, b, c)``: any non-empty subset of the terminals, in that order. It is sugar for
unambiguous right-linear productions, which :func:`expand_selections` gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.quantities import Number, amount

N = TypeVar("N", bound=Hashable)
T = TypeVar("T")

#: Which way a word is read: as its steps are carried out, or, in a grammar of nested calls, from last to first.
Order = Literal["forward", "prefix"]
ORDERS: tuple[Order, ...] = ("forward", "prefix")


def suggest_order(name: str) -> str:
    """Return what to write instead of an order that there is not; ``prefix`` was called ``backward``."""
    return "write %order prefix" if name == "backward" else "write %order forward, or %order prefix"


def turn_word(word: Sequence[T], order: Order) -> Sequence[T]:
    """Return what a word of rules of this order has, first what is carried out first; and from that the word again.

    Whatever a person reads is in the order of carrying out.
    """
    return word if order == "forward" else word[::-1]


_SUBSET = re.compile(r"(some|any)\((.*)\)", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0"}


@dataclass(frozen=True, slots=True)
class Symbol:
    """What is known of a symbol beside its name.

    Attributes:
        label: the text that a person reads for it; empty where none was given.
        description: a sentence more, empty where none was given.
        numbers: amounts that a terminal carries (minutes, money), exact. Numbers, ``timedelta`` and texts such as
            ``"1h30"`` or ``"12.50"`` are made so (see :func:`formal_llm.automata.models.quantities.amount`).
    """

    label: str = ""
    description: str = ""
    numbers: Mapping[str, Number] = FrozenDict()

    def __post_init__(self) -> None:
        object.__setattr__(self, "numbers", FrozenDict({name: amount(value) for name, value in self.numbers.items()}))


@dataclass(frozen=True, slots=True)
class Production:
    """A production ``head -> body``; an empty body is ε. ``text`` is the wording of the step it stands for."""

    head: str
    body: tuple[str, ...]
    text: str | None = None

    def __str__(self) -> str:
        words = [self.head, "->", *(self.body or ("ε",))]
        if self.text is not None:
            words.append(quote_text(self.text))
        return " ".join(words)


def quote_text(text: str) -> str:
    """``text`` as the notation's string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    escaped = escaped.replace("\0", "\\0")
    return f'"{escaped}"'


def unquote_text(literal: str) -> str:
    """The text of a string literal of the notation."""
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[1]), literal[1:-1])


def selection(*terminals: str) -> str:
    """The body symbol for any non-empty subset of ``terminals``, kept in this order."""
    return f"some({', '.join(terminals)})"


def selection_members(symbol: str) -> tuple[str, ...] | None:
    """The terminals of a selection symbol, None for any other symbol."""
    match = _SUBSET.fullmatch(symbol) if symbol.endswith(")") else None
    return tuple(match[2].split(", ")) if match else None


def expand_selections(selections: Iterable[str]) -> list[Production]:
    """Productions that give selection symbols ``some(...)`` their meaning.

    Each takes its first member or leaves it; ``any(...)``, what follows a member that was taken, may stay empty.
    """
    made: dict[str, list[Production]] = {}
    todo = list(selections)
    while todo:
        symbol = todo.pop()
        if symbol not in made:
            kind, (first, *others) = symbol[: symbol.index("(")], selection_members(symbol) or ("",)
            rest = ", ".join(others)
            bodies: list[tuple[str, ...]] = [(first, f"any({rest})"), (f"{kind}({rest})",)]
            if rest:
                todo += [body[-1] for body in bodies]
            else:
                bodies = [(first,), ()] if kind == "any" else [(first,)]
            made[symbol] = [Production(symbol, body) for body in bodies]
    return [production for productions in made.values() for production in productions]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A report to the author of a grammar.

    Attributes:
        kind: ``"empty"``, ``"unproductive"``, ``"unreachable"``, ``"order"`` or ``"typo"``.
        symbol: the symbol it is about.
        message: what is wrong, in one sentence.
        suggestion: the way out, where there is one to name.
    """

    kind: str
    symbol: str
    message: str
    suggestion: str | None = None

    def __str__(self) -> str:
        return self.message


# -- fixed points -----------------------------------------------------------------------------------------------------
# Both sets are least fixed points, found in time linear in the size of the grammar (Hopcroft, Motwani and Ullman,
# section 7.4.3).


def find_derivable_heads(rules: Sequence[tuple[N, Sequence[N]]], good: Container[N]) -> frozenset[N]:
    """The heads of rules (head, body) whose body is all good, then of those whose body is good by that, and so on."""
    waiting: dict[N, list[int]] = {}
    missing: list[int] = []
    ready: list[N] = []
    for index, (head, body) in enumerate(rules):
        bad = [name for name in body if name not in good]
        missing.append(len(bad))
        for name in bad:
            waiting.setdefault(name, []).append(index)
        if not bad:
            ready.append(head)
    found: set[N] = set()
    while ready:
        head = ready.pop()
        if head in found:
            continue
        found.add(head)
        for index in waiting.get(head, ()):
            missing[index] -= 1
            if missing[index] == 0:
                ready.append(rules[index][0])
    return frozenset(found)


def find_reachable(first: Iterable[N], after: Callable[[N], Iterable[N]]) -> dict[N, None]:
    """All that steps lead to from the first ones, these included, in the order in which they are found (a set)."""
    found = dict.fromkeys(first)
    todo = list(found)
    for one in todo:
        for following in after(one):
            if following not in found:
                found[following] = None
                todo.append(following)
    return found
