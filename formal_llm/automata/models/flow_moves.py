"""What can be done at each place of a flowchart: its transitions as an automaton.

A place is a node. In a fork it is a place for each branch, and one of them moves at a time. A branch that has come to
where all of them meet is done, and when all are, the way continues from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from formal_llm.automata.models.flow_forks import END, BranchSplit, find_splits
from formal_llm.automata.models.flowgraph import FlowGraph, one_line
from formal_llm.automata.models.symbols import Symbol, expand_selections, selection
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError

#: A chart whose branches can be ordered in more ways than this has places is refused.
MOST_PLACES = 100_000
#: How deep forks may stand inside of each other.
_DEEPEST = 50
#: The place of a branch that has come to where the branches meet.
_DONE = "."


class ForkPlace(NamedTuple):
    """A place in a fork: its name, where its branches meet, and where each of them is."""

    name: str
    join: str
    parts: tuple[Place, ...]


Place = str | ForkPlace


class _ChartStep(NamedTuple):
    """A move from a place: what it reads, its text, and what is asked where it is a decision."""

    read: str
    label: str
    question: str | None
    selects: str | None = None


class FlowchartTransitions:
    """Makes the transitions of a flowchart.

    Args:
        graph: the chart, which describes plans.
        decisions: whether the answers to decisions are read.
        drawn: whether the branches of a fork are worked off one after the other, in the order of the arrows.
        never: answers that are never given.
    """

    def __init__(self, graph: FlowGraph, *, decisions: bool, drawn: bool, never: frozenset[str] = frozenset()) -> None:
        self.never = never
        self.graph = graph
        self.decisions = decisions
        self.drawn = drawn
        self.splits = find_splits(graph)

    def make_transitions(self) -> tuple[dict[str, Symbol], list[Transition], str]:
        """The symbols of the terminals, the transitions, and the first state.

        Raises:
            AutomatonError: the branches of forks can be ordered in too many ways.
        """
        graph = self.graph
        several = len(graph.starts) > 1
        start = f"{graph.opening}?" if several else self._enter_place(graph.start, END, 0)
        places: dict[Place, None] = {start: None}
        found: dict[Place, list[Transition]] = {}
        symbols: dict[str, Symbol] = {}
        todo = list(places)
        for place in todo:
            state, seen = name_of(place), set[str]()
            found[place] = []
            for step, after in self._list_moves(place, END, 0):
                target = name_of(after)
                found[place] += self._transitions_of_step(state, step, target, seen, symbols)
                if after not in places:
                    places[after] = None
                    todo.append(after)
            if len(places) > MOST_PLACES + len(graph.nodes):
                first = next(name for name in self.splits)
                raise AutomatonError(
                    f"what stands in the branches of forks such as {first} can be ordered in more ways than can be"
                    " told apart here; have them worked off in the order of their arrows: %% %parallel drawn"
                )
        number = {node.id: n for n, node in enumerate(graph.nodes)}

        def rank_place(place: Place) -> float:
            return -1 if place == start else number.get(name_of(place).removesuffix("?"), len(number))

        made = [transition for place in sorted(found, key=rank_place) for transition in found[place]]
        known = [*graph.answers(graph.opening)]
        for node in graph.nodes:
            known += [node.id, *graph.answers(node.id)]
        return {name: symbols[name] for name in known if name in symbols}, made, name_of(start)

    # -- places ---------------------------------------------------------------------------------------------------

    def _enter_place(self, name: str, join: str, depth: int) -> Place:
        """The place to which an arrow leads, past what is no step, in a branch that ends at ``join``."""
        while name != join:
            kind = self.graph.kind(name)
            leaving = self.graph.leaving[name]
            if kind == "fork":
                split = self.splits[name]
                assert split is not None
                place = self._open_fork(split, name, depth + 1)
                if any(part != _DONE for part in place.parts):
                    return place
                name = place.join
            elif kind in ("start", "junction", "end"):
                name = leaving[0].target if leaving else END
            else:
                return name
        return END if depth == 0 else _DONE

    def _open_fork(self, split: BranchSplit, name: str, depth: int) -> ForkPlace:
        if depth > _DEEPEST:
            raise AutomatonError(f"forks stand in each other more than {_DEEPEST} deep; the last one is {name}")
        parts: list[Place] = []
        for branch in split.branches:
            if isinstance(branch, str):
                parts.append(self._enter_place(branch, split.join, depth))
            else:
                parts.append(self._settle_fork(self._open_fork(branch, name, depth + 1), split.join, depth))
        return ForkPlace(name, split.join, tuple(parts))

    def _settle_fork(self, fork: ForkPlace, join: str, depth: int) -> Place:
        """A place in a fork, or where the way continues when all branches are done."""
        return fork if any(part != _DONE for part in fork.parts) else self._enter_place(fork.join, join, depth)

    # -- moves ----------------------------------------------------------------------------------------------------

    def _list_moves(self, place: Place, join: str, depth: int) -> Iterator[tuple[_ChartStep, Place]]:
        """What can be done at a place, and where it leads, in a branch that ends at ``join``."""
        if isinstance(place, ForkPlace):
            for number, part in enumerate(place.parts):
                for step, after in self._list_moves(part, place.join, depth + 1):
                    parts = (*place.parts[:number], after, *place.parts[number + 1 :])
                    yield step, self._settle_fork(place._replace(parts=parts), join, depth)
                if self.drawn and part != _DONE:
                    return
            return
        if place in (END, _DONE):
            return
        graph = self.graph
        name = place.removesuffix("?")
        if place == name and graph.kind(name) == "step":
            targets = [edge.target for edge in graph.leaving[name]] or [END]
            reached = f"{name}?" if len(targets) > 1 else self._enter_place(targets[0], join, depth)
            yield _ChartStep(name, one_line(graph.node[name].text), None), reached
        elif name != graph.opening and graph.is_selection(name):
            yield (
                _ChartStep("", "", graph.question(name), name),
                self._enter_place(graph.leaving[name][0].target, join, depth),
            )
        else:
            question = graph.question(name)
            for terminal, (text, edge) in graph.answer_texts(name).items():
                if terminal in self.never:
                    continue
                yield _ChartStep(terminal, text, question), self._enter_place(edge.target, join, depth)

    def _transitions_of_step(
        self, state: str, step: _ChartStep, target: str, seen: set[str], symbols: dict[str, Symbol]
    ) -> Iterator[Transition]:
        if step.selects is not None:
            yield from self._transitions_of_selection(state, step.selects, target, symbols)
        elif step.question is None:
            symbols[step.read] = Symbol(step.label)
            yield Transition(state, step.read, None, target, (), step.label)
        else:
            read, decided = step.read if self.decisions else None, target
            if self.decisions:
                symbols[step.read] = Symbol(step.label)
            elif target in seen:
                # Two answers that lead to one place are two transitions all the same.
                decided = step.read if state in self.graph.node else f"{state}:{step.read}"
                yield Transition(decided, None, None, target)
            seen.add(decided)
            yield Transition(state, read, None, decided, (), step.label, question=step.question, decision=True)

    def _transitions_of_selection(
        self, state: str, name: str, target: str, symbols: dict[str, Symbol]
    ) -> Iterator[Transition]:
        """Several answers together: they are worked off on the stack before anything else moves."""
        if not self.decisions:
            yield Transition(state, None, None, target)
            return
        told = self.graph.answer_texts(name)
        symbols |= {terminal: Symbol(text) for terminal, (text, _) in told.items()}
        inside = f"{state}?" if state == name else f"{state}?{name}"
        choice, end, question = selection(*told), f"{name}$", self.graph.question(name)
        yield Transition(state, None, None, inside, (choice, end))
        for production in expand_selections([choice]):
            yield Transition(inside, None, production.head, inside, production.body, question=question)
        for terminal, (text, _) in told.items():
            yield Transition(inside, terminal, terminal, inside, (), text)
        yield Transition(inside, None, end, target)


def name_of(place: Place) -> str:
    """The name of the state that a place is."""
    return place if isinstance(place, str) else f"{place.name}({' '.join(map(name_of, place.parts))})"
