"""Strategies of search: how the answers to a walk's questions become a plan.

Each strategy is a generator: it yields questions of the walk, is sent their answers, and ends when the walk does. It
does no input or output of its own, so its driver (:mod:`formal_llm.planning.drivers.driving`, or one that waits
for many at once) decides how questions are answered. How often one question is put is set by its ``ask``.

- :func:`greedy` follows each answer.
- :func:`best_first` looks for the most probable plan: uniform-cost search (Dijkstra 1959; Russell and Norvig,
  *Artificial Intelligence*, section 3.4) over the choices, where a choice costs the negative logarithm of its
  probability.
- :func:`sample` draws each choice from the probabilities of its answer.

**Probability.** An answer may carry a probability for each option. It is normalised over the options that are offered;
a choice that leaves one option has probability 1, and a plan the product over its questions. The model is asked only
about options from which a valid plan can be finished, so this is a distribution over valid plans, normalised place by
place. It is not the model's free distribution conditioned on the plan being valid: for that, a choice would have to be
weighted by how much of what the model would write after it is valid (see "grammar-aligned decoding", Park et al. 2024,
arXiv 2405.21047).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import NamedTuple

from formal_llm.errors import BudgetExceeded, NoValidPlan
from formal_llm.llms.llm import Asking
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.drivers.driving import Steps
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.walks.budget import Budget
from formal_llm.planning.walks.journal import normalise_probabilities
from formal_llm.planning.walks.walk import Walk

#: Puts one question: yields it, and returns its answer.
Ask = Callable[[Question], Asking]


def ask_once(question: Question) -> Asking:
    """Ask a question once, and take the answer as it comes."""
    return (yield question)


def greedy(walk: Walk, ask: Ask = ask_once) -> Steps:
    """Take a walk to its end along what is answered.

    Raises:
        BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
    """
    while (question := walk.question) is not None:
        walk.answer((yield from ask(question)))


def sample(walk: Walk, rng: random.Random, ask: Ask = ask_once) -> Steps:
    """Take a walk to its end along choices that are drawn from the probabilities of the answers.

    So a plan comes up with its probability as this module defines it, normalised place by place. After a dead end,
    which there is only where the lookahead is off or had to answer "unknown", what is left is asked and drawn anew. An
    answer without probabilities, and any answer to a selection, is followed as it is.

    Raises:
        BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
        InvalidAnswer: an answer has a negative probability, or one that is no finite number.
    """
    while (question := walk.question) is not None:
        answer = yield from ask(question)
        likely = None if question.several else normalise_probabilities(answer, len(question.options))
        if likely is not None:
            drawn = rng.choices(range(1, len(likely) + 1), likely)[0]
            answer = replace(answer, numbers=(drawn,))
        walk.answer(answer)


def best_first(walk: Walk, ask: Ask = ask_once, *, length_penalty: float = 0.0) -> Steps:
    """Take a walk to the most probable plan.

    Unfinished plans wait in a frontier, the most probable one first; its question is asked, once, and each of its
    options becomes an unfinished plan in turn. The first finished plan whose turn comes is the most probable one, since
    a plan never becomes more probable by going on.

    *Answers without probabilities*: the chosen option has probability 1, the others 0. *Selections*: the chosen set has
    probability 1, whatever the answer gives its members; the question is asked again, without this set, only when
    nothing with a probability above 0 is left. Among plans of probability 0, those with the fewest choices of
    probability 0 come first, then the most probable but for these (as in limited discrepancy search, Harvey and
    Ginsberg 1995): so where no probabilities are given, the search is ``greedy`` as long as there is no dead end.

    *Ties*: a finished plan first, then the one with fewer questions, then by the numbers of the options, first question
    first. The same answers make the same plan, always.

    *Dead ends* (lookahead off, or "unknown") are dropped. Nothing is normalised anew, so with lookahead off the
    probabilities of all valid plans may sum to less than 1.

    *Length*: a product of more factors is smaller, so short plans are favoured. With ``length_penalty`` alpha above 0,
    the plan with the best log-probability / n ** alpha is looked for, with n the number of questions that led to it (as
    in beam search, Wu et al. 2016, arXiv 1609.08144; 1 is the mean of the logarithms). The answer is exact here too: an
    unfinished plan is in the frontier with the best score that any of its completions could have, and that is
    where the walk's step budget comes in, which bounds n. The smaller the step budget, the fewer questions are asked;
    with a generous one most of the language is searched, so give a question budget as well.

    The walk goes to the plan that was found; where an exception is raised, it stays where it is, and counts what was
    used in vain. The same question
    should be answered in the same way whenever it is asked.

    Raises:
        BudgetExceeded: what all branches together used has used up the walk's budget. Its
            ``plan`` is the best finished plan known by then (``complete`` is True), or else the most probable partial
            one. Or no plan ends within the step budget.
        NoValidPlan: every branch was tried.
        InvalidAnswer: an answer has a negative probability, or one that is no finite number.
        ValueError: a length penalty that is negative or has no step budget to bound the search.
    """
    if not 0 <= length_penalty < math.inf:
        raise ValueError(f"length_penalty is 0 or more, not {length_penalty}")
    if length_penalty and walk.budget.steps is None:
        raise ValueError("a length penalty needs a bound on the length of plans: Budget(steps=...)")
    if walk.done:
        return
    search = _BestFirst(walk, ask, length_penalty)
    try:
        yield from search.run_search()
    except BudgetExceeded:
        raise  # its plan records what was used
    except BaseException:
        search.charge_walk()
        raise


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An unfinished or finished plan in the frontier.

    Attributes:
        walk: the walk to the node; or, until its turn comes for the first time, to the question before it.
        zeros: how many choices of probability 0 led here.
        cost: the sum of the negative logarithms of the probabilities of the others.
        questions: how many questions led here; a choice that is split into pages counts once.
        path: the numbers of the options that led here; after a selection 1, or 2 for all its other sets.
        answer: the answer to that question; None where the walk has reached the node.
        other: whether the node is all other answers but this one.
    """

    walk: Walk
    zeros: int = 0
    cost: float = 0.0
    questions: int = 0
    path: tuple[int, ...] = ()
    answer: Answer | None = None
    other: bool = False


