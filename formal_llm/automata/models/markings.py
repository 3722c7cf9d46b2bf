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
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from formal_llm.automata.models.flowgraph import END, FlowEdge, FlowGraph, one_line
from formal_llm.automata.models.symbols import (
    Symbol,
    expand_selections,
    find_derivable_heads,
    find_reachable,
    selection,
)
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError

#: A chart with more markings, or more pairs of nodes that are side by side, is refused.
MOST_MARKINGS = 100_000
#: So many moves are looked through when a chart is read.
_FIRST_LOOK = 2_000

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
        self.graph, self.drawn, self.never = graph, drawn, never
        self._number = {edge: number for number, edge in enumerate(dict.fromkeys(graph.edges))}
        self.edges = [*self._number]
        #: For each joining arrow, by its number, the tokens that wait there, with their nodes.
        self.waiting = {
            number: {self.wait_at(name, edge): name for name in edge.sources}
            for edge, number in self._number.items()
            if len(edge.sources) > 1
        }
        #: The number of the joining arrow at which a token waits.
        self.joins = {token: number for number, tokens in self.waiting.items() for token in tokens}
        self.rank = {node.id: number for number, node in enumerate(graph.nodes)}
        silent = [name for name in self.rank if graph.kind(name) in ("start", "junction", "end")]
        #: The tokens that take the place of one that cannot stay.
        self._passing = {name: [new for edge in graph.leaving[name] for new in self.enter(name, edge)]
                         for name in silent}  # fmt: skip
        self._moves = {token: tuple(self._moves_of_token(name, token)) for name in (graph.opening, *self.rank)
                       for token in (name, f"{name}?")}  # fmt: skip
        self._reached: dict[Token, Collection[str]] = {}

    def wait_at(self, name: str, edge: FlowEdge) -> Token:
        """The token that waits on a node for a joining arrow."""
        return f"{name}&{self._number[edge]}"

    def enter(self, name: str, edge: FlowEdge) -> list[Token]:
        """The tokens into which one on a node turns along an arrow."""
        return [self.wait_at(name, edge)] if len(edge.sources) > 1 else list(edge.targets)

    def find_reached(self, token: Token) -> Collection[str]:
        """The nodes to which a token can still come; its own, too, where it does not wait there."""
        if token not in self._reached:
            at = self.edges[self.joins[token]].targets if token in self.joins else (token.removesuffix("?"),)
            self._reached[token] = find_reachable(at, self.graph.list_targets)
        return self._reached[token]

    @property
    def start(self) -> Marking:
        """The marking that a plan begins with."""
        several = len(self.graph.starts) > 1
        return (f"{self.graph.opening}?",) if several else self.settle([self.graph.start])

    def settle(self, tokens: Sequence[Token]) -> Marking:
        """The marking after tokens have passed what is no step, and those that wait have met."""
        while True:
            marking: list[Token] = []
            left = list(reversed(tokens))
            while left:
                token = left.pop()
                if token in self._passing:
                    left += reversed(self._passing[token])
                else:
                    marking.append(token)
            met = self._find_met(marking)
            if met is None:
                return tuple(marking if self.drawn else sorted(marking, key=self._rank_token))
            merged = self.waiting[met]
            first = next(token for token in marking if token in merged)
            tokens = [
                new
                for token in marking
                if token == first or token not in merged
                for new in (self.edges[met].targets if token == first else (token,))
            ]

    def _rank_token(self, token: Token) -> tuple[int, Token]:
        return self.rank.get(token.partition("&")[0].removesuffix("?"), -1), token

    def _find_met(self, marking: Sequence[Token]) -> int | None:
        """The number of an arrow whose waiting tokens have met."""
        here = set(marking)
        for number in dict.fromkeys(self.joins[token] for token in marking if token in self.joins):
            waiting = self.waiting[number]
            missing = [name for token, name in waiting.items() if token not in here]
            others = [token for token in marking if token not in waiting] if missing else ()
            if not any(name in self.find_reached(token) for token in others for name in missing):
                return number
        return None

    def list_moves(self, marking: Marking) -> Iterator[tuple[ChartStep, Marking]]:
        """What can be done at a marking, and where it leads."""
        for at, token in enumerate(marking):
            moves = self._moves.get(token, ())
            for step, after in moves:
                yield step, self.settle([*marking[:at], *after, *marking[at + 1 :]])
            if moves and self.drawn:
                return

    def _moves_of_token(self, name: str, token: Token) -> Iterator[tuple[ChartStep, list[Token]]]:
        graph = self.graph
        if token == name and name in graph.node and graph.kind(name) == "step":
            leaving = graph.leaving[name]
            after = [f"{name}?"] if len(leaving) > 1 else self.enter(name, leaving[0]) if leaving else []
            yield ChartStep(name, one_line(graph.node[name].text), None), after
        elif name in graph.node and graph.is_selection(name):
            yield ChartStep("", "", graph.question(name), name), self.enter(name, graph.leaving[name][0])
        else:
            for terminal, (text, edge) in graph.answer_texts(name).items():
                if terminal not in self.never:
                    yield ChartStep(terminal, text, graph.question(name)), self.enter(name, edge)

    def explore(self) -> Iterator[tuple[Marking, list[tuple[ChartStep, Marking]]]]:
        """Yield the reachable markings with their moves, the first one first.

        Raises:
            AutomatonError: there are too many.
        """
        found = {self.start: None}
        todo = [*found]
        for marking in todo:
            moves = list(self.list_moves(marking))
            yield marking, moves
            new = [after for after in dict.fromkeys(after for _, after in moves) if after not in found]
            found.update(dict.fromkeys(new))
            todo += new
            if len(todo) > MOST_MARKINGS + 2 * len(self.graph.nodes):
                first = next(edge for edge in self.graph.edges if len(edge.targets) > 1)
                raise AutomatonError(
                    f"what stands in branches such as those of {first} can be ordered in more ways than can be told "
                    "apart here; have them worked off in the order of their arrows: %% %parallel drawn"
                )


