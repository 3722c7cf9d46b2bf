"""All derivations of rules within their limits as one chart: an acyclic hypergraph, summed over in any semiring.

Limits count and do not order. So what is left of a derivation depends on the multiset of symbols still pending and on
what the limits leave (:mod:`formal_llm.automata.lookahead.flow`), and a derivation is a path through such states: each
step rewrites one pending symbol. Symbols that no limit concerns are independent of the path, and of each other: such a
symbol has a node of its own, a child of the step that leaves it pending. A step with all its children is an *edge*; a
node is the sum over its edges of the product over the children of each
(:mod:`formal_llm.automata.lookahead.chart`). In whole numbers that sum is how many derivations there are, in logarithms
of weights their distribution, with the maximum as the sum the best of them.

**Classes.** Terminals that may be used once and are read in the same places can replace each other. Of such a class a
state records only how many members are left, not which: 15 tools of six types make some hundred states, not 32,768. A
step reads a *slot* of the class, and which member is read there is decided at the end of the path: k slots are filled
by a set of k members, in any of k! orders. The sum over all such sets, the elementary symmetric polynomial, is a chart,
too: each member is in the set or not. So members may have any scores.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import factorial, inf, prod
from typing import Any, NamedTuple

import numpy as np

from formal_llm.automata.lookahead.chart import COUNTS, ROOT, Chart, Inside, Item, Slot, Step, list_cheapest
from formal_llm.automata.lookahead.cheapest import least_costs
from formal_llm.automata.lookahead.classes import Classes, Parts, PlacedParts, Ways, find_least_taken
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar, FlowSymbol
from formal_llm.automata.lookahead.limited import LimitedConfiguration
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import PendingSymbols
from formal_llm.automata.models.automaton import Stack, State, Word
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limits import Bound
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import product as intersect
from formal_llm.automata.models.symbols import Production, find_derivable_heads, find_reachable
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import InfiniteLanguage, Undecided

#: What has a weight: a terminal, or a move by its production or, where it has none, by its transition.
Feature = str | Production | Transition


class _Compiled(NamedTuple):
    """A step, what it takes, reads and leaves pending, and the nodes beside the path."""

    step: Step
    need: int
    reads: tuple[str, ...]
    pending: tuple[int, ...]
    beside: tuple[int, ...]


class _Members(NamedTuple):
    """A node: the sets of ``size`` of the first members of a class."""

    field: int
    among: int
    size: int


#: A state: what is pending, sorted; what is left; what is needed. At the end of a path: the slots of each class.
_State = tuple[tuple[int, ...], Any, int]
_Node = int | _State | _Members
_Edge = tuple[Step, tuple[_Node, ...]]
#: The end of a path without slots, and of all others: node 0.
END: _State = ((), (), 0)


def list_bodies(
    grammar: FlowGrammar, state: State, stack: Stack, feature_of: Callable[[Transition], Feature | None] | None = None
) -> dict[int, list[tuple[tuple[Item, ...], Feature | None]]]:
    """The ways of all symbols that a configuration leads to, each with the feature of its move; :data:`ROOT` is it.

    What lies deeper on the stack has symbols of its own where several ways lead there.
    """
    stacked: dict[int, list[tuple[int, ...]]] = {}
    numbers: dict[tuple[State, Stack], int] = {(state, stack): ROOT}
    todo = [(state, stack)]
    for at, node in todo:
        found = stacked[numbers[at, node]] = []
        for symbol, target in grammar.resolve_top(at, node.top, node.rest):
            if symbol.least_steps == inf:
                continue
            if target is not ACCEPTING and (target, node.rest) not in numbers:
                numbers[target, node.rest] = ROOT - len(numbers)
                todo.append((target, node.rest))
            found.append((symbol.index,) if target is ACCEPTING else (symbol.index, numbers[target, node.rest]))
    # What leaves a rest that cannot be worked off is no way.
    ending = find_derivable_heads([(number, items[1:]) for number, group in stacked.items() for items in group], ())
    stacked = {number: [one for one in group if ending.issuperset(one[1:])] for number, group in stacked.items()}
    bodies: dict[int, list[tuple[tuple[Item, ...], Feature | None]]]
    bodies = {number: [(items, None) for items in group] for number, group in stacked.items()}
    for index in grammar.reachable_symbols(items[0] for group in stacked.values() for items in group):
        symbol = grammar.symbols[index]
        moves = ((None, way) for way in grammar.live_ways(symbol)) if feature_of is None else grammar.live_moves(symbol)
        bodies[index] = [
            (
                way.children if way.read is None else (way.read, *way.children),
                None if move is None or feature_of is None else feature_of(move),
            )
            for move, way in moves
        ]
    return bodies


class DerivationStates:
    """The derivations that complete a configuration.

    Args:
        grammar: the flow grammar of the automaton under its bounds.
        begin: the configuration, its counters packed as those of the grammar.
        feature_of: the feature of a move; None where it has none. Terminals always are features.
        max_states: the most nodes.

    Attributes:
        numbers: the number of each feature.
        members: the members of each class, by its field.
    """

    def __init__(
        self,
        grammar: FlowGrammar,
        begin: LimitedConfiguration,
        feature_of: Callable[[Transition], Feature | None] | None = None,
        *,
        max_states: int = 200_000,
    ) -> None:
        self._grammar, self._begin, self._max_states = grammar, begin, max_states
        self._counters = grammar.counters
        self.numbers: dict[Feature, int] = {name: number for number, name in enumerate(grammar.pda.terminals)}
        self._tracked = {*self._counters.need, *self._counters.dues}
        steps = self._inline_single(self._list_steps(feature_of), links=True)
        self._classes = Classes(self._counters, self._place_steps(steps), counting=True)
        classes: dict[int, list[str]] = {}
        once = {bound.terminal for bound in self._counters.bounds if bound.most is not None and bound.most <= 1}
        for name, field in self._classes.uses.items():
            if name in once:  # what is left of its field is the number of ways to read it
                classes.setdefault(field, []).append(name)
        self.members = {field: names for field, names in classes.items() if len(names) > 1}
        self._fields: dict[Item, int] = {name: field for field, names in self.members.items() for name in names}
        self._fillers = {
            field: [
                Step(None, (Slot(field), name), (self.numbers[name],))
                for name in names
                if self._counters.can_afford(name, begin.remaining)
            ]
            for field, names in self.members.items()
        }
        self._steps = self._inline_single(self._group_steps(steps), links=False)
        self._analyse_steps()

    # -- steps ----------------------------------------------------------------------------------------------------

    def _list_steps(self, feature_of: Callable[[Transition], Feature | None] | None) -> dict[int, list[Step]]:
        def number(feature: Feature | None) -> tuple[int, ...]:
            return () if feature is None else (self.numbers.setdefault(feature, len(self.numbers)),)

        state, stack = self._begin.inner
        return {
            index: [Step(index, items, number(feature)) for items, feature in group]
            for index, group in list_bodies(self._grammar, state, stack, feature_of).items()
        }

    def _inline_single(self, steps: Mapping[int, list[Step]], *, links: bool) -> dict[int, list[Step]]:
        """Put symbols with one way in their places, where that leaves no symbol; of links, one and reads no more."""
        symbols = self._grammar.symbols
        # Each behind those that all its completions contain.
        order = sorted(steps, key=lambda index: (symbols[index].least_steps if index >= 0 else inf, index))
        inlined: dict[int, Step] = {}
        for index in order:
            if index != ROOT and len(steps[index]) == 1:
                only = _inline_steps(steps[index][0], inlined)
                left = len(_symbols_in(only))
                if not left or (links and left == 1 and len(only.items) <= 2):
                    inlined[index] = only
        whole = {index: [_inline_steps(one, inlined) for one in group] for index, group in steps.items()}
        reached = find_reachable([ROOT], lambda index: [item for one in whole[index] for item in _symbols_in(one)])
        return {index: whole[index] for index in reached}

    def _place_steps(self, steps: Mapping[int, list[Step]]) -> dict[int, list[PlacedParts]]:
        """The steps as classes see them: terminals that are read at equal places can replace each other."""
        placed: dict[int, list[PlacedParts]] = {}
        for index, group in steps.items():
            for step in group:
                reads = tuple([item for item in step.items if isinstance(item, str) and item in self._tracked])
                items = tuple([None if item in self._tracked else item for item in step.items])
                placed.setdefault(index, []).append((reads, (), (items, step.features)))
        return placed

    def _group_steps(self, steps: Mapping[int, list[Step]]) -> dict[int, list[Step]]:
        """The steps with slots for members of classes, those alike together."""
        groups: dict[int, list[Step]] = {}
        for index, group in steps.items():
            alike: dict[Step, Counter[Item | None]] = {}
            for step in group:
                read = next((item for item in step.items if item in self._fields), None)
                items = tuple([Slot(self._fields[item]) if item in self._fields else item for item in step.items])
                features = step.features + tuple(self.numbers[item] for item in items if isinstance(item, str))
                slotted = Step(index, items, tuple(sorted(features)))
                alike.setdefault(slotted, Counter())[read] += step.times
            # Each member of a class is read in as many ways.
            groups[index] = [one._replace(times=max(reads.values())) for one, reads in alike.items()]
        return groups

    def _analyse_steps(self) -> None:
        """What steps take and leave, which symbols limits concern, and what each takes at least."""
        counters, classes = self._counters, self._classes
        parts = {index: [self._part_of(one) for one in group] for index, group in self._steps.items()}
        users: dict[int, list[int]] = {}
        for index, ways in parts.items():
            for _, left, _ in ways:
                for child in left:
                    users.setdefault(child, []).append(index)
        self._cyclic, self._growing = self._find_cycles(parts)
        first = [index for index, ways in parts.items() if any(not self._tracked.isdisjoint(r) for r, *_ in ways)]
        stacked = [index for index in parts if index < 0]
        touched = find_reachable([*first, *self._cyclic, *stacked], lambda index: users.get(index, ()))
        pseudo = [FlowSymbol(index, (None, None, None), least_steps=-index) for index in range(min(parts), 0)]
        least = find_least_taken([*self._grammar.symbols, *pseudo], parts, classes.amounts_taken)
        self._least = {index: classes.pack(amounts) for index, amounts in least.items()}
        self._compiled = {
            index: [
                _Compiled(
                    one, classes.pack(classes.amounts_taken(read)),
                    tuple(name for name in read if name in counters.dues),
                    tuple(child for child in left if child in touched),
                    tuple(child for child in left if child not in touched),
                )
                for one, (read, left, _) in zip(group, parts[index], strict=True)
            ]
            for index, group in self._steps.items()
        }  # fmt: skip

    def _part_of(self, step: Step) -> Parts:
        """What a step reads, of a class any member, and the symbols that it leaves."""
        reads = [self.members[item.field][0] if isinstance(item, Slot) else item for item in step.items]
        return tuple([one for one in reads if isinstance(one, str)]), tuple(_symbols_in(step)), 0

    def _find_cycles(self, parts: Ways) -> tuple[set[int], set[int]]:
        """Symbols from which a cycle leads back to themselves that takes nothing from limits; those that grow words.

        With one of the first in a state that can be completed there are infinitely many derivations, with one of the
        second infinitely many words.
        """
        takes, symbols = self._classes.takes, self._grammar.symbols
        free = [
            (index, bool(reads), left)
            for index, ways in parts.items()
            for reads, left, _ in ways
            if index >= 0 and takes.keys().isdisjoint(reads) and sum(not symbols[child].is_free for child in left) <= 1
        ]
        after: dict[int, set[int]] = {index: set() for index in parts}
        for index, _, left in free:
            after[index].update(left)
        if len(find_derivable_heads([(index, tuple(found)) for index, found in after.items()], ())) == len(after):
            return set(), set()
        whole = [(index, reads, left) for index, reads, left in free if self._all_free(left)]
        readers = [(index, ()) for index, reads, _ in whole if reads]
        reading = find_derivable_heads([*readers, *((index, (one,)) for index, _, left in whole for one in left)], ())
        import networkx  # only here: most finite languages have no cycle, and importing takes a while

        graph = networkx.DiGraph()
        for index, reads, left in free:
            for place, child in enumerate(left):
                others = [*left[:place], *left[place + 1 :]]
                if self._all_free(others):
                    grows = reads or not reading.isdisjoint(others)
                    graph.add_edge(index, child, grows=grows or graph.get_edge_data(index, child, {}).get("grows"))
        cyclic: set[int] = set()
        growing: set[int] = set()
        for component in networkx.strongly_connected_components(graph):
            inside = [grows for *_, grows in graph.subgraph(component).edges(data="grows")]
            cyclic |= component if inside else set()
            growing |= component if any(inside) else set()
        return cyclic, growing

    def _all_free(self, symbols: Iterable[int]) -> bool:
        return all(self._grammar.symbols[index].is_free for index in symbols)

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _list_edges(self, key: _Node) -> Iterator[_Edge]:
        if isinstance(key, _Members):
            field, among, size = key
            filler = self._fillers[field][among - 1]
            yield filler, (_Members(field, among - 1, size - 1) if size > 1 else END,)
            if among > size:
                yield Step(None, (), ()), (_Members(field, among - 1, size),)
        elif isinstance(key, int):
            for one in self._compiled[key]:
                yield one.step, one.beside
        elif not key[0]:
            sizes = [(field, size) for field, size in zip(self._fillers, key[1], strict=True) if size]
            if all(size <= len(self._fillers[field]) for field, size in sizes):
                times = prod(factorial(size) for _, size in sizes)
                yield Step(None, (), (), times), tuple(_Members(f, len(self._fillers[f]), size) for f, size in sizes)
        elif self._is_affordable(key[0], key[1]):
            yield from self._list_successors(*key)

    def _list_successors(self, pending: tuple[int, ...], left: int, needed: int) -> Iterator[_Edge]:
        """The edges of a state that rewrite one symbol; what is pending besides stays so."""
        index = _next_symbol(pending)
        others = pending[1:] if index < 0 else pending[:-1]
        guard = self._classes.guard
        for step, need, reads, more, beside in self._compiled[index]:
            after = left - need
            if after & guard != guard:
                continue
            due = self._counters.pay_all(reads, needed)
            if others or more:
                yield step, ((tuple(sorted(others + more)) if more else others, after, due), *beside)
            elif not due:
                sizes = tuple(
                    [self._classes.amount(self._left, f) - self._classes.amount(after, f) for f in self._fillers]
                )
                yield step, (((), sizes, 0) if any(sizes) else END, *beside)

    def _is_affordable(self, pending: tuple[int, ...], left: int) -> bool:
        """Whether what all pending symbols take at least is left."""
        least = self._least
        return all(index in least for index in pending) and self._classes.covers(left, sum([least[i] for i in pending]))

    @cached_property
    def _left(self) -> int:
        """What the limits leave at the start."""
        return self._classes.left_of(self._begin.remaining)

    @property
    def _start(self) -> _State:
        return (ROOT,), self._left, self._begin.needed

    def _check_cycle(self, key: _State) -> None:
        """Raise where a state with a symbol on a cycle can be completed: it then has infinitely many derivations."""
        pending, left, needed = key
        demands = self._search.demands
        after = demands.classes.left_of(self._classes.some_remaining(left))
        found, _ = self._search.finish((sum(map(demands.multisets.unit_of, pending)), None, after, needed, inf))
        if found < 0:
            raise Undecided("it was not decided within the budget of states whether there are infinitely many plans")
        if found < inf:
            if pending[-1] in self._growing:
                raise InfiniteLanguage("there are infinitely many; give a bound on their length (max_length)")
            raise InfiniteLanguage("there are infinitely many derivations: a cycle adds nothing; count words instead")

    @cached_property
    def _search(self) -> CompletionSearch:
        return CompletionSearch(PendingSymbols(self._grammar), self._max_states)

    def check_words(self) -> None:
        """Raise where there are infinitely many words.

        Raises:
            InfiniteLanguage: there are.
            Undecided: the budget of states is spent.
        """
        todo, seen = [self._start], {self._start}
        while todo and self._growing:
            key = todo.pop()
            if _next_symbol(key[0]) in self._growing:
                self._check_cycle(key)
            for _, (after, *_) in self._list_edges(key):
                assert isinstance(after, tuple)
                spared: _State = (self._without_spare(*after[:2]), *after[1:])
                if spared[0] and spared not in seen:
                    if len(seen) >= self._max_states:
                        raise Undecided("whether there are finitely many words was not decided; raise max_states")
                    seen.add(spared)
                    todo.append(spared)

    def _without_spare(self, pending: tuple[int, ...], left: int) -> tuple[int, ...]:
        """Fewer copies of free symbols: no more than one for each unit that is left can take something from a limit."""
        most = 1 + self._classes.amount(left, self._classes.total) if pending else 0
        kept: list[int] = []
        for index in pending:
            if kept[-most:] != [index] * most or not self._all_free([index]):
                kept.append(index)
        return tuple(kept)

    @cached_property
    def chart(self) -> Chart:
        """All nodes from the start, depth first; what has no way to an end is left out.

        Raises:
            InfiniteLanguage: there are infinitely many derivations.
            Undecided: there are too many nodes, or it was not decided whether there are infinitely many.
        """
        nodes: dict[_Node, int | None] = {END: 0}
        levels, edges = [0], list[tuple[int, Step, tuple[int, ...]]]()
        on_path: set[_Node] = {self._start}
        frames = [self._open_frame(self._start)]
        while frames:
            key, found, unknown = frames[-1]
            child = next((child for child in unknown if child not in nodes), None)
            if child is None:
                number, level = len(levels), 0
                for step, keys in found:
                    children = tuple([known for one in keys if (known := nodes[one]) is not None])
                    if len(children) == len(keys):
                        edges.append((number, step, children))
                        level = max(level, 1 + max([levels[one] for one in children], default=0))
                nodes[key] = number if level else None
                if level:
                    levels.append(level)
                frames.pop()
                on_path.discard(key)
            elif child in on_path:
                raise Undecided("the derivations form a cycle")
            else:
                if len(levels) + len(frames) > self._max_states:
                    raise Undecided("the derivations have too many states to be listed; raise max_states")
                on_path.add(child)
                frames.append(self._open_frame(child))
        return Chart(nodes[self._start], levels, edges)

    def _open_frame(self, key: _Node) -> tuple[_Node, list[_Edge], Iterator[_Node]]:
        if type(key) is tuple and key[0] and _next_symbol(key[0]) in self._cyclic:  # type: ignore[arg-type]
            self._check_cycle(key)  # type: ignore[arg-type]
            return key, [], iter(())
        found = list(self._list_edges(key))
        return key, found, iter([child for _, children in found for child in children])

    # -- what there is ----------------------------------------------------------------------------------------------

    def count(self) -> int:
        """How many there are; raises as :attr:`chart`."""
        return int(self._counted.total)

    def sample(self, rng: random.Random) -> Word | None:
        """The word of one at random, all equally likely; None where there is none."""
        return None if not self._counted.total else self._counted.draw(rng)

    @cached_property
    def _counted(self) -> Inside:
        return self.chart.evaluate(np.array([step.times for step in self.chart.steps], dtype=object), COUNTS)


def _next_symbol(pending: tuple[int, ...]) -> int:
    """The symbol that is rewritten next: what is left of the stack, so that it is never pending besides a cycle."""
    return pending[0] if pending[0] < 0 else pending[-1]


def _symbols_in(step: Step) -> list[int]:
    return [item for item in step.items if isinstance(item, int)]


def _inline_steps(step: Step, inlined: Mapping[int, Step]) -> Step:
    """A step with those of other symbols in their places."""
    if not any(isinstance(item, int) and item in inlined for item in step.items):
        return step
    items: list[Item] = []
    features = list(step.features)
    times = step.times
    for item in step.items:
        inner = inlined.get(item) if isinstance(item, int) else None
        if inner is None:
            items.append(item)
        else:
            items += inner.items
            features += inner.features
            times *= inner.times
    return Step(step.symbol, tuple(items), tuple(sorted(features)), times)


# -- the derivations of one word ---------------------------------------------------------------------------------------


def derive(
    pda: PDA,
    bounds: Sequence[Bound] = (),
    feature_of: Callable[[Transition], Feature | None] | None = None,
    max_states: int = 200_000,
) -> DerivationStates:
    """The derivations of an automaton within bounds; see :class:`DerivationStates`."""
    counters = Counters(bounds)
    begin = LimitedConfiguration(pda.start(), counters.remaining, counters.needed)
    return DerivationStates(FlowGrammar(pda, counters), begin, feature_of, max_states=max_states)


def only_word(pda: PDA, word: Word) -> PDA:
    """An automaton, limits aside, that has only one of its words: the product with the automaton of that word."""
    ends = [(place, name, None, place + 1) for place, name in enumerate(word)]
    return intersect(pda.without_limits, PDA(ends, start=0, accepting={len(word)}, check=False))


#: A leftmost derivation: its productions in order.
Derivation = tuple[Production, ...]


@dataclass(frozen=True, slots=True)
class Derivations:
    """The leftmost derivations of a word, those with fewer productions first.

    Attributes:
        found: the derivations, each as its productions in order. A selection is expanded as in
            :attr:`CFG.expanded`.
        complete: whether these are all; False if there are more than were requested (infinitely many, if symbols
            derive themselves without reading anything).
    """

    found: tuple[Derivation, ...]
    complete: bool


def derivations(cfg: CFG, word: Iterable[str], limit: int = 100) -> Derivations:
    """Return at most ``limit`` leftmost derivations of ``word``: one for each of its derivation trees."""
    alone = only_word(PDA.from_cfg(cfg), tuple(word))
    bodies = list_bodies(FlowGrammar(alone, Counters(())), *alone.start(), lambda one: one.production)
    # The automaton has one move for productions that differ in their texts alone.
    alike: dict[tuple[str, Word], list[Production]] = {}
    for one in cfg.expanded:
        alike.setdefault((one.head, one.body), []).append(one)
    rules = [
        (index, int(move is not None), [item for item in items if isinstance(item, int)], move)
        for index, group in bodies.items()
        for items, feature in group
        for move in (alike[feature.head, feature.body] if isinstance(feature, Production) else [feature])
    ]
    least = least_costs([rule[:3] for rule in rules])
    edges: dict[int, list[tuple[float, Feature | None, list[int]]]] = {}
    for index, price, children, move in rules:
        edges.setdefault(index, []).append((price, move, children))
    listed = list_cheapest(ROOT, lambda index: least.get(index, inf), edges.__getitem__) if ROOT in least else iter(())
    found = tuple(tuple(one for one in path if one is not None) for _, path in islice(listed, limit + 1))
    return Derivations(found[:limit], len(found) <= limit)