class _Rank(NamedTuple):
    """The place of a branch in the frontier; least first. The path makes every rank unlike all others."""

    zeros: int
    cost: float
    stage: int
    questions: int
    path: tuple[int, ...]


class _BestFirst:
    """The frontier of a best-first search, and what the search has used."""

    def __init__(self, walk: Walk, ask: Ask, alpha: float) -> None:
        self._walk = walk
        self._ask = ask
        self._alpha = alpha
        self._heap: list[tuple[_Rank, _Candidate]] = []
        self._used = walk.usage
        self._tokens = TokenUsage()
        self._asked = self._dead = 0
        self._capped = False
        so_far = walk.log_probability or 0.0
        cost = -so_far if so_far > -math.inf else 0.0
        start = walk.fork()
        start.budget = Budget(None, walk.budget.steps, self._used.backtracks)
        self._push_candidate(_Candidate(start, cost=cost, questions=walk.decisions))

    def run_search(self) -> Steps:
        budget = self._walk.budget
        while self._heap:
            node = heappop(self._heap)[1]
            if node.answer is not None:
                if not self._walk_to_candidate(node):
                    dead = self._used.backtracks + self._dead
                    if budget.backtracks is not None and dead >= budget.backtracks:
                        raise BudgetExceeded("backtracks", budget.backtracks, self._make_plan(node.walk))
                    self._dead += 1
            elif node.walk.done:
                self._walk.follow(node.walk, self._count_usage(node.walk))
                return
            elif budget.metered and (spent := budget.spent(self._count_usage(node.walk))) is not None:
                raise BudgetExceeded(*spent, self._make_plan(self._find_finished_walk() or node.walk))
            else:
                question = node.walk.question
                assert question is not None
                answer = question.check((yield from self._ask(question)))
                for branch in self._expand_candidate(node, question, answer):
                    self._push_candidate(branch)
        if self._capped and budget.steps is not None:
            raise BudgetExceeded("steps", budget.steps, self._make_plan(self._walk))
        raise NoValidPlan("every branch was tried or ruled out")

    # -- the frontier -------------------------------------------------------------------------------------------

    def _push_candidate(self, node: _Candidate) -> None:
        heappush(self._heap, (self._rank_candidate(node), node))

    def _rank_candidate(self, node: _Candidate) -> _Rank:
        """The place of a node in the frontier, no worse than that of anything it can lead to; least first.

        Of equal nodes the finished ones come first and those that have yet to ask last, so nothing is asked in vain.
        """
        finished = node.answer is None and node.walk.done
        cost = node.cost
        if self._alpha:
            # Each further question takes a move, but for the last one: to stop takes none.
            most = node.questions if finished else node.questions + node.walk.left + 1
            cost /= max(most, 1) ** self._alpha
        stage = 0 if finished else 1 if node.answer is not None else 2
        return _Rank(node.zeros, cost, stage, node.questions, node.path)

    def _expand_candidate(self, node: _Candidate, question: Question, answer: Answer) -> Iterator[_Candidate]:
        """One node for each option of the question at a node."""
        self._asked += 1
        self._tokens += answer.usage
        asked = node.walk.choice
        assert asked is not None
        if question.several:
            given, made = Answer(answer.numbers), node.questions + (not asked.opens_page(answer.numbers))
            yield replace(node, questions=made, path=(*node.path, 1), answer=given)
            yield replace(node, zeros=node.zeros + 1, path=(*node.path, 2), answer=given, other=True)
            return
        count = len(question.options)
        likely = normalise_probabilities(answer, count) or [
            float(number in answer.numbers) for number in range(1, count + 1)
        ]
        for number, probability in enumerate(likely, 1):
            yield _Candidate(
                node.walk,
                node.zeros + (not probability),
                node.cost - math.log(probability) if probability else node.cost,
                node.questions + (not asked.opens_page((number,))),
                (*node.path, number),
                Answer((number,), answer.probabilities),
            )

    def _walk_to_candidate(self, node: _Candidate) -> bool:
        """Walk to where a node leads and put it back; False for a dead end."""
        assert node.answer is not None
        walk = node.walk.fork()
        gone_back = walk.usage.backtracks
        # A walk that meets a dead end goes back and asks again. The search has these branches itself: it allows that
        # only where the answer shall be ruled out, and then once.
        walk.budget = replace(walk.budget, backtracks=gone_back + node.other)
        try:
            walk.answer(node.answer)
            if node.other and walk.usage.backtracks == gone_back:
                walk.rule_out()
        except BudgetExceeded:
            self._capped = self._capped or walk.capped
            return node.other  # that no other set is left is no dead end of its own
        self._push_candidate(replace(node, walk=walk, answer=None, other=False))
        return True

    def _find_finished_walk(self) -> Walk | None:
        """The best finished plan that the frontier leads to without another question."""
        while self._heap:
            node = heappop(self._heap)[1]
            if node.answer is not None:
                self._walk_to_candidate(node)
            elif node.walk.done:
                return node.walk
        return None

    def charge_walk(self) -> None:
        """Put what all branches used on the account of the walk, which stays where it is."""
        self._walk.charge(self._tokens, self._asked)

    def _count_usage(self, walk: Walk) -> Usage:
        """What the whole search took to find a walk."""
        own, tokens = walk.usage, self._used.token_usage + self._tokens
        asked = self._used.questions + self._asked
        return Usage(
            asked, own.forced, self._used.backtracks + self._dead, asked - (own.questions - own.wasted),
            tokens.requests, tokens.input_tokens, tokens.output_tokens, own.seconds,
            tokens.cached_tokens, tokens.cache_write_tokens, self._walk.cost(tokens), own.verdicts,
            estimated=tokens.estimated,
        )  # fmt: skip

    def _make_plan(self, walk: Walk) -> Plan:
        return walk.partial.with_usage(self._count_usage(walk))
