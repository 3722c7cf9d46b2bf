"""All derivations of rules within their limits, as one acyclic graph on which they can be added up, compared and drawn.

Limits count and do not order. So what is left of a derivation depends on the multiset of symbols still pending and on
what the limits leave (:mod:`formal_llm.automata.lookahead.flow`), and a derivation is a path through such states: each
step rewrites one pending symbol. Symbols that no limit concerns are independent of the path, and of each other: such a
symbol has a node of its own, a child of the step that leaves it pending. A step with all its children is an *edge*; a
node is the sum, or the maximum, over its edges of the product over the children of each (an acyclic hypergraph: Goodman
1999, Semiring parsing; Huang and Chiang 2005, Better k-best parsing).

**Classes.** Terminals that may be used once and are read in the same places can replace each other. Of such a class a
state records only how many members are left, not which: 15 tools of six types make some hundred states, not 32,768. A
step reads a *slot* of the class, and which member is read there is decided afterwards. That is exact for any weights of
the members. Let e(k) be the sum over all sets of k members of the product of their weights (the elementary symmetric
polynomial). The k slots of a path are filled by the members of a set in any order, so together they are worth k! e(k).
The slot after the first j is therefore worth (j + 1) e(j + 1) / e(j): these factors multiply to k! e(k). With weights
of one that is n - j, the number of members left. For the maximum it is the weight of the best member but j.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.counting import find_cycles
from formal_llm.automata.lookahead.flow import ACCEPTING, FlowGrammar
from formal_llm.automata.lookahead.resources import ClassVectors
from formal_llm.automata.lookahead.stacks import Multisets
from formal_llm.automata.lookahead.ways import PlacedParts, least_taken
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.limits import Bound
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Production, find_reachable
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import Undecided

Ints = NDArray[np.int64]
#: What has a weight: a terminal, or a move by its production or, where it has none, by its transition.
Feature = str | Production | Transition


class ClassSlot(NamedTuple):
    """A place where any unused member of a class is read."""

    field: int


#: A terminal, a slot, or a symbol of the flow grammar by its index.
Item = str | ClassSlot | int
#: The symbol for the whole stack at the start.
ROOT = -1


class Rewriting(NamedTuple):
    """One step: a way to rewrite a symbol; ways that differ only in the member of a class are one.

    Attributes:
        symbol: the symbol that is rewritten.
        items: what takes its place, in order.
        features: the moves that it takes and the terminals that it reads outside of slots, by their numbers.
        times: how many ways are alike.
    """

    symbol: int
    items: tuple[Item, ...]
    features: tuple[int, ...]
    times: int = 1


class _Step(NamedTuple):
    """What a rewriting does to a state: what it takes, reads and leaves pending, and the nodes beside the path."""

    rewriting: Rewriting
    need: int
    reads: tuple[str, ...]
    slots: tuple[int, ...]
    pending: int
    children: tuple[int, ...]


#: A node: a symbol by its index, or a state (pending, left, needed).
NodeKey = int | tuple[int, int, int]
#: The end of every path.
END: NodeKey = (0, 0, 0)
#: A step, the nodes that follow (of a state the next one first, then those beside the path), and the uses of slots.
DerivationEdge = tuple[Rewriting, tuple[NodeKey, ...], tuple[int, ...]]


class _Node(NamedTuple):
    level: int
    edges: list[tuple[Rewriting, tuple[int, ...], tuple[int, ...]]]


class TerminalClass(NamedTuple):
    """A class of two terminals or more.

    Attributes:
        members: the terminals.
        features: for each member its features: itself, and the moves that read it.
        first: the number of the feature of its first slot use; use u of ``len(members)`` left is ``first + u - 1``.
    """

    members: tuple[str, ...]
    features: tuple[tuple[int, ...], ...]
    first: int


class Level(NamedTuple):
    """Nodes whose edges lead only to lower levels: the range of the nodes, of their edges, and where each begins."""

    nodes: slice
    edges: slice
    begins: Ints


@dataclass(frozen=True, eq=False)
class DerivationGraph:
    """The derivations of rules.

    Attributes:
        features: what has a weight; behind these are numbered the uses of slots, and one number without weight.
        classes: the classes, by the field of their slots.
        root: the node of all derivations; None where there are none. Node 0 is the end of every path.
        levels: the nodes above node 0, from below.
        parents: for each edge its node.
        children: for each edge its children, filled up with node 0.
        log_times: for each edge the logarithm of how many ways are alike.
        edge_features: for each edge its features, filled up with the last number.
        rewritings: for each edge its step.
        size: the number of features, slot uses included, without the last number.
    """

    features: tuple[Feature, ...]
    classes: Mapping[int, TerminalClass]
    root: int | None
    levels: tuple[Level, ...]
    parents: Ints
    children: Ints
    log_times: NDArray[np.float64]
    edge_features: Ints
    rewritings: tuple[Rewriting, ...]
    size: int

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return self.levels[-1].nodes.stop if self.levels else 1

    def slot_counts(self, path: Sequence[int]) -> dict[int, int]:
        """How many slots of each class the edges of a derivation read."""
        return count_slots([self.rewritings[edge] for edge in path])

    def build_word(self, path: Sequence[int], members: Mapping[int, Sequence[str]]) -> Word:
        """The word of a derivation, by its edges; see :func:`build_word`."""
        return build_word([self.rewritings[edge] for edge in path], members)


def count_slots(rewritings: Iterable[Rewriting]) -> dict[int, int]:
    """How many slots of each class rewritings read."""
    return Counter(item.field for one in rewritings for item in one.items if isinstance(item, ClassSlot))


def build_word(rewritings: Sequence[Rewriting], members: Mapping[int, Sequence[str]]) -> Word:
    """The word of a derivation.

    Each rewriting belongs to some occurrence of its symbol. Which one does not matter as long as those of one symbol
    are used up in their order: by the abelian property of such rewriting every order uses up all of them, so that
    derivations and lists of rewritings correspond one to one.

    Args:
        rewritings: its steps, in the order in which they were chosen.
        members: for each class the members that fill its slots, from left to right.
    """
    of_symbol: dict[int, list[tuple[Item, ...]]] = {}
    for rewriting in reversed(rewritings):
        of_symbol.setdefault(rewriting.symbol, []).append(rewriting.items)
    fillers = {field: iter(names) for field, names in members.items()}
    word: list[str] = []
    todo: list[Item] = [ROOT]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            word.append(item)
        elif isinstance(item, ClassSlot):
            word.append(next(fillers[item.field]))
        else:
            todo.extend(reversed(of_symbol[item].pop()))
    return tuple(word)


class DerivationStates:
    """The derivations of an automaton within bounds: their states, and the steps from each.

    Args:
        pda: the automaton.
        bounds: the bounds.
        has_weight: the feature of a move; None where it has none. Terminals always have one.

    Attributes:
        numbers: the number of each feature.
        classes: the classes of terminals, by the field of their slots.
        rewritings: the steps of each symbol, :data:`ROOT` being the start.
        touched: the symbols whose completions a limit may concern.
        start_left: what the limits leave at the start.
        size: the number of features, slot uses included.
    """

    def __init__(self, pda: PDA, bounds: Sequence[Bound], has_weight: Callable[[Transition], Feature | None]) -> None:
        self.counters = Counters(bounds)
        self.grammar = FlowGrammar(pda, self.counters, skips_reads=False)  # each transition may have a weight
        self.numbers: dict[Feature, int] = {name: number for number, name in enumerate(pda.terminals)}
        self._has_weight = has_weight
        self._tracked = {*self.counters.need, *self.counters.dues}
        ways = self._substitute_links(self._list_ways())
        ways = {index: ways[index] for index in find_reachable([ROOT], lambda index: _symbols_of(ways[index]))}
        shared = self._find_shared_features(ways)
        self._classes = ClassVectors(self.counters, self._placed_ways(ways, shared), (), exchange=True)
        members: dict[int, list[str]] = {}
        for name, field in self._classes.class_of.items():
            members.setdefault(field, []).append(name)
        self._fields = {
            name: field for field, names in members.items() if len(names) > 1 for name in names if name in shared
        }
        self.rewritings = self._substitute_choices(self._group_ways(ways))
        self.classes: dict[int, TerminalClass] = {}
        first = len(self.numbers)
        for field in dict.fromkeys(self._fields.values()):
            names = tuple(name for name in members[field] if name in self._fields)
            features = tuple((self.numbers[name], *shared[name]) for name in names)
            self.classes[field] = TerminalClass(names, features, first)
            first += len(names)
        self.size = first
        parts = {
            index: [self._reads_and_symbols(rewriting) for rewriting in group]
            for index, group in self.rewritings.items()
            if index != ROOT
        }
        symbols = self.grammar.symbols
        self._cyclic, _ = find_cycles(symbols, parts, self._classes.takes)  # type: ignore[arg-type]
        self.touched = self._find_touched(parts)
        least = least_taken(symbols, parts, self._classes.with_total)
        total = self._classes.total_field
        self._least = {
            index: (self._classes.pack({n: a for n, a in amounts.items() if n != total}), amounts.get(total, 0))
            for index, amounts in least.items()
        }
        self._multisets = Multisets(self.grammar)
        self._steps: dict[int, tuple[_Step, ...]] = {}
        self.start_left = self._classes.vector_of(self.counters.remaining)

    # -- rewritings ---------------------------------------------------------------------------------------------

    def _list_ways(self) -> dict[int, list[Rewriting]]:
        """The ways of all symbols that the start leads to, and of the start itself."""
        start = self.grammar.pda.start()
        roots: list[Rewriting] = []
        todo = [((), start.state, start.stack)]
        while todo:
            items, state, stack = todo.pop()
            for symbol, target in self.grammar.resolve_top(state, stack.top, stack.rest):
                if symbol.least_steps == INFINITE:
                    continue
                longer: tuple[Item, ...] = (*items, symbol.index)
                if target is ACCEPTING:
                    roots.append(Rewriting(ROOT, longer, ()))
                else:
                    todo.append((longer, target, stack.rest))  # type: ignore[arg-type]
        ways = {ROOT: roots}
        for index in self.grammar.reachable_symbols(item for one in roots for item in one.items):  # type: ignore[misc]
            group = ways[index] = []
            for transition, way in self.grammar.live_moves(self.grammar.symbols[index]):
                feature = None if transition is None else self._has_weight(transition)
                number = () if feature is None else (self.numbers.setdefault(feature, len(self.numbers)),)
                reads = () if way.read is None else (way.read,)
                group.append(Rewriting(index, (*reads, *way.children), number))
        return ways

    def _by_least_steps(self, ways: Mapping[int, object]) -> list[int]:
        """The symbols, each behind those that all its completions contain."""
        symbols = self.grammar.symbols
        return sorted((index for index in ways if index != ROOT), key=lambda index: symbols[index].least_steps)

    def _substitute_links(self, ways: Mapping[int, list[Rewriting]]) -> dict[int, list[Rewriting]]:
        """Put symbols with a single way in their places, where that leaves one symbol at most, and reads no more."""
        inlined: dict[int, Rewriting] = {}
        for index in self._by_least_steps(ways):
            if len(ways[index]) == 1:
                only = _inline_rewritings(ways[index][0], inlined)
                left = sum(isinstance(item, int) for item in only.items)
                if not left or (left == 1 and len(only.items) <= 2):
                    inlined[index] = only
        return {index: [_inline_rewritings(one, inlined) for one in group] for index, group in ways.items()}

    def _substitute_choices(self, groups: Mapping[int, list[Rewriting]]) -> dict[int, list[Rewriting]]:
        """Put symbols that only read, and in one way, in their places: a slot is one way."""
        inlined: dict[int, Rewriting] = {}
        for index in self._by_least_steps(groups):
            if len(groups[index]) == 1:
                only = _inline_rewritings(groups[index][0], inlined)
                if not any(isinstance(item, int) for item in only.items):
                    inlined[index] = only
        whole = {index: [_inline_rewritings(one, inlined) for one in group] for index, group in groups.items()}
        return {index: whole[index] for index in find_reachable([ROOT], lambda index: _symbols_of(whole[index]))}

    def _find_shared_features(self, ways: Mapping[int, list[Rewriting]]) -> dict[str, tuple[int, ...]]:
        """The moves with which each terminal is read, where they are the same wherever it is read alone."""
        shared: dict[str, tuple[int, ...]] = {}
        differing: set[str] = set()
        for rewriting in (one for group in ways.values() for one in group):
            tracked = [item for item in rewriting.items if isinstance(item, str) and item in self._tracked]
            for name in tracked:
                features = rewriting.features
                if len(tracked) > 1 or shared.setdefault(name, features) != features:
                    differing.add(name)
        return {name: features for name, features in shared.items() if name not in differing}

    def _placed_ways(
        self, ways: Mapping[int, list[Rewriting]], shared: Mapping[str, object]
    ) -> dict[int, list[PlacedParts]]:
        """The ways as classes see them: terminals that are read at equal places can replace each other."""
        placed: dict[int, list[PlacedParts]] = {}
        for index, group in ways.items():
            for rewriting in group:
                tracked = tuple(item for item in rewriting.items if isinstance(item, str) and item in self._tracked)
                context: Hashable = (rewriting.items, rewriting.features)
                if len(tracked) == 1 and tracked[0] in shared:
                    context = tuple(None if item == tracked[0] else item for item in rewriting.items)
                placed.setdefault(index, []).append((tracked, (), context))
        return placed

    def _group_ways(self, ways: Mapping[int, list[Rewriting]]) -> dict[int, list[Rewriting]]:
        """The ways with slots for members of classes, those alike together."""
        groups: dict[int, list[Rewriting]] = {}
        for index, group in ways.items():
            alike: dict[Rewriting, Counter[str | None]] = {}
            for rewriting in group:
                read = next((item for item in rewriting.items if isinstance(item, str) and item in self._fields), None)
                slotted = self._slot_members(rewriting)
                alike.setdefault(slotted, Counter())[read] += rewriting.times
            groups[index] = [one._replace(times=max(reads.values())) for one, reads in alike.items()]
        return groups

    def _slot_members(self, rewriting: Rewriting) -> Rewriting:
        items: list[Item] = []
        features: list[int] = []
        slotted = False
        for item in rewriting.items:
            if not isinstance(item, str):
                items.append(item)
            elif item in self._fields:
                items.append(ClassSlot(self._fields[item]))
                slotted = True
            else:
                items.append(item)
                features.append(self.numbers[item])
        if not slotted:  # the moves that read a member are the member's own features
            features += rewriting.features
        return Rewriting(rewriting.symbol, tuple(items), tuple(sorted(features)))

    def _reads_and_symbols(self, rewriting: Rewriting) -> PlacedParts:
        """What a rewriting takes: the tracked terminals, for a slot any member, and the symbols that it leaves."""
        reads = [
            self.classes[item.field].members[0] if isinstance(item, ClassSlot) else item for item in rewriting.items
        ]
        names = tuple(name for name in reads if isinstance(name, str))
        return names, tuple(sorted(item for item in reads if isinstance(item, int))), 0

    def _find_touched(self, parts: Mapping[int, Sequence[PlacedParts]]) -> set[int]:
        """The symbols whose completions a limit may concern."""
        users: dict[int, list[int]] = {}
        first = []
        for index, group in parts.items():
            for reads, symbols, _ in group:
                for child in symbols:
                    users.setdefault(child, []).append(index)
                if not self._tracked.isdisjoint(reads):
                    first.append(index)
        return set(find_reachable(first, lambda index: users.get(index, ())))

    # -- states -------------------------------------------------------------------------------------------------

    def build(self, max_states: int, *, is_empty: bool = False) -> DerivationGraph:
        """Explore all states from the start, depth first; what has no way to an end is left out.

        The caller has made sure that there are finitely many derivations.

        Args:
            max_states: the most nodes.
            is_empty: whether it is known that there are no derivations.

        Raises:
            Undecided: there are more nodes.
        """
        if is_empty:
            return self._build_graph([_Node(0, [])], None)
        nodes: dict[NodeKey, int | None] = {END: 0}
        made: list[_Node] = [_Node(0, [])]
        root: NodeKey = ROOT
        frames = [self._open_frame(root)]
        on_path = {root}
        while frames:
            key, edges, unknown = frames[-1]
            child = next((child for child in unknown if child not in nodes), None)
            if child is None:
                live: list[tuple[Rewriting, tuple[int, ...], tuple[int, ...]]] = []
                for rewriting, keys, slots in edges:
                    children = tuple([number for one in keys if (number := nodes.get(one)) is not None])
                    if len(children) == len(keys):
                        live.append((rewriting, children, slots))
                nodes[key] = len(made) if live else None
                if live:
                    level = 1 + max((made[child].level for _, children, _ in live for child in children), default=0)
                    made.append(_Node(level, live))
                frames.pop()
                on_path.discard(key)
            elif child not in on_path:  # a cycle would give infinitely many derivations: nothing completes it
                if len(made) + len(frames) > max_states:
                    raise Undecided("the plans have too many states to be weighed; raise max_states")
                on_path.add(child)
                frames.append(self._open_frame(child))
        return self._build_graph(made, nodes[root])

    def _open_frame(self, key: NodeKey) -> tuple[NodeKey, list[DerivationEdge], Iterator[NodeKey]]:
        symbol = key if isinstance(key, int) else self.list_pending(key[0])[0][0]
        # Nothing completes a cycle, since there are finitely many derivations.
        edges = [] if symbol in self._cyclic else list(self.list_edges(key))
        return key, edges, iter([child for _, children, _ in edges for child in children])

    def list_edges(self, key: NodeKey) -> Iterator[DerivationEdge]:
        """The edges of a node: the start, a symbol that no limit concerns, or a state."""
        if not isinstance(key, int):
            pending, left, needed = key
            symbol, _, unit = next(self._multisets.list_items(pending))
            if self._is_affordable(pending, left):
                yield from self._list_successors(symbol.index, pending - unit, left, needed)
        elif key == ROOT:
            yield from self._list_successors(ROOT, 0, self.start_left, self.counters.needed)
        else:
            for step in self._list_steps(key):
                yield step.rewriting, step.children, ()

    def _list_successors(self, index: int, others: int, left: int, needed: int) -> Iterator[DerivationEdge]:
        """The edges of a state that rewrite one symbol; what is pending besides stays so."""
        for step in self._list_steps(index):
            after = left - step.need
            if after & self._classes.guard != self._classes.guard:
                continue
            slots: list[int] = []
            before = left
            for field in step.slots:
                slots.append(self.classes[field].first + self._classes.left(before, field) - 1)
                before -= self._classes.pack({field: 1})
            due = self.counters.pay_all(step.reads, needed)
            pending = others + step.pending
            if pending:
                yield step.rewriting, ((pending, after, due), *step.children), tuple(slots)
            elif not due:
                yield step.rewriting, (END, *step.children), tuple(slots)

    def list_pending(self, pending: int) -> list[tuple[int, int]]:
        """The symbols of a packed multiset, the one that is rewritten next first, with their counts."""
        return [(symbol.index, count) for symbol, count, _ in self._multisets.list_items(pending)]

    def amounts_left(self, left: int) -> list[int]:
        """What is left of each field of the limits."""
        return self._classes.unpack(left)

    def amounts_taken(self, rewriting: Rewriting) -> Mapping[int, int]:
        """What a step takes from each field of the limits."""
        names, _, _ = self._reads_and_symbols(rewriting)
        amounts = self._classes.with_total(names)
        return {field: amount for field, amount in amounts.items() if field != self._classes.total_field}

    def list_symbols(self, rewriting: Rewriting) -> list[int]:
        """The symbols that a step leaves."""
        return [item for item in rewriting.items if isinstance(item, int)]

    def _list_steps(self, index: int) -> tuple[_Step, ...]:
        steps = self._steps.get(index)
        if steps is None:
            steps = self._steps[index] = tuple(map(self._make_step, self.rewritings[index]))
        return steps

    def _make_step(self, rewriting: Rewriting) -> _Step:
        names, symbols, _ = self._reads_and_symbols(rewriting)
        slots = tuple(item.field for item in rewriting.items if isinstance(item, ClassSlot))
        pending = sum(self._multisets.unit_of(child) for child in symbols if child in self.touched)
        children = tuple(child for child in symbols if child not in self.touched)
        return _Step(rewriting, self._classes.pack_reads(names), names, slots, pending, children)

    def _is_affordable(self, pending: int, left: int) -> bool:
        """Whether what all pending symbols take at least is left; the total first, so that no field runs over."""
        spent, least_sum = self._classes.total_left(left), 0
        for symbol, count, _ in self._multisets.list_items(pending):
            least, total = self._least[symbol.index]
            spent -= total * count
            if spent < 0:
                return False
            least_sum += least * count
        return (left - least_sum) & self._classes.guard == self._classes.guard

    def _build_graph(self, made: Sequence[_Node], root: int | None) -> DerivationGraph:
        """Number the nodes by their levels, and write their edges into arrays."""
        order = sorted(range(len(made)), key=lambda node: made[node].level)
        number = {node: place for place, node in enumerate(order)}
        edges = [(place, *edge) for place, node in enumerate(order) for edge in made[node].edges]
        parents = np.array([place for place, *_ in edges], dtype=np.int64)
        children = _as_table([[number[i] for i in ids] for _, _, ids, _ in edges], 0)
        features = _as_table([(*one.features, *slots) for _, one, _, slots in edges], self.size)
        levels = []
        heights = np.array([made[node].level for node in order])
        for height in range(1, int(heights[-1]) + 1):
            nodes = slice(*np.searchsorted(heights, [height, height + 1]).tolist())
            span = slice(*np.searchsorted(parents, [nodes.start, nodes.stop]).tolist())
            begins = np.searchsorted(parents[span], np.arange(nodes.start, nodes.stop))
            levels.append(Level(nodes, span, begins))
        return DerivationGraph(
            tuple(self.numbers), self.classes, None if root is None else number[root], tuple(levels), parents, children,
            np.log([float(one.times) for _, one, _, _ in edges]), features, tuple(one for _, one, _, _ in edges),
            self.size,
        )  # fmt: skip


def _as_table(rows: Sequence[Sequence[int]], fill: int) -> Ints:
    """Rows of different lengths as an array, filled up at their ends."""
    table = np.full((len(rows), max(map(len, rows), default=0)), fill, dtype=np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def _symbols_of(group: Sequence[Rewriting]) -> list[int]:
    return [item for one in group for item in one.items if isinstance(item, int)]


def _inline_rewritings(rewriting: Rewriting, inlined: Mapping[int, Rewriting]) -> Rewriting:
    """A rewriting with those of other symbols in their places."""
    if not any(isinstance(item, int) and item in inlined for item in rewriting.items):
        return rewriting
    items: list[Item] = []
    features = list(rewriting.features)
    times = rewriting.times
    for item in rewriting.items:
        inner = inlined.get(item) if isinstance(item, int) else None
        if inner is None:
            items.append(item)
        else:
            items += inner.items
            features += inner.features
            times *= inner.times
    return Rewriting(rewriting.symbol, tuple(items), tuple(sorted(features)), times)
