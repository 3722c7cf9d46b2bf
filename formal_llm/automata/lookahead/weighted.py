"""Rules with weights: a distribution over plans, with its sum, its best plans, exact samples and expectations.

A *score* is a log-weight of a terminal or a move. The weight of a derivation is the exponential of the sum of the
scores of all terminals that it reads and all moves that it takes; its probability is that weight over the sum of all
(:meth:`WeightedRules.log_partition`). Everything else follows from sums over one graph of all derivations
(:mod:`formal_llm.automata.lookahead.derivations`)::

    rules = WeightedRules(cfg, {"captioning": 2.0, "translation": 1.5})
    rules.best().word           # the plan with the highest weight
    rules.sample(random.Random(0), 100)
    rules.marginals()["captioning"]

Where the rules are ambiguous, a plan has several derivations: samples and probabilities are those of plans, with all
their derivations; the best plan is the one with the best derivation.

Sources: Goodman 1999, Semiring parsing (one algorithm for sums and maxima); Li and Eisner 2009, First- and second-order
expectation semirings (expectations and their gradients); Huang and Chiang 2005, Better k-best parsing.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count, islice, pairwise, permutations, product
from math import inf, isnan, lgamma
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formal_llm.automata.lookahead.derivations import (
    DerivationGraph,
    DerivationStates,
    Feature,
    TerminalClass,
    build_word,
    count_slots,
)
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.weighted_search import WeightedSearch
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.limits import Bound, Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import product as intersect
from formal_llm.automata.models.product import project_transition
from formal_llm.automata.models.rules import Source
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError, Undecided, did_you_mean

#: Numbers of a real kind, or of a complex kind where a derivative is carried in the imaginary part.
_Numbers: TypeAlias = "NDArray[np.inexact[Any]]"
#: The step of a derivative by complex numbers; it is exact, since nothing is subtracted (Squire and Trapp 1998).
_STEP = 1e-30


class ScoredWord(NamedTuple):
    """A plan and its log-weight: the sum of the scores of one derivation."""

    word: Word
    log_weight: float


class Expectation(NamedTuple):
    """The expectation of an additive reward, and its derivative by each score: the covariance with its count."""

    mean: float
    gradient: Mapping[Feature, float]


class EstimatedSample(NamedTuple):
    """Plans drawn approximately in proportion to their weights.

    Attributes:
        words: the plans.
        effective: how many independent samples the draws are worth among which the plans were chosen (the effective
            sample size of Kong 1992). Where it is small, few plans represent all.
        log_partition: the logarithm of an unbiased estimate of the sum of all weights.
    """

    words: list[Word]
    effective: float
    log_partition: float


class WeightedRules:
    """The distribution over plans that rules with scores define.

    Where there are too many states to list all derivations, the best plan is still found exactly, by a search
    (:mod:`formal_llm.automata.lookahead.weighted_search`), and plans can be drawn approximately
    (:meth:`estimate_sample`). All other questions raise ``Undecided``.

    Args:
        rules: a grammar, a flowchart, a behaviour or a pushdown automaton, with its limits; or a lookahead over them.
        scores: log-weights of terminals, and of moves: of productions, or of transitions that come from none. What is
            not named has 0; what has ``-inf`` does not occur.
        limits: more limits.
        moves: whether all moves may be scored, and have marginals; otherwise only those in ``scores``.
        max_length: the most terminals of a plan.
        max_states: how many states the graph of all derivations may have, and a search for the best plan may visit.

    Raises:
        AutomatonError: a score is of something that the rules do not have; the rules are no pushdown automaton.
        InfiniteLanguage: there are infinitely many derivations; give ``max_length``, or limits.
        ValueError: a score is not a number, or is infinite.
    """

    def __init__(
        self,
        rules: Source | Lookahead,
        scores: Mapping[Feature, float] | None = None,
        *,
        limits: Limits | None = None,
        moves: bool = False,
        max_length: int | None = None,
        max_states: int = 200_000,
    ) -> None:
        if isinstance(rules, Lookahead) and limits is None:
            lookahead = rules
        else:
            source = rules.source if isinstance(rules, Lookahead) else rules
            lookahead = Lookahead(source, limits, max_states=max_states)
        if lookahead.pda is None:
            raise AutomatonError("weights need a grammar or a pushdown automaton")
        self._lookahead = lookahead
        self._pda = lookahead.pda
        self._max_states = max_states
        self._bounds = lookahead.bounds
        if max_length is not None:
            each = dict.fromkeys(self._pda.terminals, 1)
            self._bounds = (*self._bounds, Bound(each, 0, max_length, f"length <= {max_length}"))
        self._scored = None if moves else {one for one in scores or () if not isinstance(one, str)}
        # Counting first: it raises where there are infinitely many, and then no cycle can be completed.
        self._listed: DerivationGraph | Undecided
        try:
            is_empty = not lookahead.count(of="derivations", max_length=max_length)
            self._derivations = DerivationStates(self._pda, self._bounds, self._feature_of)
            self._listed = self._derivations.build(max_states, is_empty=is_empty)
        except Undecided as error:
            self._derivations = DerivationStates(self._pda, self._bounds, self._feature_of)
            self._listed = error
        self._set_scores(scores or {})

    @property
    def is_listed(self) -> bool:
        """Whether all derivations are listed; otherwise only the best plan is found, and plans are drawn roughly."""
        return isinstance(self._listed, DerivationGraph)

    @property
    def _graph(self) -> DerivationGraph:
        if isinstance(self._listed, Undecided):
            raise Undecided(f"{self._listed}; without that, best() and estimate_sample() are possible")
        return self._listed

    def _feature_of(self, move: Transition) -> Feature | None:
        feature = move.production or move
        return feature if self._scored is None or feature in self._scored else None

    def _set_scores(self, scores: Mapping[Feature, float]) -> None:
        numbers = self._derivations.numbers
        self._scores = np.zeros(len(numbers))
        for feature, score in scores.items():
            if feature not in numbers:
                near = did_you_mean(feature, self._pda.terminals) if isinstance(feature, str) else None
                what = "is no terminal" if isinstance(feature, str) else "is no move"
                raise AutomatonError(f"{feature} {what} of the rules" + (f"; did you mean {near}?" if near else ""))
            if isnan(score) or score == inf:
                raise ValueError(f"the score of {feature} is {score}; it is a number, or -inf")
            self._scores[numbers[feature]] = score

    def with_scores(self, scores: Mapping[Feature, float]) -> WeightedRules:
        """Return the same rules with other scores; the graph of derivations is shared.

        Raises:
            AutomatonError: a score is of something that the rules do not have, or of a move that was not declared.
            ValueError: a score is not a number, or is infinite.
        """
        made = object.__new__(WeightedRules)
        made._lookahead, made._pda, made._bounds, made._scored = self._lookahead, self._pda, self._bounds, self._scored
        made._derivations, made._listed, made._max_states = self._derivations, self._listed, self._max_states
        made._set_scores(scores)
        return made

    def __repr__(self) -> str:
        return f"<WeightedRules over {self._pda!r}>"

    @property
    def scores(self) -> dict[Feature, float]:
        """The score of each terminal, and of each move that may have one."""
        return dict(zip(self._derivations.numbers, self._scores.tolist(), strict=True))

    # -- sums ---------------------------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> _Sums:
        return _Sums(self._graph, self._scores)

    def log_partition(self) -> float:
        """Return the logarithm of the sum of the weights of all derivations; ``-inf`` where there are none."""
        return float(self._sums.log_partition)

    def marginals(self) -> dict[Feature, float]:
        """Return how often each terminal and each scored move occurs in a plan, in the mean.

        This is the gradient of :meth:`log_partition`.

        Raises:
            ValueError: there is no plan.
        """
        self._require_plans()
        return dict(zip(self._graph.features, self._sums.expected_counts.tolist(), strict=True))

    def entropy(self) -> float:
        """Return the entropy of the distribution over derivations, in nats.

        Raises:
            ValueError: there is no plan.
        """
        self._require_plans()
        counts = self._sums.expected_counts
        return self.log_partition() - float(np.sum(counts * np.where(counts > 0, self._scores, 0.0)))

    def expectation(self, values: Mapping[Feature, float]) -> Expectation:
        """Return the expectation of a reward that adds up values of terminals and moves, and its gradient.

        Args:
            values: what each occurrence of a terminal or a move adds; 0 for what is not named.

        Raises:
            AutomatonError: a value is of something that has no score.
            ValueError: there is no plan.
        """
        self._require_plans()
        direction = self.with_scores(values)._scores
        counts = _Sums(self._graph, self._scores + 1j * _STEP * direction).expected_counts
        gradient = dict(zip(self._graph.features, (counts.imag / _STEP).tolist(), strict=True))
        return Expectation(float(counts.real @ direction), gradient)

    def _require_plans(self) -> None:
        if self.log_partition() == -inf:
            raise ValueError("there is no plan with a weight above 0")

    # -- single plans -------------------------------------------------------------------------------------------

    def best(self) -> ScoredWord | None:
        """Return the plan with the highest weight; None where there is no plan.

        Raises:
            Undecided: there are more states than ``max_states``, and as many were visited in vain.
        """
        if self.is_listed:
            return next(self._iter_best(), None)
        try:
            found = self._search.find_best()
        except Undecided:
            # No bound ends the search where there is no plan at all; lookahead may know that there is none.
            if self._lookahead.completable().value == "no":
                return None
            raise
        return None if found is None else ScoredWord(*found)

    def best_of(self, k: int) -> list[ScoredWord]:
        """Return the ``k`` plans with the highest weights, the best first; fewer where there are no more."""
        return list(islice(self._iter_best(), k))

    def sample(self, rng: random.Random, n: int) -> list[Word]:
        """Draw ``n`` plans from the distribution, independently of each other.

        Raises:
            Undecided: there are more states than ``max_states``; see :meth:`estimate_sample`.
            ValueError: there is no plan.
        """
        self._require_plans()
        return [self._sampler.draw_word(rng) for _ in range(n)]

    def estimate_sample(self, rng: random.Random, n: int, *, draws: int | None = None) -> EstimatedSample:
        """Draw ``n`` plans approximately from the distribution, whatever the number of states.

        Args:
            rng: where chance comes from; the same state gives the same plans.
            n: how many.
            draws: among how many draws they are chosen; by default ten for each, and 1,000 at least.

        Raises:
            ValueError: no draw led to a plan.
        """
        subsets = {
            field: _SubsetSums(_member_scores(one, self._scores)) for field, one in self._derivations.classes.items()
        }
        slots = [float(value) for one in subsets.values() for value in one.slots]
        drawn = [self._search.draw_derivation(rng, slots) for _ in range(draws or max(10 * n, 1_000))]
        logs = np.array([importance for _, importance in drawn])
        top = float(logs.max())
        if top == -inf:
            raise ValueError(f"none of {len(drawn):,} draws led to a plan")
        shares = np.exp(logs - top)
        words = []
        for way, _ in rng.choices(drawn, shares.tolist(), k=n):
            members = {
                field: [self._derivations.classes[field].members[place] for place in subsets[field].draw(size, rng)]
                for field, size in count_slots(way).items()
            }
            words.append(build_word(way, members))
        effective = float(shares.sum() ** 2 / (shares**2).sum())
        return EstimatedSample(words, effective, top + float(np.log(shares.mean())))

    @cached_property
    def _search(self) -> WeightedSearch:
        classes = self._derivations.classes
        members = {field: _member_scores(one, self._scores).tolist() for field, one in classes.items()}
        return WeightedSearch(self._derivations, self._scores.tolist(), members, self._max_states)

    @cached_property
    def _sampler(self) -> _Sampler:
        return _Sampler(self._graph, self._sums)

    def log_probability(self, word: Sequence[str]) -> float:
        """Return the logarithm of the probability of a plan, over all its derivations; ``-inf`` if it is not valid.

        Raises:
            ValueError: there is no plan.
        """
        self._require_plans()
        word = tuple(word)
        if not all(name in self._pda.terminals for name in word) or not all(one.holds(word) for one in self._bounds):
            return -inf
        # All derivations of this word alone: those of the product with the automaton that reads only it.
        alone = intersect(self._pda.without_limits, _only_word(word))
        if Lookahead(alone).completable().value == "no":
            return -inf
        derivations = DerivationStates(alone, (), lambda move: self._feature_of(project_transition(move)))
        graph = derivations.build(self._max_states)
        scores = self.scores
        weighed = _Sums(graph, np.array([scores[feature] for feature in graph.features]))
        return weighed.log_partition - self.log_partition()

    def _iter_best(self) -> Iterator[ScoredWord]:
        """The plans from the best on."""
        graph = self._graph
        if graph.root is None:
            return
        queue: list[tuple[float, int, Iterator[ScoredWord], ScoredWord | None]] = []
        turn = count()
        paths = self._iter_best_paths()
        seen: set[Word] = set()

        def take_path() -> None:
            found = next(paths, None)
            if found is not None:
                weight, path = found
                heapq.heappush(queue, (-weight, next(turn), self._iter_fillings(path), None))

        take_path()
        while queue:
            _, _, fillings, word = heapq.heappop(queue)
            if word is None:
                take_path()  # the next path is worth at most what this one is
            elif word.word not in seen:
                seen.add(word.word)
                yield word
            following = next(fillings, None)
            if following is not None:
                heapq.heappush(queue, (-following.log_weight, next(turn), fillings, following))

    def _iter_best_paths(self) -> Iterator[tuple[float, list[int]]]:
        """The paths of derivations, each with the weight of its best word, from the best on: A* with the exact rest."""
        graph = self._graph
        best_members = [np.sort(_member_scores(one, self._scores)) for one in graph.classes.values()]
        slots = np.concatenate([self._scores[:0], *best_members])  # with u members left, all better ones are used
        values, totals = _weigh_nodes(graph, _edge_weights(graph, self._scores, slots), best=True)
        assert graph.root is not None
        if values[graph.root] == -inf:
            return
        begins = np.searchsorted(graph.parents, np.arange(graph.node_count + 1)).tolist()
        rest, worth = values.tolist(), totals.tolist()
        children = [[child for child in row if child] for row in graph.children.tolist()]
        turn = count()
        queue: list[tuple[float, int, tuple[int, ...], _Path | None]] = [(-rest[graph.root], 0, (graph.root,), None)]
        while queue:
            weight, _, todo, path = heapq.heappop(queue)
            if not todo:
                yield -weight, _list_path(path)
                continue
            node = todo[-1]
            for edge in range(begins[node], begins[node + 1]):
                if worth[edge] > -inf:
                    longer = weight + rest[node] - worth[edge]
                    heapq.heappush(queue, (longer, next(turn), (*todo[:-1], *children[edge]), _Path(edge, path)))

    def _iter_fillings(self, path: Sequence[int]) -> Iterator[ScoredWord]:
        """The words of a path, from the best on: which members of classes fill its slots, and in which order."""
        graph = self._graph
        features = graph.edge_features[np.asarray(path)]
        plain = float(self._scores[features[features < len(self._scores)]].sum())
        counts = graph.slot_counts(path)
        classes = [graph.classes[field] for field in counts]
        subsets = [
            _SubsetsInOrder(_member_scores(one, self._scores), size)
            for one, size in zip(classes, counts.values(), strict=True)
        ]
        for worth, chosen in _products_in_order(subsets):
            names = [[one.members[place] for place in places] for one, places in zip(classes, chosen, strict=True)]
            for orders in product(*map(permutations, names)):
                yield ScoredWord(graph.build_word(path, dict(zip(counts, orders, strict=True))), plain + worth)


class _Path(NamedTuple):
    """Edges of a derivation as a linked list, the last first."""

    edge: int
    before: _Path | None


def _list_path(path: _Path | None) -> list[int]:
    edges = []
    while path is not None:
        edges.append(path.edge)
        path = path.before
    return edges[::-1]


def _only_word(word: Word) -> PDA:
    """The finite automaton of one word."""
    ends = [(place, name, None, place + 1) for place, name in enumerate(word)]
    return PDA(ends, start=0, accepting={len(word)})


# -- sums and maxima over the graph -----------------------------------------------------------------------------------


def _edge_weights(graph: DerivationGraph, scores: _Numbers, slots: _Numbers) -> _Numbers:
    """The log-weight of each edge by itself, from the scores of features and the values of slot uses."""
    weights: _Numbers = np.concatenate([scores, slots, [0.0]])[graph.edge_features].sum(axis=1)
    return weights


def _member_scores(one: TerminalClass, scores: _Numbers) -> _Numbers:
    """The score of each member of a class: of itself, and of the moves that read it."""
    members: _Numbers = np.array([scores[list(features)].sum() for features in one.features])
    return members


def _log_of(values: _Numbers) -> _Numbers:
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: _Numbers = np.where(values == 0, -inf, np.log(values))
        return logs


def _log_add(one: _Numbers, other: _Numbers) -> _Numbers:
    top = np.maximum(one.real, other.real)
    top[top == -inf] = 0.0
    added: _Numbers = _log_of(np.exp(one - top) + np.exp(other - top)) + top
    return added


def _weigh_nodes(graph: DerivationGraph, weights: _Numbers, *, best: bool) -> tuple[_Numbers, _Numbers]:
    """For each node the log-weight of all its derivations, or of the best; and the same for each edge."""
    values: _Numbers = np.zeros(graph.node_count, dtype=weights.dtype)
    totals: _Numbers = np.zeros(len(graph.parents), dtype=weights.dtype)
    for nodes, edges, begins in graph.levels:
        here = totals[edges] = weights[edges] + values[graph.children[edges]].sum(axis=1)
        top = np.maximum.reduceat(here.real, begins)
        if best:
            values[nodes] = top
            continue
        top[top == -inf] = 0.0
        widths = np.diff(np.append(begins, len(here)))
        values[nodes] = _log_of(np.add.reduceat(np.exp(here - np.repeat(top, widths)), begins)) + top
    return values, totals


class _SubsetSums:
    """The sums over all sets of members of one class, by their size.

    Attributes:
        table: in row i, column k the logarithm of the sum over the sets of k of the first i members.
        slots: for each use of a slot its value, by how many members are left: with u of n left, at u - 1.
    """

    def __init__(self, scores: _Numbers) -> None:
        self.scores = scores
        size = len(scores)
        self.table: _Numbers = np.full((size + 1, size + 1), -inf, dtype=scores.dtype)
        self.table[:, 0] = 0.0
        for place, score in enumerate(scores):
            self.table[place + 1, 1:] = _log_add(self.table[place, 1:], score + self.table[place, :-1])
        whole = self.table[size] + np.array([lgamma(k + 1) for k in range(size + 1)])
        with np.errstate(invalid="ignore"):
            self.slots: _Numbers = np.where(whole[1:].real == -inf, -inf, whole[1:] - whole[:-1])[::-1]

    def expected_members(self, uses: _Numbers) -> _Numbers:
        """How often each member is read, in the mean, from how often each use of a slot is taken.

        The derivative of the table by the scores, backwards through its rows.
        """
        # With u left, as in slots; exactly k slots are used as often as the k-th is and the next is not.
        at_least = np.append(uses[::-1], 0.0)
        exactly = np.concatenate([[0.0], at_least[:-1] - at_least[1:]])
        counts: _Numbers = np.zeros(len(self.scores), dtype=uses.dtype)
        for place in range(len(self.scores) - 1, -1, -1):
            taken = exactly[1:] * self.share_with(place)
            counts[place] = taken.sum()
            exactly[1:] -= taken
            exactly[:-1] += taken
        return counts

    def share_with(self, place: int) -> _Numbers:
        """For each size from 1: the share of the sets of the first members that contain the last of them."""
        row = self.table[place + 1, 1:]
        with np.errstate(invalid="ignore"):
            return np.where(row.real == -inf, 0.0, np.exp(self.scores[place] + self.table[place, :-1] - row))

    def draw(self, size: int, rng: random.Random) -> list[int]:
        """Draw a set of members in proportion to its weight, in random order."""
        chosen = []
        for place in range(len(self.scores) - 1, -1, -1):
            if size and rng.random() < self._shares[place][size - 1]:
                chosen.append(place)
                size -= 1
        rng.shuffle(chosen)
        return chosen

    @cached_property
    def _shares(self) -> list[list[float]]:
        return [self.share_with(place).tolist() for place in range(len(self.scores))]


class _Sums:
    """The sums over all derivations under certain scores."""

    def __init__(self, graph: DerivationGraph, scores: _Numbers) -> None:
        self._graph = graph
        self._size = len(scores)
        self.subsets = {field: _SubsetSums(_member_scores(one, scores)) for field, one in graph.classes.items()}
        slots = np.concatenate([scores[:0], *(one.slots for one in self.subsets.values())])
        weights = graph.log_times + _edge_weights(graph, scores, slots)
        self.values, self.totals = _weigh_nodes(graph, weights, best=False)

    @property
    def log_partition(self) -> float:
        """The logarithm of the sum of all weights."""
        return -inf if self._graph.root is None else float(self.values[self._graph.root].real)

    @cached_property
    def shares(self) -> _Numbers:
        """For each edge its share of its node."""
        with np.errstate(invalid="ignore"):
            shares: _Numbers = np.exp(self.totals - self.values[self._graph.parents])
        shares[self.totals.real == -inf] = 0.0
        return shares

    @cached_property
    def expected_counts(self) -> _Numbers:
        """How often each feature occurs, in the mean."""
        graph = self._graph
        assert graph.root is not None
        reached: _Numbers = np.zeros(graph.node_count, dtype=self.values.dtype)
        reached[graph.root] = 1.0
        taken: _Numbers = np.zeros(len(graph.parents), dtype=self.values.dtype)
        for _, edges, _ in reversed(graph.levels):
            taken[edges] = reached[graph.parents[edges]] * self.shares[edges]
            for column in graph.children[edges].T:
                np.add.at(reached, column, taken[edges])
        counts: _Numbers = np.zeros(graph.size + 1, dtype=self.values.dtype)
        for column in graph.edge_features.T:
            np.add.at(counts, column, taken)
        for field, one in graph.classes.items():
            members = self.subsets[field].expected_members(counts[one.first : one.first + len(one.members)])
            for features, expected in zip(one.features, members, strict=True):
                counts[list(features)] += expected
        return counts[: self._size]


class _Sampler:
    """Draws words: a derivation edge by edge, then the members that fill its slots."""

    def __init__(self, graph: DerivationGraph, sums: _Sums) -> None:
        self._graph = graph
        self._subsets = sums.subsets
        begins = np.searchsorted(graph.parents, np.arange(graph.node_count + 1)).tolist()
        ends = np.cumsum(sums.shares)
        #: For each node its first edge, and the running sums of the shares of its edges.
        self._edges = [
            (begin, (ends[begin:end] - ends[begin] + sums.shares[begin]).tolist()) for begin, end in pairwise(begins)
        ]
        self._children = [[child for child in row if child] for row in graph.children.tolist()]

    def draw_word(self, rng: random.Random) -> Word:
        graph = self._graph
        assert graph.root is not None
        path: list[int] = []
        todo = [graph.root]
        while todo:
            begin, sums = self._edges[todo.pop()]
            edge = begin + min(bisect_right(sums, rng.random() * sums[-1]), len(sums) - 1)
            path.append(edge)
            todo += self._children[edge]
        members = {
            field: [graph.classes[field].members[place] for place in self._subsets[field].draw(size, rng)]
            for field, size in graph.slot_counts(path).items()
        }
        return graph.build_word(path, members)


# -- the best subsets -------------------------------------------------------------------------------------------------


class _SubsetsInOrder:
    """The subsets of a size, those with the greatest sums first; what has ``-inf`` is in none."""

    def __init__(self, scores: _Numbers, size: int) -> None:
        self._order = [place for place in np.argsort(-scores, kind="stable").tolist() if scores[place] > -inf]
        self._sorted = [float(scores[place]) for place in self._order]
        self._found: list[tuple[float, list[int]]] = []
        self._queue: list[tuple[float, tuple[int, ...]]] = []
        self._seen: set[tuple[int, ...]] = set()
        if size <= len(self._order):
            self._push_ranks(tuple(range(size)))

    def _push_ranks(self, ranks: tuple[int, ...]) -> None:
        if ranks not in self._seen:
            self._seen.add(ranks)
            heapq.heappush(self._queue, (-sum(self._sorted[rank] for rank in ranks), ranks))

    def get(self, number: int) -> tuple[float, list[int]] | None:
        """The sum and the members of the subset with this number, from 0; None where there are fewer."""
        while len(self._found) <= number and self._queue:
            weight, ranks = heapq.heappop(self._queue)
            self._found.append((-weight, [self._order[rank] for rank in ranks]))
            for place, rank in enumerate(ranks):
                if rank + 1 < (ranks[place + 1] if place + 1 < len(ranks) else len(self._order)):
                    self._push_ranks((*ranks[:place], rank + 1, *ranks[place + 1 :]))
        return self._found[number] if number < len(self._found) else None


def _products_in_order(choices: Sequence[_SubsetsInOrder]) -> Iterator[tuple[float, list[list[int]]]]:
    """One subset of each, those with the greatest sums first."""
    queue: list[tuple[float, tuple[int, ...]]] = []
    seen: set[tuple[int, ...]] = set()

    def push(numbers: tuple[int, ...]) -> None:
        found = [one.get(number) for one, number in zip(choices, numbers, strict=True)]
        if numbers not in seen and None not in found:
            seen.add(numbers)
            heapq.heappush(queue, (-sum(one[0] for one in found if one is not None), numbers))

    push((0,) * len(choices))
    while queue:
        weight, numbers = heapq.heappop(queue)
        yield -weight, [found[1] for one, n in zip(choices, numbers, strict=True) if (found := one.get(n)) is not None]
        for place in range(len(numbers)):
            push((*numbers[:place], numbers[place] + 1, *numbers[place + 1 :]))
