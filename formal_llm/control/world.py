"""The world's moves in plans: what the world can answer, and whether a plan can be finished whatever it answers.

Rules mark decisions that no model makes (:attr:`CFG.world`, :attr:`PDA.world`, :attr:`Flowchart.world`). Two guarantees
can be asked for at a configuration:

- *some*: a plan can be finished if the world answers as it should (:class:`Lookahead`);
- *whatever*: there is a strategy by which a plan is finished after finitely many steps, whatever the world answers
  (:class:`WhateverLookahead`).

The world is not bound by limits, clocks and constraints: an answer that these forbid is a dead end that it can force.

What decides the latter is a reachability game on an AND-OR graph. A node is one of the agent's, who chooses one of its
successors, or of the world's, which may choose any of them. The nodes from which the agent can reach an end are the
attractor of the ends: the smallest set with the ends, each node of the agent's with a successor in it, and each node of
the world's with all its successors in it (Zermelo 1913; McNaughton 1993). So a play that the world can keep going
forever is lost. The graph is not built beforehand: nodes are expanded as they are met, the agent's most promising
successors first, and verdicts are spread backward as soon as they are certain (Liu and Smolka 1998).

The guard's search (:mod:`formal_llm.control.search`) asks for another set, the largest in which an end stays reachable:
there the world may stay silent, too, and nothing has to end in a bounded time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from formal_llm.automata import PDA, Lookahead, Source, Word
from formal_llm.automata.lookahead.limited import (
    DescribedAutomaton,
    WorldOutcome,
    is_world_decision,
    list_outcomes,
    name_decision,
)
from formal_llm.automata.lookahead.verdicts import BUDGET, SEARCH, Verdict
from formal_llm.automata.models.automaton import Move
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError

N = TypeVar("N", bound=Hashable)
#: The moves to the end of what the world can keep from ending.
LOST = float("inf")


class GamePosition(NamedTuple, Generic[N]):
    """A node of a game.

    Attributes:
        is_world: whether the world chooses.
        successors: what can be chosen; None is a dead end.
        may_end: whether the play may end here; at a node of the world's, that is one of its choices.
    """

    is_world: bool
    successors: Sequence[N | None]
    may_end: bool = False


class GameSearch(Generic[N]):
    """The search for nodes from which an end can be reached, whatever the world chooses.

    Args:
        expand: returns the position of a node, the agent's most promising successors first.
        max_nodes: the most nodes that one query may expand.
    """

    def __init__(self, expand: Callable[[N], GamePosition[N]], max_nodes: int) -> None:
        self._expand = expand
        self.max_nodes = max_nodes
        #: For each node that is decided, the most moves to an end of one strategy; :data:`LOST` where there is none.
        self._most_moves: dict[N | None, float] = {None: LOST}

    def can_reach_end(self, node: N) -> bool | None:
        """Whether an end can be reached whatever the world chooses; None where the bound was hit before."""
        most = self.most_moves(node)
        return None if most is None else most < LOST

    def most_moves(self, node: N) -> float | None:
        """The most moves to an end that the world can force against one strategy, which need not be the shortest.

        :data:`LOST` where there is no strategy; None where the bound was hit before. From a node of the agent's, some
        successor has fewer; from one of the world's, all have.
        """
        if node not in self._most_moves:
            _Exploration(self._expand, self._most_moves).explore_from(node, self.max_nodes)
        return self._most_moves.get(node)


class _Exploration(Generic[N]):
    """The nodes that one query has expanded, and for each those that wait for its verdict."""

    def __init__(self, expand: Callable[[N], GamePosition[N]], most_moves: dict[N | None, float]) -> None:
        self._expand = expand
        self._most_moves = most_moves
        self._positions: dict[N, GamePosition[N]] = {}
        self._undecided: dict[N, int] = {}  # how many successors of a node are
        self._waiting: dict[N | None, list[N]] = {}

    def explore_from(self, start: N, max_nodes: int) -> None:
        """Decide a node, if that takes no more nodes than this."""
        decided, todo = self._most_moves, [start]
        while todo and start not in decided:
            node = todo.pop()
            waiting = self._waiting.get(node)
            if node in decided or node in self._positions or (waiting and all(one in decided for one in waiting)):
                continue  # who waited for it is decided without it
            if len(self._positions) >= max_nodes:
                return
            position = self._positions[node] = self._expand(node)
            open_ = [one for one in dict.fromkeys(position.successors) if one is not None and one not in decided]
            self._undecided[node] = len(open_)
            for one in open_:
                self._waiting.setdefault(one, []).append(node)
            todo += reversed(open_)
            self._spread_verdict(node)
        if start not in decided:  # all that it could lead to was seen, and what is not won by now goes in circles
            decided.update((node, LOST) for node in self._positions if node not in decided)

    def _spread_verdict(self, node: N) -> None:
        """Decide a node if that is possible, and then those that waited for it."""
        todo = [node]
        while todo:
            node = todo.pop()
            if node in self._most_moves:
                continue
            most = self._decide_node(node)
            if most is not None:
                self._most_moves[node] = most
                for waiting in self._waiting.get(node, ()):
                    self._undecided[waiting] -= 1
                    todo.append(waiting)

    def _decide_node(self, node: N) -> float | None:
        is_world, successors, may_end = self._positions[node]
        if may_end and not (is_world and successors):
            return 0
        after = [self._most_moves[one] for one in successors if one in self._most_moves]
        if is_world:
            if LOST in after or not successors:
                return LOST
            return 1 + max(after) if not self._undecided[node] else None
        least = min(after, default=LOST)
        return 1 + least if least < LOST or not self._undecided[node] else None


# -- rules ------------------------------------------------------------------------------------------------------------


class WhateverLookahead(Lookahead):
    """What can still be completed whatever the world answers, by a strategy that ends after finitely many moves.

    :meth:`completable` then has for ``steps`` the most moves that the world can force, and "unknown" where a query
    expanded ``max_states`` configurations before it was decided. All else is as of :class:`Lookahead`, whose verdicts,
    if the world answers as it should, are those of :meth:`completable_for_some`.

    Args:
        source, limits, max_states, solver: as of :class:`Lookahead`.

    Raises:
        AutomatonError: a constraint has several ways to read a word, so that it depends on later answers which to take.
    """

    guarantee = "whatever"

    def __init__(
        self, source: Source, limits: Limits | None = None, *, max_states: int = 20_000, solver: bool = True
    ) -> None:
        super().__init__(source, limits, max_states=max_states, solver=solver)
        for factor in self.pda.factors if self.pda is not None and self.pda.has_world_moves else ():
            if not factor.has_world_moves and not _is_deterministic(factor):
                raise AutomatonError(
                    f"{factor.name or 'a constraint'} has several transitions for one step, so which to take may "
                    "depend on later answers of the world; make it deterministic, or write it as a formula"
                )
        self._game = GameSearch[Any](self._expand_position, max_states)

    def __reduce__(self) -> tuple[Callable[[Source], Lookahead], tuple[Source]]:
        return partial(WhateverLookahead, max_states=self.max_states, solver=self.solver), (self.source,)

    def completable_for_some(self, configuration: Hashable = None) -> Verdict:
        """Whether some run accepts within the limits, if the world answers as it should."""
        return super().completable(configuration)

    def completable(self, configuration: Hashable = None, *, steps: int | None = None) -> Verdict:
        """Whether a plan can be finished from a configuration, whatever the world answers.

        Args:
            configuration: of :attr:`automaton`; the start, if left out.
            steps: the most moves that the plan may take, whatever the world answers; any number where left out. "No"
                then means that the strategy that was found takes more.
        """
        most = self._game.most_moves(self.automaton.start() if configuration is None else configuration)
        if most is None:
            return Verdict("unknown", BUDGET)
        if most == LOST:
            return Verdict("no", SEARCH)
        return Verdict("yes", SEARCH, int(most)) if steps is None or most <= steps else Verdict("no", "step budget")

    def second_look(self, configuration: Hashable, seconds: float | None) -> Verdict:  # noqa: ARG002  # as overridden
        """As :meth:`completable`: nothing is left open for want of time."""
        return self.completable(configuration)

    def signature(self, configuration: Hashable) -> tuple[Hashable, float]:
        """The configuration: who answers first is part of what decides, so no two are alike."""
        return configuration, 0.0

    def top(self, configuration: Hashable) -> None:  # noqa: ARG002  # as overridden
        """None: more decides than the state and the stack top."""
        return

    def _expand_position(self, configuration: Any) -> GamePosition[Any]:
        if super().completable(configuration).value == "no":
            return GamePosition(False, ())
        automaton = self.automaton
        if is_world_decision(automaton, configuration):
            outcomes = list_outcomes(automaton, configuration)
            after = [one.after for one in outcomes if one.move is not None or one.after is None]
            return GamePosition(True, after, automaton.accepting(configuration))
        successors = [automaton.step(configuration, move) for move in automaton.moves(configuration)]
        if len(successors) > 1:
            successors.sort(key=self._estimate_moves)
        return GamePosition(False, successors, automaton.accepting(configuration))

    def _estimate_moves(self, configuration: Hashable) -> float:
        verdict = super().completable(configuration)
        return LOST if verdict.value == "no" else verdict.steps or 0


def _is_deterministic(pda: PDA) -> bool:
    reads = [(transition.state, transition.read) for transition in pda.transitions]
    return all(read is not None for _, read in reads) and len(set(reads)) == len(reads)


class DeadEnd(NamedTuple):
    """A dead end that the world can force from a place where a plan could have been finished.

    Attributes:
        decision: what the world decides there.
        outcome: its answer.
        word: the terminals of a shortest way there.
        is_circle: whether there are ways on, but the world can keep them from coming to an end.
    """

    decision: str
    outcome: str
    word: Word
    is_circle: bool = False

    def describe(self, way: str) -> str:
        """Return a sentence about it, in which the way there is written so."""
        what = "the world can keep it going round" if self.is_circle else "nothing leads to an end"
        return f"{self.decision} {self.outcome}: {what}, after {way or 'no step'}"

    def __str__(self) -> str:
        return self.describe(" ".join(self.word))


def find_dead_ends(lookahead: WhateverLookahead) -> list[DeadEnd]:
    """Find where an answer of the world leaves no way to an end, each decision and answer once, by a shortest way.

    Configurations from which no plan could be finished anyway are passed over; at most ``max_states`` are visited.
    Where there is no such answer, and no strategy either, the answers are found by which the world keeps plans going
    round.
    """
    found = _find_dead_ends(lookahead, lambda after: lookahead.completable_for_some(after).possible)
    if not found and lookahead.completable().value == "no":
        found = _find_dead_ends(lookahead, lambda after: lookahead.completable(after).possible)
        return [end._replace(is_circle=True) for end in found]
    return found


def _find_dead_ends(lookahead: WhateverLookahead, is_alive: Callable[[Hashable], bool]) -> list[DeadEnd]:
    automaton, start = lookahead.automaton, lookahead.automaton.start()
    found: dict[tuple[str, str], DeadEnd] = {}
    seen: dict[Any, Word] = {start: ()}
    todo = deque([start])
    while todo and len(seen) < lookahead.max_states:
        now = todo.popleft()
        word = seen[now]
        if is_world_decision(automaton, now):
            outcomes = list(list_outcomes(automaton, now))
        else:
            outcomes = [WorldOutcome(move, automaton.step(now, move)) for move in automaton.moves(now)]
        for move, after in outcomes:
            if (after is None or not is_alive(after)) and is_world_decision(automaton, now):
                decision, outcome = name_decision(automaton, now), describe_outcome(automaton, move)
                found.setdefault((decision, outcome), DeadEnd(decision, outcome, word))
            if after is not None and after not in seen and lookahead.completable_for_some(after).possible:
                read = None if move is None else move.read
                seen[after] = word if read is None else (*word, read)
                todo.append(after)
    return list(found.values())


def describe_loss(lookahead: WhateverLookahead) -> str:
    """Return why no plan can be finished whatever the world answers, where one can be for some of its answers."""
    ends = find_dead_ends(lookahead)
    return f"the world can keep every plan from its end: {'; '.join(map(str, ends[:3]))}"


def describe_outcome(automaton: DescribedAutomaton, move: Move | None) -> str:
    """Return the text of an answer of the world."""
    if move is None:
        return "the plan ends"
    if isinstance(move, Transition) and move.text:
        return move.text
    if isinstance(move, Transition) and move.production is not None:
        return " ".join(map(automaton.label, move.production.body)) or "nothing"
    return automaton.label(move.read) if move.read is not None else "going on"
