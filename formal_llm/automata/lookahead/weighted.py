"""Rules with weights: a distribution over plans, with its sum, its best plans, exact samples and expectations.

A *score* is a log-weight of a terminal or a move. The weight of a derivation is the exponential of the sum of the
scores of all terminals that it reads and all moves that it takes; its probability is that weight over the sum of all
(:meth:`WeightedRules.log_partition`). Everything else follows from sums over one chart of all derivations
(:mod:`formal_llm.automata.lookahead.derivations`)::

    rules = WeightedRules(cfg, {"captioning": 2.0, "translation": 1.5})
    rules.best().word           # the plan with the highest weight
    rules.sample(random.Random(0), 100)
    rules.marginals()["captioning"]

Where the rules are ambiguous, a plan has several derivations: samples and probabilities are those of plans, with all
their derivations; the best plan is the one with the best derivation.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from math import inf, isnan
from typing import NamedTuple

import numpy as np

from formal_llm.automata.lookahead.chart import BEST, LOGS, Floats, Inside, list_words
from formal_llm.automata.lookahead.derivations import (
    Feature,
    derive,
    only_word,
)
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.limits import Bound, Limits
from formal_llm.automata.models.product import project_transition
from formal_llm.automata.models.rules import Source
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError, did_you_mean


class ScoredWord(NamedTuple):
    """A plan and its log-weight: the sum of the scores of one derivation."""

    word: Word
    log_weight: float


class Expectation(NamedTuple):
    """The expectation of an additive reward, and its derivative by each score: the covariance with its count."""

    mean: float
    gradient: Mapping[Feature, float]


class WeightedRules:
    """The distribution over plans that rules with scores define.

    Args:
        rules: a grammar, a flowchart, a behaviour or a pushdown automaton, with its limits; or a lookahead over them.
        scores: log-weights of terminals, and of moves: of productions, or of transitions that come from none. What is
            not named has 0; what has ``-inf`` does not occur.
        limits: more limits.
        moves: whether all moves may be scored, and have marginals; otherwise only those in ``scores``.
        max_length: the most terminals of a plan.
        max_states: how many states the chart of all derivations may have.

    Raises:
        AutomatonError: a score is of something that the rules do not have; the rules are no pushdown automaton.
        InfiniteLanguage: there are infinitely many derivations; give ``max_length``, or limits.
        Undecided: there are more states than ``max_states``.
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
            lookahead = Lookahead(rules.source if isinstance(rules, Lookahead) else rules, limits)
        if lookahead.pda is None:
            raise AutomatonError("weights need a grammar or a pushdown automaton")
        self._pda, self._bounds = lookahead.pda, lookahead.bounds
        if max_length is not None:
            each = dict.fromkeys(self._pda.terminals, 1)
            self._bounds = (*self._bounds, Bound(each, 0, max_length, f"length <= {max_length}"))
        self._scored = None if moves else {one for one in scores or () if not isinstance(one, str)}
        self._max_states = max_states
        self._states = derive(self._pda, self._bounds, self._feature_of, max_states)
        self._chart = self._states.chart
        self._set_scores(scores or {})

    def _feature_of(self, move: Transition) -> Feature | None:
        feature = move.production or move
        return feature if self._scored is None or feature in self._scored else None

    def _set_scores(self, scores: Mapping[Feature, float]) -> None:
        numbers = self._states.numbers
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
        """Return the same rules with other scores; the chart of derivations is shared.

        Raises:
            AutomatonError: a score is of something that the rules do not have, or of a move that was not declared.
            ValueError: a score is not a number, or is infinite.
        """
        made = object.__new__(WeightedRules)
        made.__dict__.update({name: one for name, one in self.__dict__.items() if name not in _OF_SCORES})
        made._set_scores(scores)
        return made

    def __repr__(self) -> str:
        return f"<WeightedRules over {self._pda!r}>"

    @property
    def scores(self) -> dict[Feature, float]:
        """The score of each terminal, and of each move that may have one."""
        return dict(zip(self._states.numbers, self._scores.tolist(), strict=True))

    # -- sums ---------------------------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> Inside:
        return self._chart.evaluate(self._chart.log_times + self._chart.weigh_edges(self._scores), LOGS)

    @cached_property
    def _best(self) -> Inside:
        return self._chart.evaluate(self._chart.weigh_edges(self._scores), BEST)

    def log_partition(self) -> float:
        """Return the logarithm of the sum of the weights of all derivations; ``-inf`` where there are none."""
        return -inf if self._chart.root is None else float(self._sums.total)

    def marginals(self) -> dict[Feature, float]:
        """Return how often each terminal and each scored move occurs in a plan, in the mean.

        This is the gradient of :meth:`log_partition`.

        Raises:
            ValueError: there is no plan.
        """
        self._require_plans()
        return dict(zip(self._states.numbers, self._counts.tolist(), strict=True))

    @cached_property
    def _counts(self) -> Floats:
        return self._chart.count_features(self._sums.reach(np.zeros(len(self._chart.steps)))[0], len(self._scores))

    def entropy(self) -> float:
        """Return the entropy of the distribution over derivations, in nats.

        Raises:
            ValueError: there is no plan.
        """
        self._require_plans()
        return self.log_partition() - float(np.sum(self._counts * np.where(self._counts > 0, self._scores, 0.0)))

    def expectation(self, values: Mapping[Feature, float]) -> Expectation:
        """Return the expectation of a reward that adds up values of terminals and moves, and its gradient.

        Args:
            values: what each occurrence of a terminal or a move adds; 0 for what is not named.

        Raises:
            AutomatonError: a value is of something that has no score.
            ValueError: there is no plan.
        """
        self._require_plans()
        rewards = self.with_scores(values)._scores
        taken, changes = self._sums.reach(self._chart.weigh_edges(rewards))
        counts, slopes = (self._chart.count_features(one, len(rewards)) for one in (taken, changes))
        gradient = dict(zip(self._states.numbers, slopes.tolist(), strict=True))
        return Expectation(float(counts @ rewards), gradient)

    def _require_plans(self) -> None:
        if self.log_partition() == -inf:
            raise ValueError("there is no plan with a weight above 0")

    # -- single plans -------------------------------------------------------------------------------------------

    def best(self) -> ScoredWord | None:
        """Return the plan with the highest weight; None where there is no plan."""
        return next(self._iter_best(), None)

    def best_of(self, k: int) -> list[ScoredWord]:
        """Return the ``k`` plans with the highest weights, the best first; fewer where there are no more."""
        return list(islice(self._iter_best(), k))

    def _iter_best(self) -> Iterator[ScoredWord]:
        seen: set[Word] = set()
        for weight, path in self._best.iter_best():
            for word in list_words(path):
                if word not in seen:
                    seen.add(word)
                    yield ScoredWord(word, weight)

    def sample(self, rng: random.Random, n: int) -> list[Word]:
        """Draw ``n`` plans from the distribution, independently of each other.

        Raises:
            ValueError: there is no plan.
        """
        self._require_plans()
        return [self._sums.draw(rng) for _ in range(n)]

    def log_probability(self, word: Sequence[str]) -> float:
        """Return the logarithm of the probability of a plan, over all its derivations; ``-inf`` if it is not valid.

        Raises:
            ValueError: there is no plan.
        """
        self._require_plans()
        word = tuple(word)
        if not all(name in self._pda.terminals for name in word) or not all(one.holds(word) for one in self._bounds):
            return -inf
        states = derive(
            only_word(self._pda, word), (), lambda move: self._feature_of(project_transition(move)), self._max_states
        )
        chart, scores = states.chart, self.scores
        if chart.root is None:
            return -inf
        weights = chart.weigh_edges(np.array([scores[one] for one in states.numbers]))
        return float(chart.evaluate(chart.log_times + weights, LOGS).total) - self.log_partition()


#: What depends on the scores.
_OF_SCORES = {"_scores", "_sums", "_best", "_counts"}