def find_endless(graph: FlowGraph) -> list[str]:
    """The nodes from which no plan can end: each of their arrows has a target from which none can."""
    arrows = [(source, edge.targets) for edge in graph.edges for source in edge.sources]
    ending = find_derivable_heads([*arrows, *((name, ()) for name, edges in graph.leaving.items() if not edges)], ())
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
                other in beside.get(token, ()) or name not in game.find_reached(other)
                for token, name in game.waiting[join].items()
            )
            entered = list(game.edges[join].targets) if meet else []
        for token in entered:
            add(token, other, fork)
    return None


def find_waiting(graph: FlowGraph) -> FlowEdge | None:
    """An arrow at which tokens wait for ever, as far as the first moves show; None where none is found."""
    forks = any(len(edge.targets) > 1 for edge in graph.edges)
    if not forks or all(len(edge.sources) == 1 for edge in graph.edges):
        return None
    game, looked = TokenGame(graph), 0
    for marking, moves in game.explore():
        if marking and not moves:
            return game.edges[game.joins[marking[0]]]
        looked += len(moves)
        if looked > _FIRST_LOOK:
            break
    return None


def make_transitions(game: TokenGame, *, decisions: bool) -> tuple[dict[str, Symbol], list[Transition], str]:
    """The symbols of the terminals of a chart, its transitions, and the first state.

    Args:
        game: its token game.
        decisions: whether the answers to decisions are read.

    Raises:
        AutomatonError: there are too many markings, or one in which everything waits.
    """
    graph = game.graph
    found: dict[str, list[Transition]] = {}
    symbols: dict[str, Symbol] = {}
    for marking, moves in game.explore():
        if marking and all(token in game.joins for token in marking):
            raise AutomatonError(f"the arrow {game.edges[game.joins[marking[0]]]} can wait for ever")
        state, taken, made = name_of(marking), set[str](), list[Transition]()
        found[state] = made
        for (read, label, question, selects), after in moves:
            target = name_of(after)
            if selects is not None and decisions:
                symbols |= {terminal: Symbol(text) for terminal, (text, _) in graph.answer_texts(selects).items()}
                made += _select_answers(graph, state, selects, target)
            elif selects is not None:
                made.append(Transition(state, None, None, target))
            elif question is None or decisions:
                symbols[read] = Symbol(label)
                made.append(Transition(state, read, None, target, (), label, question=question or "",
                                       decision=question is not None))  # fmt: skip
            else:
                decided = target
                if target in taken:  # two answers that lead to one place are two transitions all the same
                    decided = read if state in graph.node else f"{state}:{read}"
                    made.append(Transition(decided, None, None, target))
                made.append(Transition(state, None, None, decided, (), label, question=question, decision=True))
                taken.add(target)
    start = name_of(game.start)
    states = sorted(
        found, key=lambda state: -1 if state == start else game.rank.get(state.removesuffix("?"), len(game.rank))
    )
    known = [*graph.answers(graph.opening), *(name for one in graph.nodes for name in (one.id, *graph.answers(one.id)))]
    ordered = {name: symbols[name] for name in known if name in symbols}
    return ordered, [transition for state in states for transition in found[state]], start


def _select_answers(graph: FlowGraph, state: str, name: str, target: str) -> Iterator[Transition]:
    """Several answers together: they are worked off on the stack before anything else moves."""
    texts = graph.answer_texts(name)
    inside = f"{state}?" if state == name else f"{state}?{name}"
    choice, end = selection(*texts), f"{name}$"
    yield Transition(state, None, None, inside, (choice, end))
    for production in expand_selections([choice]):
        yield Transition(inside, None, production.head, inside, production.body, question=graph.question(name))
    for terminal, (text, _) in texts.items():
        yield Transition(inside, terminal, terminal, inside, (), text)
    yield Transition(inside, None, end, target)


def name_of(marking: Marking) -> str:
    """The name of the state that a marking is."""
    return " & ".join(marking) or END
