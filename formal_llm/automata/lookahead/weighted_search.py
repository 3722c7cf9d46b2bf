"""The best plan of weighted rules, and samples, where there are too many states to list all derivations.

**The best plan** is found by A* over the states of derivations (:mod:`formal_llm.automata.lookahead.derivations`): the
state with the highest bound on what a whole derivation through it is worth is continued first, so the first derivation
that ends is the best. The bound has two parts:

* *What the limits leave can still be worth.* A rewriting with a positive score takes something that is limited. What it
  is worth is spread over that: each unit that is left promises a share. Of a class of terminals that may be used once
  each, the best unused members promise their scores.
* *What pending symbols cost at least.* With those promises every rewriting has a cost, never a gain. The cheapest
  derivation of each symbol by these costs, whatever the limits, is a lower bound (Knuth 1977).

No step raises the bound, so no state has to be visited twice (Hart, Nilsson and Raphael 1968).

**Samples** are drawn step by step, in proportion to the weight of each step and the bound behind it. That is not the
distribution of the rules, so each draw has a weight, its share by the rules over its share here, and samples are drawn
among the draws by these weights (sampling importance resampling: Rubin 1987). They are an estimate.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

from formal_llm.automata.lookahead.cheapest import least_costs
from formal_llm.automata.lookahead.derivations import (
    END,
    ROOT,
    ClassSlot,
    DerivationStates,
    NodeKey,
    Rewriting,
    build_word,
    count_slots,
)
from formal_llm.automata.models.automaton import Word
from formal_llm.errors import Undecided


class _PricedStep(NamedTuple):
    """A rewriting as the search sees it; it is worth what its features and the best derivations beside it are worth."""

    worth: float
    fields: Mapping[int, int]
    slots: tuple[int, ...]
    symbols: tuple[int, ...]


class WeightedSearch:
    """The search for the best derivation under certain scores.

    Args:
        derivations: the states and steps of the derivations.
        scores: the score of each feature, by its number.
        members: for each class, by its field, the scores of its members.
        max_states: how many states may be visited.

    Raises:
        Undecided: a positive score takes nothing that is limited, so no bound is known.
    """

    def __init__(
        self,
        derivations: DerivationStates,
        scores: Sequence[float],
        members: Mapping[int, Sequence[float]],
        max_states: int,
    ) -> None:
        self._derivations = derivations
        self._scores = scores
        self._members = members
        self._max_states = max_states
        self._sorted = {field: sorted(worth, reverse=True) for field, worth in members.items()}
        #: For each class and number of unused members, what these can still be worth.
        self._promised = {
            field: [sum(max(score, 0.0) for score in worth[len(worth) - left :]) for left in range(len(worth) + 1)]
            for field, worth in self._sorted.items()
        }
        self._beside = self._weigh_untouched()
        steps = {
            index: [self._weigh_step(rewriting) for rewriting in group]
            for index, group in derivations.rewritings.items()
            if index in derivations.touched or index == ROOT
        }
        self._per_unit = self._find_promises([step for group in steps.values() for step in group])
        self._costs = least_costs(
            (index, self._price_step(step), step.symbols)
            for index, group in steps.items()
            for step in group
            if step.worth > -inf
        )

    # -- the bound ----------------------------------------------------------------------------------------------------

    def _weigh_rewriting(self, rewriting: Rewriting) -> float:
        return sum(self._scores[feature] for feature in rewriting.features)

    def _weigh_untouched(self) -> dict[int, tuple[float, Rewriting]]:
        """The best derivation of each symbol that no limit concerns: what it is worth, and its first rewriting."""
        derivations = self._derivations
        found: dict[int, tuple[float, Rewriting]] = {}
        untouched = [index for index in derivations.rewritings if index not in derivations.touched]
        untouched = [index for index in untouched if index != ROOT]
        for _ in range(len(untouched) + 1):
            changed = False
            for index in untouched:
                for rewriting in derivations.rewritings[index]:
                    children = derivations.list_symbols(rewriting)
                    if all(child in found for child in children):
                        worth = self._weigh_rewriting(rewriting) + sum(found[child][0] for child in children)
                        if worth > -inf and (index not in found or worth > found[index][0] + 1e-12):
                            found[index] = worth, rewriting
                            changed = True
            if not changed:
                return found
        raise Undecided(
            "a cycle of moves with positive scores has no best plan; give a bound on the length (max_length)"
        )

    def _weigh_step(self, rewriting: Rewriting) -> _PricedStep:
        derivations = self._derivations
        symbols = derivations.list_symbols(rewriting)
        touched = [one for one in symbols if one in derivations.touched]
        beside = sum(self._worth_beside(one) for one in symbols if one not in derivations.touched)
        slots = tuple(item.field for item in rewriting.items if isinstance(item, ClassSlot))
        amounts = derivations.amounts_taken(rewriting)
        return _PricedStep(self._weigh_rewriting(rewriting) + beside, amounts, slots, tuple(touched))

    def _worth_beside(self, symbol: int) -> float:
        """What the best derivation of a symbol that no limit concerns is worth."""
        return self._beside[symbol][0] if symbol in self._beside else -inf

    def _find_promises(self, steps: Sequence[_PricedStep]) -> dict[int, float]:
        """What each unit of what is limited promises, so that no step is worth more than the promises it takes."""
        left = self._derivations.amounts_left(self._derivations.start_left)
        promises: dict[int, float] = {}
        for step in steps:
            owed = step.worth - sum(promises.get(field, 0.0) * amount for field, amount in step.fields.items())
            if owed <= 0:
                continue
            if not step.fields:
                raise Undecided(
                    "a move with a positive score takes nothing that is limited, so the best of too many plans is not "
                    "known; give a bound on the length (max_length)"
                )
            scarcest = min(step.fields, key=lambda field: left[field] / step.fields[field])
            promises[scarcest] = promises.get(scarcest, 0.0) + owed / step.fields[scarcest]
        return promises

    def _price_step(self, step: _PricedStep) -> float:
        """What a step costs beside the promises that it takes; never below 0."""
        promised = sum(self._per_unit.get(field, 0.0) * amount for field, amount in step.fields.items())
        slots = sum(min(self._sorted[field][0], 0.0) for field in step.slots)
        return max(promised - step.worth - slots, 0.0)

    def _bound_weight(self, key: NodeKey) -> float:
        """The most that can follow from a state."""
        derivations = self._derivations
        if key == END:
            return 0.0
        if isinstance(key, int):
            if key != ROOT:
                return self._worth_beside(key)
            pending, left = [(key, 1)], derivations.start_left
        else:
            pending, left = derivations.list_pending(key[0]), key[1]
        bound = 0.0
        for index, count in pending:
            cost = self._costs.get(index)
            if cost is None:
                return -inf
            bound -= cost * count
        for field, amount in enumerate(derivations.amounts_left(left)):
            bound += self._per_unit.get(field, 0.0) * amount
            if field in self._promised:
                bound += self._promised[field][amount]
        return bound

    # -- the best -----------------------------------------------------------------------------------------------------

    def find_best(self) -> tuple[Word, float] | None:
        """Return the best word with its log-weight; None where there is none.

        Raises:
            Undecided: more states than ``max_states`` were visited.
        """
        derivations = self._derivations
        root: NodeKey = ROOT
        worth: dict[NodeKey, float] = {root: 0.0}
        came: dict[NodeKey, tuple[NodeKey, Rewriting]] = {}
        done: set[NodeKey] = set()
        queue: list[tuple[float, int, NodeKey]] = [(-self._bound_weight(root), 0, root)]
        turn = 0
        while queue:
            _, _, key = heapq.heappop(queue)
            if key in done:
                continue
            if key == END:
                return self._build_best(came), worth[key]
            if len(done) >= self._max_states:
                raise Undecided("the best plan was not found within the budget of states; raise max_states")
            done.add(key)
            for rewriting, children, slots in derivations.list_edges(key):
                following, *others = children
                here = worth[key] + self._weigh_rewriting(rewriting)
                here += sum(map(self._bound_weight, others)) + sum(map(self._slot_worth, slots))
                if here > worth.get(following, -inf):
                    bound = self._bound_weight(following)
                    if bound > -inf:
                        worth[following] = here
                        came[following] = key, rewriting
                        turn -= 1  # of equal bounds the last one: straight ahead
                        heapq.heappush(queue, (-here - bound, turn, following))
        return None

    def _slot_worth(self, slot: int) -> float:
        """What a use of a slot is worth at best: with some members left, all better ones are used."""
        field = next(
            field for field, one in self._derivations.classes.items() if 0 <= slot - one.first < len(one.members)
        )
        worth = self._sorted[field]
        return worth[len(worth) - 1 - (slot - self._derivations.classes[field].first)]

    def _build_best(self, came: Mapping[NodeKey, tuple[NodeKey, Rewriting]]) -> Word:
        """The word of the way that was found, with the best members in its slots."""
        way: list[Rewriting] = []
        key: NodeKey = END
        while key in came:
            key, rewriting = came[key]
            way.append(rewriting)
        way.reverse()
        todo = [one for rewriting in way for one in self._derivations.list_symbols(rewriting) if one in self._beside]
        while todo:
            _, rewriting = self._beside[todo.pop()]
            way.append(rewriting)
            todo += self._derivations.list_symbols(rewriting)
        chosen: dict[int, list[str]] = {}
        for field, size in count_slots(way).items():
            ranked = sorted(
                zip(self._members[field], self._derivations.classes[field].members, strict=True), reverse=True
            )
            chosen[field] = [name for _, name in ranked[:size]]
        return build_word(way, chosen)

    # -- draws --------------------------------------------------------------------------------------------------------

    def draw_derivation(self, rng: random.Random, slot_weights: Sequence[float]) -> tuple[list[Rewriting], float]:
        """Draw a derivation step by step.

        Args:
            rng: where chance comes from.
            slot_weights: the log-weight of each slot use, by its number from that of the first one on.

        Returns:
            Its rewritings, and the logarithm of its importance weight: ``-inf`` where the draw led into a dead end.
        """
        first = len(self._derivations.numbers)
        way: list[Rewriting] = []
        importance = 0.0
        todo: list[NodeKey] = [ROOT]
        while todo:
            key = todo.pop()
            if key == END:
                continue
            found: list[tuple[Rewriting, tuple[NodeKey, ...], float]] = []
            guides: list[float] = []
            for rewriting, children, slots in self._derivations.list_edges(key):
                weight = math.log(rewriting.times) + self._weigh_rewriting(rewriting)
                weight += sum(slot_weights[slot - first] for slot in slots)
                guide = weight + sum(map(self._bound_weight, children))
                if guide > -inf:
                    found.append((rewriting, children, weight))
                    guides.append(guide)
            if not found or len(way) >= self._max_states:
                return way, -inf
            top = max(guides)
            shares = [math.exp(guide - top) for guide in guides]
            (place,) = rng.choices(range(len(found)), shares)
            rewriting, children, weight = found[place]
            importance += weight - math.log(shares[place] / sum(shares))
            way.append(rewriting)
            todo += children
        return way, importance
