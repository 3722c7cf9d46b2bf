"""The world's moves in plans: what the world can answer, and whether a plan can be finished whatever it answers.

Rules mark decisions that no model makes (:attr:`CFG.world`, :attr:`PDA.world`, :attr:`Flowchart.world`). Two guarantees
can be asked for at a configuration:

- *some*: a plan can be finished if the world answers as it should (:class:`Lookahead`);
- *whatever*: there is a strategy by which a plan is finished after finitely many steps, whatever the world answers
  (:class:`WhateverLookahead`).

The world is not bound by limits, clocks and constraints: an answer that these forbid is a dead end that it can force.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import Any, NamedTuple

from formal_llm.automata import PDA, Lookahead, Source, Word
from formal_llm.automata.lookahead.limited import HasWorldMoves, LimitedAutomaton
from formal_llm.automata.lookahead.verdicts import BUDGET, SEARCH, Verdict
from formal_llm.automata.models.automaton import Automaton, Move
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.transition import Transition
from formal_llm.control.games import LOST, GameSearch, Position
from formal_llm.errors import AutomatonError


class Outcome(NamedTuple):
    """An answer of the world.

    Attributes:
        move: the move; None for ending the plan.
        after: where it leads; None where limits forbid it.
    """

    move: Move | None
    after: Any


def is_world_decision(automaton: object, configuration: Hashable) -> bool:
    """Return whether the world decides what comes next; False for an automaton that does not report it."""
    return isinstance(automaton, HasWorldMoves) and automaton.is_world_decision(configuration)


def has_world_moves(automaton: object) -> bool:
    """Return whether the world decides anywhere; True for any other automaton that reports decisions of the world's."""
    inside = automaton.automaton if isinstance(automaton, LimitedAutomaton) else automaton
    return inside.has_world_moves if isinstance(inside, PDA) else isinstance(inside, HasWorldMoves)


def list_outcomes(automaton: Automaton[Any, Any], configuration: Any) -> Iterator[Outcome]:
    """Yield all answers of the world at a decision of its own, those that limits forbid included."""
    limited = isinstance(automaton, LimitedAutomaton)
    inside, inner = (automaton.automaton, configuration.inner) if limited else (automaton, configuration)  # type: ignore[attr-defined]
    if inside.accepting(inner):
        yield Outcome(None, configuration if automaton.accepting(configuration) else None)
    allowed = automaton.moves(configuration)
    for move in inside.moves(inner):
        yield Outcome(move, automaton.step(configuration, move) if move in allowed else None)


def name_decision(automaton: object, configuration: Any) -> str:
    """Return the name of a decision of the world's, for a person: its question, or that of the nonterminal or state."""
    source = automaton.source if isinstance(automaton, LimitedAutomaton) else automaton
    state, stack = configuration.inner if isinstance(automaton, LimitedAutomaton) else configuration
    if not isinstance(source, PDA):
        return str(configuration)
    if source.cfg is not None and stack.top in source.cfg.world:
        return source.label(stack.top)
    question = next((move.question for move in source.transitions_at(state, stack.top) if move.question), "")
    for _ in source.factors[1:]:
        state = state[0]  # states of products are pairs
    return question or str(state)


class WhateverLookahead(Lookahead):
    """What can still be completed whatever the world answers: there is a strategy, and it ends after finitely many steps.

    :meth:`completable` then has for ``steps`` the most moves that the world can force, and "unknown" where a query
    expanded ``max_states`` configurations before it was decided. All else is as of :class:`Lookahead`, whose verdicts,
    if the world answers as it should, are those of :meth:`completable_for_some`.

    Args:
        source, limits, max_states, solver: as of :class:`Lookahead`.

    Raises:
        AutomatonError: a constraint has several ways to read a word, so that it depends on later answers which to take.
    """

    def __init__(
        self, source: Source, limits: Limits | None = None, *, max_states: int = 20_000, solver: bool = True
    ) -> None:
        super().__init__(source, limits, max_states=max_states, solver=solver)
        for factor in self.pda.factors if self.pda is not None and self.pda.has_world_moves else ():
            if not factor.has_world_moves and not _is_deterministic(factor):
                raise AutomatonError(
                    f"{factor.name or 'a constraint'} has several transitions for one step, so which to take may depend "
                    "on later answers of the world; make it deterministic, or write it as a formula"
                )
        self._game = GameSearch[Any](self._expand, max_states)

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

    def _expand(self, configuration: Any) -> Position[Any]:
        if super().completable(configuration).value == "no":
            return Position(False, ())
        automaton = self.automaton
        if is_world_decision(automaton, configuration):
            outcomes = list_outcomes(automaton, configuration)
            after = [one.after for one in outcomes if one.move is not None or one.after is None]
            return Position(True, after, automaton.accepting(configuration))
        successors = [automaton.step(configuration, move) for move in automaton.moves(configuration)]
        if len(successors) > 1:
            successors.sort(key=self._estimate_moves)
        return Position(False, successors, automaton.accepting(configuration))

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
        word: the steps of a shortest way there.
    """

    decision: str
    outcome: str
    word: Word

    def __str__(self) -> str:
        return f"{self.decision} {self.outcome}: nothing leads to an end, after {' '.join(self.word) or 'no step'}"


def find_dead_ends(lookahead: Lookahead) -> list[DeadEnd]:
    """Find where an answer of the world leaves no way to an end, each decision and answer once, by a shortest way.

    Configurations from which no plan could be finished anyway are passed over; at most ``max_states`` are visited.
    """
    automaton, some = lookahead.automaton, Lookahead.completable
    start = automaton.start()
    found: dict[tuple[str, str], DeadEnd] = {}
    seen: dict[Any, Word] = {start: ()}
    todo = deque([start] if some(lookahead, start).possible else [])
    while todo and len(seen) < lookahead.max_states:
        now = todo.popleft()
        word = seen[now]
        if is_world_decision(automaton, now):
            outcomes = list(list_outcomes(automaton, now))
        else:
            outcomes = [Outcome(move, automaton.step(now, move)) for move in automaton.moves(now)]
        for move, after in outcomes:
            if after is None or not some(lookahead, after).possible:
                if is_world_decision(automaton, now):
                    decision, outcome = name_decision(automaton, now), describe_outcome(automaton, move)
                    found.setdefault((decision, outcome), DeadEnd(decision, outcome, word))
            elif after not in seen:
                read = None if move is None else move.read
                seen[after] = word if read is None else (*word, read)
                todo.append(after)
    return list(found.values())


def describe_loss(lookahead: WhateverLookahead) -> str:
    """Return why no plan can be finished whatever the world answers, where one can be for some of its answers."""
    ends = find_dead_ends(lookahead)
    shown = "; ".join(map(str, ends[:3])) or "it can keep the plan going round in circles"
    return f"the world can keep every plan from its end: {shown}"


def describe_outcome(automaton: Any, move: Move | None) -> str:
    """Return the text of an answer of the world."""
    if move is None:
        return "the plan ends"
    if isinstance(move, Transition) and move.text:
        return move.text
    label: Callable[[str], str] = getattr(automaton, "label", str)
    if isinstance(move, Transition) and move.production is not None:
        return " ".join(map(label, move.production.body)) or "nothing"
    return label(move.read) if move.read is not None else "going on"
