"""The planner: walks an automaton and asks an LLM at each branch."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

from formal_llm.automata import CFG, PDA, Limits
from formal_llm.llms.llm import LLM, ask, resolve
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.budget import Budget
from formal_llm.planning.choices import ChoiceTable
from formal_llm.planning.events import Answered, Asked, EventCallback
from formal_llm.planning.plan import Plan
from formal_llm.planning.search import Ask, best_first, greedy, sample
from formal_llm.planning.task import Task
from formal_llm.planning.walk import Walk
from formal_llm.planning.wording import Wording

Search = Literal["greedy", "best-first", "sample"]


class Planner:
    """Makes plans that follow the rules of a grammar or automaton.

    Args:
        source: a grammar, or an automaton.
        llm: who answers: a provider string (``"openai:MODEL"``, ``"builtin"``, ...), a function of the question, or an
            object with ``choose``.
        limits: limits besides those of ``source``; of two limits on the same thing the tighter one counts.
        constraints: finite automata that the plan's word must satisfy as well.
        lookahead: ``"on"``: only options from which a valid plan can be finished are offered. ``"off"``: all that the
            automaton allows next; dead ends are left by backtracking.
        search: what becomes of the answers (see :mod:`formal_llm.planning.search`). ``"greedy"``: each is followed.
            ``"best-first"``: the plan is the one to which the answers together give the highest probability; this takes
            more questions, and an llm whose answers have probabilities. ``"sample"``: each choice is drawn from them.
        seed: where the draws of ``"sample"`` begin; they go on from plan to plan.
        length_penalty: of ``"best-first"``: 0 for the most probable plan; above 0, longer plans are favoured (see
            :func:`formal_llm.planning.search.best_first`).
        wording: how questions are put.
        budget: what each plan may use.
        tries: how often one question is asked until the answer is legal.
        max_states: the budget of one lookahead query (see :class:`Lookahead`).
        on_event: called with what happens (see :mod:`formal_llm.planning.events`). ``"best-first"`` tells of questions,
            answers and the finished plan, not of what happens on each of its branches.

    One planner serves any number of plans: what it learns of the automaton it keeps.

    Raises:
        ValueError: a setting that is none, or that has no meaning with the others.
        UnknownProvider, MissingKey: no such LLM, or one without its key.
    """

    def __init__(
        self,
        source: CFG | Any,
        llm: str | LLM | Callable[..., Any] = "builtin",
        *,
        limits: Limits | None = None,
        constraints: Sequence[PDA] = (),
        lookahead: Literal["on", "off"] = "on",
        search: Search = "greedy",
        seed: int = 0,
        length_penalty: float = 0.0,
        wording: Wording | None = None,
        budget: Budget | None = None,
        tries: int = 3,
        max_states: int = 20_000,
        on_event: EventCallback | None = None,
    ) -> None:
        if lookahead not in ("on", "off"):
            raise ValueError(f"lookahead is 'on' or 'off', not {lookahead!r}")
        if search not in get_args(Search):
            raise ValueError(f"search is one of {', '.join(map(repr, get_args(Search)))}, not {search!r}")
        if length_penalty and search != "best-first":
            raise ValueError(f"a length_penalty is for search='best-first', not for {search!r}")
        if length_penalty < 0:
            raise ValueError(f"length_penalty is 0 or more, not {length_penalty}")
        if tries < 1:
            raise ValueError("tries counts from 1")
        self.source = source
        self.llm = resolve(llm)
        self.limits = limits or Limits()
        self.constraints = tuple(constraints)
        self.lookahead = lookahead
        self.search: Search = search
        self.length_penalty = length_penalty
        self._random = random.Random(seed)
        self.wording = wording or Wording()
        self.budget = budget or Budget()
        self.tries = tries
        self.max_states = max_states
        self.on_event = on_event
        self._tables: dict[tuple[str | None, Limits], ChoiceTable] = {}

    def table(self, task: str | Task = "") -> ChoiceTable:
        """The choices of this planner's automaton, under the goal and the limits of a task; shared by its walks."""
        task = Task.of(task)
        key = (task.goal, task.limits)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = ChoiceTable.of(
                self.source,
                goal=task.goal,
                limits=self.limits & task.limits,
                constraints=self.constraints,
                lookahead=self.lookahead,
                max_states=self.max_states,
            )
        return table

    def start(self, task: str | Task) -> Walk:
        """A walk for ``task``, before its first question.

        Raises:
            NoValidPlan: nothing follows all the rules; says which symbols or limits are to blame.
        """
        return Walk(self.table(task), task, wording=self.wording, budget=self.budget, on_event=self.on_event)

    def resume(self, snapshot: Mapping[str, Any] | str, task: str | Task | None = None) -> Walk:
        """The walk of a snapshot (see :meth:`Walk.restore`).

        Args:
            snapshot: what :meth:`Walk.snapshot` returned.
            task: the task, where it had a goal, limits or inputs of its own; else its description is in the snapshot.
        """
        table = self.table("" if task is None else task)
        settings: dict[str, Any] = {"wording": self.wording, "budget": self.budget, "on_event": self.on_event}
        return Walk.restore(snapshot, table, **settings, **({} if task is None else {"task": task}))

    def plan(self, task: str | Task) -> Plan:
        """A plan for ``task``: a word of the language, within all limits, whatever the LLM answers.

        Raises:
            NoValidPlan: nothing follows all the rules; before the first question is asked.
            InvalidAnswer: the LLM gave no legal answer to a question within ``tries``.
            BudgetExceeded: the budget is used up; the partial plan is attached (of ``"best-first"``, the best finished
                plan so far, where there is one).
            LLMError: the LLM could not be asked.
        """
        return self.drive(self.start(task))

    def drive(self, walk: Walk) -> Plan:
        """Answer a walk's questions with this planner's LLM, as its search has it, until the plan is finished."""
        if self.search == "best-first":
            best_first(walk, self._ask, length_penalty=self.length_penalty)
        elif self.search == "sample":
            sample(walk, self._ask, self._random)
        else:
            greedy(walk, self._ask)
        return walk.plan

    @property
    def _ask(self) -> Ask:
        """Who answers; where nobody listens, without a detour."""
        return partial(ask, self.llm, tries=self.tries) if self.on_event is None else self._ask_aloud

    def _ask_aloud(self, question: Question) -> Answer:
        assert self.on_event is not None
        self.on_event(Asked(question))
        answer = ask(self.llm, question, tries=self.tries)
        self.on_event(Answered(question, answer))
        return answer
