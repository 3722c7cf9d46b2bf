"""How far the work on a stack symbol has come, wherever in a word: what repairs are tabulated over.

A *shape* is a symbol on top of the stack in a state; a *point* is what is left of what was pushed for it. Both are made
once for an automaton and used at every position of a word.
"""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.automata.lookahead.flow import ACCEPTING
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.pda import PDA


class WorkShape:
    """A stack symbol in a state, wherever in the word it is worked off.

    Attributes:
        moves: what a transition reads, and the point behind it.
        leaves: where all it can do is to read one terminal: for each state afterwards the terminals.
        accepts: whether the run may accept there.
    """

    __slots__ = ("accepts", "ends", "leaves", "moves", "number", "state", "top")

    def __init__(self, number: int, state: State, top: str | None) -> None:
        self.number = number
        self.state = state
        self.top = top
        self.moves: list[tuple[str | None, WorkPoint]] = []
        self.leaves: dict[State, tuple[str, ...]] | None = None
        self.accepts = False
        #: The points at which nothing is left to pop, by state.
        self.ends: dict[State, WorkPoint] = {}


class WorkPoint:
    """How far the work on a stack symbol has come: what is left of what was pushed for it, in a state."""

    __slots__ = ("after", "inner", "number", "rest", "shape", "state")

    def __init__(self, number: int, shape: WorkShape, rest: tuple[str | None, ...], state: State) -> None:
        self.number = number
        self.shape = shape
        self.rest = rest
        self.state = state
        #: What is worked off next; None where nothing is left.
        self.inner: WorkShape | None = None
        #: The point behind that, by the state in which it is reached.
        self.after: dict[State, WorkPoint] = {}


class WorkPoints:
    """The shapes and points of an automaton, made on demand."""

    def __init__(self, pda: PDA) -> None:
        self._pda = pda
        self._shapes: dict[tuple[State, str | None], WorkShape] = {}
        self._points: dict[tuple[int, tuple[str | None, ...], State], WorkPoint] = {}
        self.root = WorkShape(0, ACCEPTING, None)
        self.shapes = [self.root]

    def get_point(self, shape: WorkShape, rest: tuple[str | None, ...], state: State) -> WorkPoint:
        """The point of a shape at which this is left, in a state."""
        key = (shape.number, rest, state)
        found = self._points.get(key)
        if found is None:
            found = self._points[key] = WorkPoint(len(self._points), shape, rest, state)
            if rest:
                found.inner = self.get_shape(state, rest[0])
        return found

    def point_after_symbol(self, point: WorkPoint, state: State) -> WorkPoint:
        """The point after the next symbol, when that is gone in ``state``."""
        found = point.after.get(state)
        if found is None:
            found = point.after[state] = self.get_point(point.shape, point.rest[1:], state)
        return found

    def get_shape(self, state: State, top: str | None) -> WorkShape:
        """The shape of a symbol on top in a state; None: of the empty stack."""
        found = self._shapes.get((state, top))
        if found is None:
            found = self._shapes[state, top] = WorkShape(len(self.shapes), state, top)
            self.shapes.append(found)
            found.accepts = state is ACCEPTING or state in self._pda.accepting_states
            found.leaves = None if found.accepts else self._find_leaf_terminals(state, top)
        return found

    def _find_leaf_terminals(self, state: State, top: str | None) -> dict[State, tuple[str, ...]] | None:
        """The terminals that are all a symbol can read, or a choice of such symbols; None where it is another one."""
        found: dict[State, dict[str, None]] = {}
        for t in self._pda.transitions_at(state, top):
            if t.pop is None:
                return None
            if t.read is not None and not t.push:
                found.setdefault(t.target, {})[t.read] = None
            elif t.read is None and len(t.push) == 1 and t.target not in self._pda.accepting_states:
                for one in self._pda.transitions_at(t.target, t.push[0]):
                    if one.read is None or one.pop is None or one.push:
                        return None
                    found.setdefault(one.target, {})[one.read] = None
            else:
                return None
        return {target: tuple(names) for target, names in found.items()}

    def list_moves(self, shape: WorkShape) -> list[tuple[str | None, WorkPoint]]:
        """What the transitions of a shape read, and the points behind them."""
        if not shape.moves:
            for t in self._pda.transitions_at(shape.state, shape.top):
                rest: tuple[str | None, ...] = t.push if t.pop is not None else (*t.push, shape.top)
                shape.moves.append((t.read, self.get_point(shape, rest, t.target)))
        return shape.moves

    def may_delete(self, shape: WorkShape) -> bool:
        """Whether a symbol of the word is deleted where the work on a shape begins.

        Each deletion is made at one place: before a terminal that is not the first thing read on behalf of a symbol
        where the terminal stands, else where the outermost symbol begins that reads nothing before. Only if that always
        begins with the work on another symbol, it is left to that.
        """
        moves = self.list_moves(shape)
        if _reads_nothing(moves):
            return False
        return any(
            read is not None
            or point.inner is None
            or point.inner.leaves is not None
            or _reads_nothing(self.list_moves(point.inner))
            for read, point in moves
        )


def _reads_nothing(moves: Sequence[tuple[str | None, WorkPoint]]) -> bool:
    """Whether a symbol can only be popped without reading anything."""
    return all(read is None and point.inner is None for read, point in moves)
