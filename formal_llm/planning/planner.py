"""The planner: walks an automaton and asks an LLM at each branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from formal_llm.automata import CFG, PDA, Limits
from formal_llm.llms.llm import LLM, ask, resolve
from formal_llm.planning.budget import Budget
from formal_llm.planning.choices import ChoiceTable
from formal_llm.planning.events import Answered, Asked, EventCallback
from formal_llm.planning.plan import Plan
from formal_llm.planning.task import Task
from formal_llm.planning.walk import Walk
from formal_llm.planning.wording import Wording


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
        search: ``"greedy"``: each answer is followed.
        wording: how questions are put.
        budget: what each plan may use.
        tries: how often one question is asked until the answer is legal.
        max_states: the budget of one lookahead query (see :class:`Lookahead`).
        on_event: called with what happens (see :mod:`formal_llm.planning.events`).

    One planner serves any number of plans: what it learns of the automaton it keeps.
    """

    def __init__(
        self,
        source: CFG | Any,
        llm: str | LLM | Callable[..., Any] = "builtin",
        *,
        limits: Limits | None = None,
        constraints: Sequence[PDA] = (),
        lookahead: Literal["on", "off"] = "on",
        search: Literal["greedy"] = "greedy",
        wording: Wording | None = None,
        budget: Budget | None = None,
        tries: int = 3,
        max_states: int = 20_000,
        on_event: EventCallback | None = None,
    ) -> None:
        if lookahead not in ("on", "off"):
            raise ValueError(f"lookahead is 'on' or 'off', not {lookahead!r}")
        if search != "greedy":
            raise ValueError(f"search is 'greedy', not {search!r}")
        if tries < 1:
            raise ValueError("tries counts from 1")
        self.source = source
        self.llm = resolve(llm)
        self.limits = limits or Limits()
        self.constraints = tuple(constraints)
        self.lookahead = lookahead
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
            BudgetExceeded: the budget is used up; the partial plan is attached.
            LLMError: the LLM could not be asked.
        """
        return self.drive(self.start(task))

    def drive(self, walk: Walk) -> Plan:
        """Answer a walk's questions with this planner's LLM until its plan is finished."""
        on_event = self.on_event
        while (question := walk.question) is not None:
            if on_event is not None:
                on_event(Asked(question))
            answer = ask(self.llm, question, tries=self.tries)
            if on_event is not None:
                on_event(Answered(question, answer))
            walk.answer(answer)
        return walk.plan
