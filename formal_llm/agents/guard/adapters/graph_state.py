"""The state of a run inside the state of a graph: plain data, which a checkpointer saves, restores and forks.

A node of a graph may be run again, and a thread may go back to an earlier checkpoint. So the data in the graph decides,
and what is alive in this process is only a shorter way to it.
"""

from __future__ import annotations

import dataclasses
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from formal_llm.agents.guard.events import Call, Decision, as_row, from_row
from formal_llm.agents.guard.guard import Guard
from formal_llm.agents.guard.live import Approve, Audit, GuardedRun, Noted
from formal_llm.agents.guard.states import GuardState

#: What stands in the state of a graph.
Kept: TypeAlias = dict[str, Any]
#: How many turns are kept alive; an older one is restored from its graph.
_ALIVE = 1_000


@dataclasses.dataclass
class GraphTurn:
    """A turn: the run after the calls of one answer were taken, and the ids of those whose results it was told."""

    run: GuardedRun
    decided: tuple[tuple[Call, Decision], ...] = ()
    told: set[str] = dataclasses.field(default_factory=set)


class GraphTurns:
    """The turns of all the runs of a graph, each named by what stands in the graph's state.

    Args:
        guard: the guard.
        approve: asks a person.
        audit: is told the record of each run.
        final: whether an answer is the end.
    """

    def __init__(self, guard: Guard, approve: Approve | None, audit: Audit | None, *, final: bool = True) -> None:
        self._guard = guard
        self._approve = approve
        self._audit = audit
        self._final = final
        self._alive: OrderedDict[str, GraphTurn] = OrderedDict()
        self._lock = threading.Lock()

    def restore_turn(self, kept: Kept | None) -> GraphTurn:
        """The turn in which a graph stands; a new run where nothing stands in its state."""
        if kept is None:
            return GraphTurn(self._start_run(self._guard.start()))
        with self._lock:
            turn = self._alive.get(kept["turn"])
            if turn is not None:
                self._alive.move_to_end(kept["turn"])
                return turn
        state = self._guard.resume(kept["snapshot"])
        decided = tuple((_read_call_row(row["call"]), _read_decision_row(row["decision"])) for row in kept["decided"])
        run = self._start_run(state, decided)
        return self._cache_turn(kept["turn"], GraphTurn(run, decided))

    def start_node(self, kept: Kept | None) -> GraphNodeRun:
        """A run for one node, which goes on from where the graph stands, and leaves no trace if the node fails."""
        turn = self.restore_turn(kept)
        lines: list[Noted] = []
        run = self._start_run(turn.run.state, audit=lines.append)
        return GraphNodeRun(run, lines, turn.decided, frozenset(turn.told))

    def save_node(
        self, before: Kept | None, node: GraphNodeRun, decided: Iterable[tuple[Call, Decision]] = (), **more: object
    ) -> Kept:
        """What stands in the graph's state after a node; its record is told, and the turn before it is over."""
        if self._audit is not None:
            for line in node.lines:
                self._audit(line)
        state, decided, key = node.run.state, tuple(decided), uuid.uuid4().hex
        run = self._start_run(state, decided)
        self._cache_turn(key, GraphTurn(run, decided))
        if before is not None:
            with self._lock:
                self._alive.pop(before["turn"], None)
        rows = [{"call": as_row(call), "decision": _write_decision_row(decision)} for call, decision in decided]
        return {**(before or {}), "turn": key, "snapshot": state.snapshot(), "decided": rows, **more}

    def _start_run(
        self, state: GuardState, decided: Iterable[tuple[Call, Decision]] = (), audit: Audit | None = None
    ) -> GuardedRun:
        told = self._audit if audit is None else audit
        run = GuardedRun(self._guard, state=state, approve=self._approve, audit=told, final=self._final)
        run.decided(decided)
        return run

    def _cache_turn(self, key: str, turn: GraphTurn) -> GraphTurn:
        with self._lock:
            turn = self._alive.setdefault(key, turn)
            while len(self._alive) > _ALIVE:
                self._alive.popitem(last=False)
            return turn


@dataclasses.dataclass(frozen=True)
class GraphNodeRun:
    """A run for one node of a graph.

    Attributes:
        run: the run.
        lines: what it recorded.
        decided: what was decided in the turn before.
        told: the ids of the calls of the turn before whose results were told.
    """

    run: GuardedRun
    lines: list[Noted]
    decided: tuple[tuple[Call, Decision], ...]
    told: frozenset[str]


def _read_call_row(row: Mapping[str, Any]) -> Call:
    call = from_row(row)
    assert isinstance(call, Call)
    return call


def _write_decision_row(decision: Decision) -> dict[str, Any]:
    given = dataclasses.asdict(decision)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _read_decision_row(row: Mapping[str, Any]) -> Decision:
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
    return Decision(**given)
