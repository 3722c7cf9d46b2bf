"""What the planner sees of a constraint: configurations, moves, and the :class:`Automaton` protocol.

A configuration of a pushdown automaton is (state, stack); wrappers add to it. Configurations are immutable and share
their parts: a stack is a linked list whose tail many stacks have in common, so that keeping a snapshot is keeping a
reference and going back costs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

#: A state of an automaton: any hashable value.
State = Hashable
#: A sequence of terminals; a valid plan, read as a string.
Word = tuple[str, ...]


class Stack:
    """An immutable stack of symbols: a top and the stack below it. :data:`EMPTY` is the one empty stack."""

    __slots__ = ("_hash", "depth", "rest", "top")

    top: str | None
    rest: Stack
    depth: int
    _hash: int

    def __init__(self, top: str, rest: Stack) -> None:
        self.top = top
        self.rest = rest
        self.depth = rest.depth + 1
        self._hash = hash((top, rest._hash))

    @staticmethod
    def of(*symbols: str) -> Stack:
        """The stack of these symbols, the first on top."""
        return EMPTY.push(symbols)

    def push(self, symbols: Sequence[str]) -> Stack:
        """This stack with ``symbols`` on it, the first on top."""
        stack = self
        for symbol in reversed(symbols):
            stack = Stack(symbol, stack)
        return stack

    def __iter__(self) -> Iterator[str]:
        """The symbols from the top down."""
        stack = self
        while stack.top is not None:
            yield stack.top
            stack = stack.rest

    def __len__(self) -> int:
        return self.depth

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stack):
            return NotImplemented
        a, b = self, other
        if a.depth != b.depth or a._hash != b._hash:
            return False
        while a is not b:
            if a.top != b.top:
                return False
            a, b = a.rest, b.rest
        # Equal stacks share what lies below from now on, so that comparing them and what is made of them ends at once.
        self.rest = other.rest
        return True

    def __repr__(self) -> str:
        return f"Stack.of({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled flat: a linked list thousands deep would exhaust the recursion limit.
        return Stack.of, tuple(self)


def _make_empty_stack() -> Stack:
    stack = object.__new__(Stack)
    stack.top, stack.rest, stack.depth, stack._hash = None, stack, 0, hash("empty stack")
    return stack


EMPTY = _make_empty_stack()


#: Makes a named tuple by one call in place of two: steps are most of what a walk does.
make_tuple: Callable[..., Any] = tuple.__new__


class Configuration(NamedTuple):
    """An instantaneous description without its input: the state and the stack of a pushdown automaton."""

    state: State
    stack: Stack


class Move(Protocol):
    """One thing an automaton can do next. ``read`` is the terminal it consumes, None for ε."""

    @property
    def read(self) -> str | None:
        """The terminal that the move consumes, or None."""


#: What configurations and moves an automaton has.
C = TypeVar("C", bound=Hashable)
M = TypeVar("M", bound=Move)


@runtime_checkable
class Automaton(Protocol[C, M]):
    """A constraint on words, walked one move at a time: ``C`` are its configurations, ``M`` its moves.

    All methods are pure; a configuration is any hashable value. ``step`` takes a move from ``moves`` of the same
    configuration and checks nothing.
    """

    def start(self) -> C:
        """The initial configuration."""

    def moves(self, configuration: C) -> Sequence[M]:
        """What can be done next, in the order in which options are shown."""

    def step(self, configuration: C, move: M) -> C:
        """The configuration after a move."""

    def accepting(self, configuration: C) -> bool:
        """Whether the word read so far is in the language."""


@runtime_checkable
class Foresees(Protocol):
    """An automaton that knows by itself how soon a configuration can be completed.

    For rules whose sums and choices a search would take too long over, and a proof does not: the cheapest completion,
    found by dynamic programming, determines whether there is one. Its result is not checked again, so it has to be
    exact.
    """

    def to_end(self, configuration: Any, /) -> int | None:
        """The moves of a completion with the fewest; None where nothing completes the configuration."""


@runtime_checkable
class HasTerminals(Protocol):
    """Rules that declare their terminals."""

    @property
    def terminals(self) -> Iterable[str]:
        """The terminals, in the order in which they are shown."""
        ...


def make_fingerprint(parts: Iterable[object]) -> str:
    """A short stable name for an automaton: 16 hexadecimal digits over the text of its parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]
