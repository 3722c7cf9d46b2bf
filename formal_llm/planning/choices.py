"""What can be chosen in a configuration: the automaton's moves, made into options that a person would understand.

- A nonterminal on top of the stack: each production is an option. Where a production begins with a class (a symbol that
  stands for a choice of one terminal), the members of the class take its place: people read tool names, not class names.
- A selection on top: its members are the options, and several may be chosen at once.
- An accepting configuration with moves left: stopping is an option too.

Options from which no valid plan can be finished are left out. What is found for a configuration is kept under its
signature, so plans that come by the same place, in the same or another walk, find it there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from formal_llm.automata.flow import INFINITE
from formal_llm.automata.lookahead import Lookahead

_CACHE = 200_000


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One option: the moves that taking it means; none for stopping here.

    Attributes:
        index: its place among all choices of the configuration, also those that were left out; from 0.
        moves: the moves.
        reads: the terminals that the moves read; of a member of a selection, the member.
    """

    index: int
    moves: tuple[Any, ...]
    reads: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Fork:
    """The choices of a configuration.

    Attributes:
        choices: those from which a plan can be finished, as far as the lookahead knows.
        total: how many there are without lookahead.
        several: whether any non-empty subset may be chosen (a selection).
        reach: moves that finish a plan after any of the choices, besides those for what lies deeper in the stack.
        shown: what options were made of the choices; kept by the walk.
    """

    choices: tuple[Choice, ...]
    total: int
    several: bool = False
    reach: float = 0.0
    shown: Any = field(default=None, repr=False)


class ChoiceTable:
    """The choices of an automaton's configurations, remembered.

    Args:
        lookahead: knows the automaton and what can be completed.
        look: False to offer every move that the automaton allows now, dead ends included.
    """

    def __init__(self, lookahead: Lookahead, *, look: bool = True) -> None:
        self.lookahead = lookahead
        self.automaton = lookahead.automaton
        self.look = look
        self._forks: dict[Hashable, Fork] = {}

    def at(self, configuration: Any, steps: float) -> Fork:
        """The choices of ``configuration`` when ``steps`` more moves may be made."""
        signature, deeper = self.lookahead.signature(configuration)
        fork = self._forks.get(signature)
        if fork is None:
            if len(self._forks) > _CACHE:
                self._forks.clear()
            fork = self._forks[signature] = self._make(configuration, deeper)
        if fork.reach + deeper <= steps or not self.look:
            return fork
        # Near the end of the step budget the number of moves decides: asked anew, not remembered.
        near = tuple(choice for choice in fork.choices if self._within(configuration, choice, steps))
        return Fork(near, fork.total, fork.several)

    def _within(self, configuration: Any, choice: Choice, steps: float) -> bool:
        after = self.after(configuration, choice)
        return self.lookahead.completable(after, steps=int(steps) - len(choice.moves)).possible

    def after(self, configuration: Any, choice: Choice) -> Any:
        """The configuration after a choice."""
        for move in choice.moves:
            configuration = self.automaton.step(configuration, move)
        return configuration

    def _make(self, configuration: Any, deeper: float) -> Fork:
        selection = getattr(self.automaton, "selection", None)
        chosen = selection(configuration) if selection is not None else None
        several = chosen is not None and len(chosen) > 1
        if several:
            found = list(self._members(configuration, chosen or ()))
            total = len(chosen or ())
        else:
            found = list(self._candidates(configuration))
            total = len(found)
        if not self.look:
            return Fork(tuple(choice for choice, _ in found), total, several)
        kept, reach = [], 0.0
        for choice, after in found:
            steps = self.lookahead.steps(after)
            if steps < INFINITE:
                kept.append(choice)
                reach = max(reach, len(choice.moves) + steps - deeper)
        return Fork(tuple(kept), total, several, reach)

    def _candidates(self, configuration: Any) -> Iterator[tuple[Choice, Any]]:
        """The choices of a configuration that are single options, with what they lead to."""
        automaton = self.automaton
        at_class = getattr(automaton, "at_class", None)
        number = 0
        if automaton.accepting(configuration):
            yield Choice(0, ()), configuration
            number = 1
        for move in automaton.moves(configuration):
            after = automaton.step(configuration, move)
            paths = [((move,), after)]
            if move.read is None and at_class is not None and at_class(after):
                paths = [((move, member), automaton.step(after, member)) for member in automaton.moves(after)]
            for moves, end in paths:
                if all(move.read is None for move in moves):
                    # A terminal that must come now belongs to the option that brings it.
                    following = automaton.moves(end)
                    if len(following) == 1 and following[0].read is not None and not automaton.accepting(end):
                        moves, end = (*moves, following[0]), automaton.step(end, following[0])
                    elif not following and not automaton.accepting(end):
                        number += 1
                        continue
                yield Choice(number, moves, tuple(m.read for m in moves if m.read is not None)), end
                number += 1

    # -- selections ---------------------------------------------------------------------------------------------

    def _members(self, configuration: Any, members: tuple[str, ...]) -> Iterator[tuple[Choice, Any]]:
        """The members of a selection that some possible subset holds, with a configuration after such a subset."""
        for index, name in enumerate(members):
            found = self._select(configuration, members, frozenset((name,)), frozenset(members))
            if found is not None:
                yield Choice(index, found[0], (name,)), found[1]

    def subset(self, configuration: Any, names: frozenset[str]) -> Choice | None:
        """The choice of just these members of a selection; None where the rules do not allow them together."""
        members = self.automaton.selection(configuration)
        found = self._select(configuration, members, names, names)
        return None if found is None else Choice(-1, found[0], tuple(name for name in members if name in names))

    def _select(
        self, configuration: Any, members: tuple[str, ...], must: frozenset[str], may: frozenset[str]
    ) -> tuple[tuple[Any, ...], Any] | None:
        """Moves through a selection that take all of ``must`` and nothing but ``may``; depth first, by lookahead."""
        todo: list[tuple[tuple[Any, ...], Any, int]] = [((), configuration, 0)]
        while todo:
            moves, now, place = todo.pop()
            if moves and self.look and self.lookahead.steps(now) == INFINITE:
                continue
            if place == len(members):
                return moves, now
            name = members[place]
            for move in self.automaton.moves(now):
                after = self.automaton.step(now, move)
                if move.production.body[:1] == (name,):
                    if name in may:
                        todo += (
                            ((*moves, move, match), self.automaton.step(after, match), place + 1)
                            for match in self.automaton.moves(after)
                        )
                elif name not in must:
                    todo.append(((*moves, move), after, place + 1))
        return None
