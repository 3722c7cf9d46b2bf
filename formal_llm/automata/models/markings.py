"""The token game of a flowchart: its places are markings, multisets of the nodes at which work stands.

A token lies on a node. A step passes its token on when it is read; a decision passes it along one answer; an arrow to
several nodes puts a token on each. A token that takes an arrow from several nodes waits there, until every other source
has one or no other token can still come to it; then those that wait become one. At an end a token vanishes, and a plan
is done when there is none.

Whether two tokens could ever lie on one node is decided without listing markings, by the concurrency relation of
Kovalyov and Esparza (A polynomial algorithm to compute the concurrency relation of free-choice signal transition
graphs, 1995). Where it is in doubt, they could.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from formal_llm.automata.models.flowgraph import END, FlowEdge, FlowGraph, one_line
from formal_llm.automata.models.symbols import Symbol, expand_selections, find_reachable, selection
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError

#: A chart with more markings, or more pairs of nodes that are side by side, is refused.
MOST_MARKINGS = 100_000
#: So many markings are looked through when a chart is read.
_FIRST_LOOK = 500

#: A node; ``a?``: what follows it is asked; ``a&3``: it waits at the arrow number 3.
Token = str
Marking = tuple[Token, ...]


class ChartStep(NamedTuple):
    """A move: what it reads, its text, what is asked where it is a decision, the node whose answers are selected."""

    read: str
    label: str
    question: str | None
    selects: str | None = None


class TokenGame:
    """The markings of a chart and the moves between them.

    Args:
        graph: the chart.
        drawn: whether the branches of a fork are worked off one after the other, in the order of the arrows.
        never: answers that are never given.
    """

    def __init__(self, graph: FlowGraph, *, drawn: bool = False, never: frozenset[str] = frozenset()) -> None:
        self.graph = graph
        self.drawn = drawn
        self.never = never
        self.number = {edge: number for number, edge in enumerate(dict.fromkeys(graph.edges))}
        #: The joining arrow at which a token waits.
        self.joins = {self.wait_at(name, edge): edge for edge in self.number for name in edge.sources}
        self.joins = {token: edge for token, edge in self.joins.items() if len(edge.sources) > 1}
        self.rank = {node.id: number for number, node in enumerate(graph.nodes)}
        tokens = [*self.rank, *(f"{name}?" for name in (graph.opening, *self.rank)), *self.joins]
        self._ranks = {token: (self.rank.get(token.partition("&")[0].removesuffix("?"), -1), token) for token in tokens}
        #: The tokens that can wait for an arrow, with their nodes, by each of them.
        self.waiting = {
            token: {self.wait_at(name, edge): name for name in edge.sources} for token, edge in self.joins.items()
        }
        #: What a token can do, and where it can still come to, as far as it was asked for.
        self._moves: dict[Token, tuple[tuple[ChartStep, list[Token]], ...]] = {}
        self._reached: dict[Token, frozenset[str]] = {}
        #: The tokens that take the place of one that cannot stay.
        self._passing = {
            name: self.enter(name, edges[0]) if edges else []
            for name, edges in graph.leaving.items()
            if graph.kind(name) in ("start", "junction", "end")
        }

    def wait_at(self, name: str, edge: FlowEdge) -> Token:
        """The token that waits on a node for a joining arrow."""
        return f"{name}&{self.number[edge]}"

    @cached_property
    def before(self) -> Mapping[str, frozenset[str]]:
        """For each source of a joining arrow the nodes from which a token can come to it, with itself."""
        sources: dict[str, list[str]] = {node.id: [] for node in self.graph.nodes}
        for edge in self.number:
            for target in edge.targets:
                sources[target] += edge.sources
        waited_for = {name for edge in self.joins.values() for name in edge.sources}
        return {name: frozenset(find_reachable([name], sources.__getitem__)) for name in waited_for}

    def enter(self, name: str, edge: FlowEdge) -> list[Token]:
        """The tokens into which one on a node turns along an arrow."""
        return [self.wait_at(name, edge)] if len(edge.sources) > 1 else list(edge.targets)

    def find_reached(self, token: Token) -> frozenset[str]:
        """The sources of joining arrows to which a token can still come."""
        found = self._reached.get(token)
        if found is None:
            waits = self.joins.get(token)
            at = waits.targets if waits is not None else (token.removesuffix("?"),)
            found = frozenset(name for name, before in self.before.items() if not before.isdisjoint(at))
            self._reached[token] = found
        return found

    @property
    def start(self) -> Marking:
        """The marking that a plan begins with."""
        several = len(self.graph.starts) > 1
        return (f"{self.graph.opening}?",) if several else self.settle([self.graph.start])

    def settle(self, tokens: Sequence[Token]) -> Marking:
        """The marking after tokens have passed what is no step, and those that wait have met."""
        left = list(reversed(tokens))
        while True:
            marking: list[Token] = []
            while left:
                token = left.pop()
                if token in self._passing:
                    left += reversed(self._passing[token])
                else:
                    marking.append(token)
            edge = self._find_met(marking)
            if edge is None:
                return tuple(marking if self.drawn else sorted(marking, key=self._ranks.__getitem__))
            merged = self.waiting[self.wait_at(edge.sources[0], edge)]
            first = next(token for token in marking if token in merged)
            for token in reversed(marking):
                if token == first:
                    left += reversed(edge.targets)
                elif token not in merged:
                    left.append(token)

    def _find_met(self, marking: Sequence[Token]) -> FlowEdge | None:
        """An arrow whose waiting tokens have met."""
        seen: set[Token] = set()
        for token in marking:
            if token in self.joins and token not in seen:
                waiting = self.waiting[token]
                seen.update(waiting)
                missing = {name for other, name in waiting.items() if other not in marking}
                others = (other for other in marking if other not in waiting) if missing else ()
                if all(missing.isdisjoint(self.find_reached(other)) for other in others):
                    return self.joins[token]
        return None

    def list_moves(self, marking: Marking) -> Iterator[tuple[ChartStep, Marking]]:
        """What can be done at a marking, and where it leads."""
        for at, token in enumerate(marking):
            moves = self._moves.get(token)
            if moves is None:
                moves = self._moves[token] = tuple(self._moves_of_token(token))
            for step, after in moves:
                yield step, self.settle([*marking[:at], *after, *marking[at + 1 :]])
            if moves and self.drawn:
                return

    def _moves_of_token(self, token: Token) -> Iterator[tuple[ChartStep, list[Token]]]:
        graph, name = self.graph, token.removesuffix("?")
        if token in self.joins:
            return
        if token == name and graph.kind(name) == "step":
            leaving = graph.leaving[name]
            after = [f"{name}?"] if len(leaving) > 1 else self.enter(name, leaving[0]) if leaving else []
            yield ChartStep(name, one_line(graph.node[name].text), None), after
        elif name != graph.opening and graph.is_selection(name):
            yield ChartStep("", "", graph.question(name), name), self.enter(name, graph.leaving[name][0])
        else:
            question = graph.question(name)
            for terminal, (text, edge) in graph.answer_texts(name).items():
                if terminal not in self.never:
                    yield ChartStep(terminal, text, question), self.enter(name, edge)

    def explore(self) -> Iterator[tuple[Marking, list[tuple[ChartStep, Marking]]]]:
        """Yield the reachable markings with their moves, the first one first.

        Raises:
            AutomatonError: there are too many.
        """
        todo = [self.start]
        found = set(todo)
        for marking in todo:
            moves = list(self.list_moves(marking))
            yield marking, moves
            new = [after for after in dict.fromkeys(after for _, after in moves) if after not in found]
            found.update(new)
            todo += new
            if len(todo) > MOST_MARKINGS + 2 * len(self.graph.nodes):
                raise _too_many(self.graph)


def find_endless(graph: FlowGraph) -> list[str]:
    """The nodes from which no plan can end: each of their arrows has a target from which none can."""
    missing = {edge: set(edge.targets) for edge in graph.edges}
    into: dict[str, list[FlowEdge]] = {node.id: [] for node in graph.nodes}
    for edge in missing:
        for target in edge.targets:
            into[target].append(edge)
    todo = [name for name, edges in graph.leaving.items() if not edges]
    ending = set(todo)
    for name in todo:
        for edge in into[name]:
            missing[edge].discard(name)
            if not missing[edge]:
                todo += [source for source in edge.sources if source not in ending]
                ending.update(edge.sources)
    return [node.id for node in graph.nodes if node.id not in ending]


def find_meeting(graph: FlowGraph) -> tuple[FlowEdge, str] | None:
    """An arrow whose branches can come to one node one by one, and the node; None where there is none.

    At an end branches may meet, since nothing follows. From every node an end must be reached.

    Raises:
        AutomatonError: too many nodes are side by side.
    """
    forks = [edge for edge in dict.fromkeys(graph.edges) if len(edge.targets) > 1]
    if not forks:
        return None
    game = TokenGame(graph)
    beside: dict[Token, set[Token]] = {}
    todo: list[tuple[Token, Token, FlowEdge]] = []

    def add(one: Token, other: Token, fork: FlowEdge) -> None:
        if other not in beside.setdefault(one, set()):
            beside[one].add(other)
            beside.setdefault(other, set()).add(one)
            todo.extend([(one, other, fork), (other, one, fork)])

    for fork in forks:
        for one, other in itertools.combinations(fork.targets, 2):
            add(one, other, fork)
    for one, other, fork in todo:
        if len(todo) > 2 * MOST_MARKINGS:
            raise AutomatonError(
                f"more than {MOST_MARKINGS:,} pairs of nodes stand side by side in branches such as those of "
                f"{forks[0]}; draw fewer branches"
            )
        if one == other and graph.kind(name := one.partition("&")[0]) != "end":
            return fork, name
        join = game.joins.get(one)
        if join is None:
            entered = [token for edge in graph.leaving[one] for token in game.enter(one, edge)]
        elif game.joins.get(other) == join:
            continue
        else:
            # The other token is there while they meet: it stands beside each that waits, and can come to none that is
            # missing.
            meet = all(
                other in beside.get(game.wait_at(name, join), ()) or name not in game.find_reached(other)
                for name in join.sources
            )
            entered = list(join.targets) if meet else []
        for token in entered:
            add(token, other, fork)
    return None


def find_waiting(graph: FlowGraph) -> FlowEdge | None:
    """An arrow at which tokens wait for ever, of those in the first markings; None where none is found."""
    game = TokenGame(graph)
    if not game.joins or all(len(edge.targets) == 1 for edge in graph.edges):
        return None
    for marking, moves in itertools.islice(game.explore(), _FIRST_LOOK):
        if marking and not moves:
            return game.joins[marking[0]]
    return None


def _too_many(graph: FlowGraph) -> AutomatonError:
    first = next(edge for edge in graph.edges if len(edge.targets) > 1)
    return AutomatonError(
        f"what stands in branches such as those of {first} can be ordered in more ways than can be told apart here; "
        "have them worked off in the order of their arrows: %% %parallel drawn"
    )


class FlowchartTransitions:
    """Makes the transitions of a flowchart; for the arguments see :class:`TokenGame`.

    Args:
        decisions: whether the answers to decisions are read.
    """

    def __init__(self, graph: FlowGraph, *, decisions: bool, drawn: bool, never: frozenset[str] = frozenset()) -> None:
        self.game = TokenGame(graph, drawn=drawn, never=never)
        self.graph = graph
        self.decisions = decisions

    def make_transitions(self) -> tuple[dict[str, Symbol], list[Transition], str]:
        """The symbols of the terminals, the transitions, and the first state.

        Raises:
            AutomatonError: there are too many markings, or one in which everything waits.
        """
        graph, start = self.graph, self.game.start
        found: dict[Marking, list[Transition]] = {}
        symbols: dict[str, Symbol] = {}
        for marking, moves in self.game.explore():
            if marking and all(token in self.game.joins for token in marking):
                raise AutomatonError(f"the arrow {self.game.joins[marking[0]]} can wait for ever")
            state, seen = name_of(marking), set[str]()
            found[marking] = [
                transition
                for step, after in moves
                for transition in self._transitions_of_step(state, step, name_of(after), seen, symbols)
            ]

        def rank_marking(marking: Marking) -> float:
            number = self.game.rank.get(name_of(marking).removesuffix("?"), len(self.game.rank))
            return -1 if marking == start else number

        made = [transition for marking in sorted(found, key=rank_marking) for transition in found[marking]]
        known = [*graph.answers(graph.opening)]
        for node in graph.nodes:
            known += [node.id, *graph.answers(node.id)]
        return {name: symbols[name] for name in known if name in symbols}, made, name_of(start)

    def _transitions_of_step(
        self, state: str, step: ChartStep, target: str, seen: set[str], symbols: dict[str, Symbol]
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
        texts = self.graph.answer_texts(name)
        symbols |= {terminal: Symbol(text) for terminal, (text, _) in texts.items()}
        inside = f"{state}?" if state == name else f"{state}?{name}"
        choice, end, question = selection(*texts), f"{name}$", self.graph.question(name)
        yield Transition(state, None, None, inside, (choice, end))
        for production in expand_selections([choice]):
            yield Transition(inside, None, production.head, inside, production.body, question=question)
        for terminal, (text, _) in texts.items():
            yield Transition(inside, terminal, terminal, inside, (), text)
        yield Transition(inside, None, end, target)


def name_of(marking: Marking) -> str:
    """The name of the state that a marking is."""
    return " & ".join(marking) or END
