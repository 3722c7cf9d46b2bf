"""``search="exact"``: one question for all steps at once, and the best plan that the rules allow.

The LLM is asked once which steps the plan for a task needs. From its answer each step gets a score: the logarithm of
the odds that the plan has it. The best plan is the valid one with the highest sum of scores. It is found exactly
(:mod:`formal_llm.automata.lookahead.weighted`), however many plans there are. If the probabilities of the steps are
independent, it is the most probable set of steps among those that the rules allow.

An LLM that only chooses gives no probabilities. Then what it chose counts :data:`CHOSEN` and everything else the
opposite: the plan is the valid one that differs least from what was chosen.

**Steps that may occur several times.** The LLM is asked whether a step occurs, not how often. Those that it wants are
required, the most wanted first, as long as a plan with all of them exists; further uses cost :data:`REPEATED`. Where
plans may be arbitrarily long, plans of a bounded length are compared: :data:`LONGER` times the length of the shortest
one, and as many more steps as were asked for.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from typing import NamedTuple

from formal_llm.automata import Limits, Lookahead, WeightedRules
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.derivations import Feature
from formal_llm.errors import AutomatonError, InfiniteLanguage, Undecided
from formal_llm.llms.question import Answer, Outlook, Prospect, Question, Term
from formal_llm.planning.drivers.draft import follow_word
from formal_llm.planning.drivers.driving import Steps
from formal_llm.planning.drivers.search import Ask, ask_once, greedy
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.walk import Walk

#: The score of a step that was chosen by an LLM that gives no probabilities.
CHOSEN = 2.0
#: The score of each use of a step that may occur several times, beyond what the LLM answered.
REPEATED = -0.01
#: The length of the plans that are compared, as a multiple of the shortest one's, where there are infinitely many.
LONGER = 2
#: Probabilities are kept this far from 0 and 1.
_LEAST = 1e-9
#: The weighted rules that are kept for one table.
_KEPT = 16


class AskedSteps(NamedTuple):
    """The steps that a question is about.

    Attributes:
        question: the question, which takes several options.
        names: the terminal of each option.
    """

    question: Question
    names: tuple[str, ...]


def plan_at_once(walk: Walk, ask: Ask = ask_once, *, or_greedy: bool = False) -> Steps:
    """Take a walk to the best plan by the answer to one question.

    A walk that has begun already is continued question by question.

    With ``or_greedy``, rules that cannot be weighed are planned question by question, too.

    Raises:
        AutomatonError, InfiniteLanguage, Undecided: the rules cannot be weighed (:class:`~formal_llm.WeightedRules`).
        BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
    """
    if walk.choice is not None and not walk.decisions:
        try:
            weigh_steps(walk.table)  # before anything is asked
            weighted = True
        except (AutomatonError, InfiniteLanguage, Undecided):
            if not or_greedy:
                raise
            weighted = False
        if weighted:
            rules = yield from ask_weights(walk, ask)
            try:
                best = rules.best()
            except Undecided:
                if not or_greedy:
                    raise
                best = None
            if (best is None or not follow_word(walk, best.word)) and not or_greedy:
                raise Undecided("the choices that lead to the best plan were not found; use another search")
    yield from greedy(walk, ask)


def ask_weights(walk: Walk, ask: Ask = ask_once) -> Generator[Question, Answer, WeightedRules]:
    """Ask which steps the plan of a walk needs, and return the rules with the scores that follow from the answer."""
    if walk.budget.metered:
        walk.afford()
    asked = ask_for_steps(walk)
    answer = yield from ask(asked.question)
    walk.count_draft(answer.usage)
    return score_steps(walk.table, dict(zip(asked.names, read_scores(answer, len(asked.names)), strict=True)))


def ask_for_steps(walk: Walk) -> AskedSteps:
    """Write the question which of all steps the plan of a walk needs."""
    table, wording = walk.table, walk.wording
    terms = [
        Term(name, table.vocabulary.label(name), table.vocabulary.describe_terminal(name)) for name in find_steps(table)
    ]
    texts = [f"{term.label}: {term.description}" if term.description else term.label for term in terms]
    task = walk.task.description
    question = Question(
        lambda: wording.ask_steps(task, texts),
        texts,
        several=True,
        task=task,
        messages=lambda: wording.before((), task, table.rules),
        outlook=Outlook((), tuple(Prospect((term,)) for term in terms), table.vocabulary.order == "prefix"),
        walk=walk.name,
    )
    return AskedSteps(question, tuple(term.name for term in terms))


def read_scores(answer: Answer, count: int) -> list[float]:
    """Return the score of each option by an answer: the logarithm of its odds."""
    if answer.probabilities is None:
        return [CHOSEN if number in answer.numbers else -CHOSEN for number in range(1, count + 1)]
    likely = [min(max(answer.probabilities.get(number, 0.5), _LEAST), 1 - _LEAST) for number in range(1, count + 1)]
    return [math.log(share / (1 - share)) for share in likely]


def find_steps(table: ChoiceTable) -> list[str]:
    """Return the terminals that some plan may have, in the order of the rules."""
    lookahead = table.lookahead
    usable = lookahead.detours(lookahead.automaton.start())
    return [name for name in table.vocabulary.terminals if name in usable]


def score_steps(table: ChoiceTable, scores: Mapping[str, float]) -> WeightedRules:
    """Weigh the rules of a table by the scores of steps; see the module's docstring for repeated steps."""
    repeated = {name for name in scores if table.lookahead.limits.most(name) != 1}
    required: frozenset[str] = frozenset()
    for name in sorted((name for name in repeated if scores[name] > 0), key=lambda name: (-scores[name], name)):
        more = required | {name}
        if _require_terminals(table, more).completable().possible:
            required = more
    rules = weigh_steps(table, required)
    weights: dict[Feature, float] = {
        name: min(score, 0.0) + REPEATED if name in repeated else score for name, score in scores.items()
    }
    return rules.with_scores(weights)


def weigh_steps(table: ChoiceTable, required: frozenset[str] = frozenset()) -> WeightedRules:
    """Return the rules of a table with weights; what was made is kept.

    Raises:
        AutomatonError, InfiniteLanguage, Undecided: the rules cannot be weighed.
    """
    made = table.weighted.get(required)
    if made is None:
        lookahead = _require_terminals(table, required)
        try:
            made = WeightedRules(lookahead)
        except InfiniteLanguage:
            least = lookahead.least_length(lookahead.automaton.start())
            if least == INFINITE:
                raise
            made = WeightedRules(lookahead, max_length=LONGER * int(least) + len(find_steps(table)))
        while len(table.weighted) >= _KEPT:
            table.weighted.pop(next(iter(table.weighted)))
        table.weighted[required] = made
    return made


def _require_terminals(table: ChoiceTable, names: frozenset[str]) -> Lookahead:
    """The rules of a table with terminals that every plan has."""
    if not names:
        return table.lookahead
    return Lookahead(table.lookahead.source, Limits(at_least=dict.fromkeys(names, 1)))
