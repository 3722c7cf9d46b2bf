"""The planner: walks an automaton and asks an LLM at each branch."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Container, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from formal_llm.automata import PDA, Limits, Source
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME, pause_garbage_collection
from formal_llm.automata.models.quantities import Number
from formal_llm.errors import InvalidAnswer, WritesNoText
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.llm import Asking, attempts
from formal_llm.llms.providers import LLMLike, resolve
from formal_llm.llms.question import Question
from formal_llm.llms.usage import NO_TOKENS, Prices, TokenUsage
from formal_llm.planning.drivers.batch import Keeping, Outcome, TaskRunBatch
from formal_llm.planning.drivers.driving import Snapshot, Steps, WalkDriver
from formal_llm.planning.drivers.search import best_first, greedy, sample
from formal_llm.planning.drivers.solving import Runner, Solution, TaskSolver, asolve_task, solve_task
from formal_llm.planning.drivers.streams import arun_batch, astream_outcomes, run_batch, stream_outcomes
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.source import limits_of, source_of, with_rules
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import QUESTIONS, Budget
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.events import Answered, Asked, EventCallback, Failed, Started
from formal_llm.planning.walks.pages import Pages
from formal_llm.planning.walks.walk import LookaheadMode, SharedSettings, Walk
from formal_llm.planning.walks.wording import Wording, adapt_wording

if TYPE_CHECKING:
    from formal_llm.automata import WeightedRules


class PlansMany:
    """The methods of a planner that plan many tasks; the planner is a :class:`WalkDriver`."""

    def plan_all(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> list[Outcome]:
        """Plan each task; many walks advance together, and the failure of one task does not affect the others.

        How they advance depends on the LLM: an awaitable one has ``concurrency`` questions in flight; one that answers
        batches gets ``concurrency`` questions at once; any other is asked one question at a time, or from
        ``concurrency`` threads if that is given and above 1 (then it must be thread-safe).

        Args:
            tasks: the tasks; consumed one by one as slots become free, so a generator works too.
            concurrency: the maximum number of walks in progress.
            budget: what all plans together may use: questions, requests, tokens, cost (the planner's own budget bounds
                each plan). It is checked before each question, so at most the questions in flight exceed it; every
                unfinished task then ends with a ``BudgetExceeded`` whose ``shared`` is True.
            skip: indices of tasks, from 0, to skip because they are already done.
            begun: snapshots of walks to continue (:meth:`Walk.snapshot`), by the index of their task, from 0.
            on_outcome: called with each outcome as soon as it is known. An exception that it raises ends the run.

        Returns:
            One outcome for each task, in the order of the tasks: the plan, or the error.

        Raises:
            ValueError: a concurrency below 1; a budget of steps or backtracks, which only single plans have.
            RuntimeError: called from a coroutine; await :meth:`aplan_all` there.
        """
        return run_batch(TaskRunBatch(self, tasks, budget, skip, begun, on_outcome), concurrency)

    async def aplan_all(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
        on_outcome: Callable[[Outcome], None] | None = None,
    ) -> list[Outcome]:
        """Plan each task as :meth:`plan_all` does, on the running event loop."""
        return await arun_batch(TaskRunBatch(self, tasks, budget, skip, begun, on_outcome), concurrency)

    def plan_each(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
        keeping: Keeping | None = None,
    ) -> Generator[Outcome]:
        """Plan as :meth:`plan_all` does, but yield each outcome as soon as it is known, without keeping it.

        Suitable for any number of tasks: only plans in progress are held in memory, and the next task is taken from
        ``tasks`` only when a slot is free and the previous outcome was consumed. Stopping early, with ``break`` or
        ``close()``, stops the run, and the answers in flight are lost; see :class:`Keeping` for another way.

        The arguments are those of :meth:`plan_all`; ``keeping`` keeps answers beyond the end of the run, in a journal,
        and has a way to stop it.

        Returns:
            The outcomes in the order in which the plans are finished; :attr:`Outcome.index` identifies the task.
        """
        return stream_outcomes(TaskRunBatch(self, tasks, budget, skip, begun, keeping=keeping), concurrency)

    def aplan_each(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
        keeping: Keeping | None = None,
    ) -> AsyncGenerator[Outcome]:
        """Plan as :meth:`plan_each` does, asynchronously: ``async for outcome in planner.aplan_each(tasks)``."""
        return astream_outcomes(TaskRunBatch(self, tasks, budget, skip, begun, keeping=keeping), concurrency)


Search = Literal["greedy", "best-first", "sample", "draft", "exact"]
#: The maximum number of choice tables kept, one for each goal and limits of a task; the least recently used one goes.
_TABLES = 64
#: With more steps than this, a draft is asked for only where ``search`` says so: the request shows all of them.
_SHOWN_STEPS = 200
#: The result of carrying out a plan.
R = TypeVar("R")


class PlannerSettings(SharedSettings, total=False):
    """The settings of a :class:`Planner`, for functions that pass them on."""

    rules: Sequence[str]
    constraints: Sequence[PDA]
    search: Search | None
    seed: int
    length_penalty: float
    tries: int
    max_states: int
    solver: bool
    search_time: float | None
    patience: float


class Planner(PlansMany):
    """Makes plans that follow the rules of a grammar or automaton.

    Args:
        source: a grammar, a flowchart, a behaviour, or an automaton.
        llm: the model that answers: a provider string (``"openai:MODEL"``, ``"builtin"``, ...), a function of the
            question, or an object with ``choose``.
        limits: limits besides those of ``source``; of two limits on the same thing the tighter one counts. A mapping
            has the most uses of steps and the most that quantities may sum to: ``{"scan": 1, "cost": 5}``.
        rules: rules about order besides those of ``source``: sentences (``"backup before migrate"``) or formulas.
        constraints: finite automata that the plan's word must satisfy as well.
        lookahead: ``"on"`` to offer only options from which a valid plan can be finished; ``"off"`` to offer everything
            that the automaton allows next, and to backtrack from dead ends.
        search: how answers become a plan (see :mod:`formal_llm.planning.drivers.search`). ``"greedy"`` follows each
            answer. ``"best-first"`` finds the plan to which the answers together give the highest probability; it asks
            more questions and needs an LLM whose answers have probabilities. ``"sample"`` draws each choice from these
            probabilities. ``"draft"`` lets the LLM write a whole plan in one request and asks only where it violates
            the rules (see :mod:`formal_llm.planning.drivers.draft`); the LLM must be able to write free text.
            ``"exact"`` asks one question about all steps and finds the best plan by the answer (see
            :mod:`formal_llm.planning.drivers.exact`). None: ``"exact"`` for an LLM that answers best so
            (``minilm-planner``) if the rules can be weighed; ``"draft"`` for one that writes (hosted models) if there
            are at most 200 steps; otherwise ``"greedy"``, the search of Formal-LLM.
        seed: the seed of ``"sample"``. The draws continue from plan to plan; in :meth:`plan_all` each task has its own
            draws, independent of the order of the answers.
        length_penalty: for ``"best-first"``: 0 for the most probable plan; above 0, longer plans are favoured (see
            :func:`formal_llm.planning.drivers.search.best_first`).
        wording: how questions are phrased; by default :class:`Wording`, shortened for models that prefer it.
        pages: the maximum number of options of a question, or :class:`~formal_llm.planning.walks.pages.Pages`: how a
            question with more options is split into several. None for no bound.
        budget: what each plan may use; by default 200 questions each time a walk is driven. Walks that are driven by
            other code (:meth:`start`, training) have no such bound.
        prices: the prices of tokens; with them plans report their cost, and a budget may bound it.
        tries: how often a question is asked until the answer is legal.
        max_states: the budget of one lookahead query (see :class:`Lookahead`).
        solver: whether an integer program may decide what the lookahead's search does not (see :class:`Lookahead`).
        search_time: the seconds of search that a question may take; None for no bound (see :class:`ChoiceTable`).
        patience: after two dead ends of a walk a question may be searched 4 times as long, after four 20 times; these
            are the seconds for all such questions of a walk together, 0 for none.
        on_event: called with each event (see :mod:`formal_llm.planning.walks.events`). ``"best-first"`` reports
            questions, answers and the finished plan, but no events of its individual branches.

    A planner can make any number of plans: it keeps what it has computed about the automaton.

    Raises:
        TypeError: the rules or the LLM have the wrong type; the message suggests what to write instead.
        ValueError: a setting is invalid, or meaningless in combination with the others.
        UnknownProvider, MissingKey: there is no such LLM, or its key is missing.
        WritesNoText: ``"draft"`` was requested with an LLM that only chooses.
    """

    def __init__(
        self,
        source: Source,
        llm: LLMLike = "builtin",
        *,
        limits: Limits | Mapping[str, Number] | None = None,
        rules: Sequence[str] = (),
        constraints: Sequence[PDA] = (),
        lookahead: LookaheadMode = "on",
        search: Search | None = None,
        seed: int = 0,
        length_penalty: float = 0.0,
        wording: Wording | None = None,
        pages: Pages | int | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
        tries: int = 3,
        max_states: int = 20_000,
        solver: bool = True,
        search_time: float | None = SEARCH_TIME,
        patience: float = ChoiceTable.patience,
        on_event: EventCallback | None = None,
    ) -> None:
        if lookahead not in ("on", "off"):
            raise ValueError(f"lookahead is 'on' or 'off', not {lookahead!r}")
        if search not in (None, *(known := get_args(Search))):
            raise ValueError(f"search is one of {', '.join(map(repr, known))}, not {search!r}")
        if length_penalty and search != "best-first":
            raise ValueError(f"a length_penalty is for search='best-first', not for {search!r}")
        if length_penalty < 0:
            raise ValueError(f"length_penalty is 0 or more, not {length_penalty}")
        if not patience >= 0:
            raise ValueError(f"patience counts seconds from 0, not {patience}")
        if tries < 1:
            raise ValueError("tries counts from 1")
        (budget or Budget()).check(prices)
        self.source = source_of(with_rules(source, rules))
        self.llm = resolve(llm)
        if search == "draft" and "write" not in self.llm.can:
            raise WritesNoText(self.llm, "draft a plan", "let it choose: search='greedy'")
        self.limits = limits_of(limits, self.source)
        self.constraints = tuple(constraints)
        self.lookahead = lookahead
        self.search: Search | None = search
        self.length_penalty = length_penalty
        self.seed = seed
        self._random = random.Random(seed)
        self.wording = wording or adapt_wording(Wording(), self.llm)
        self.pages = Pages.of(pages)
        #: The budget of walks if none was given; while this planner drives one, its questions are bounded as well.
        self._usual = Budget()
        self.budget = budget or self._usual
        self.prices = prices
        self.tries = tries
        self.max_states = max_states
        self.solver = solver
        self.search_time, self.patience = search_time, patience
        self.on_event = on_event
        self._tables: dict[tuple[str | None, Limits], ChoiceTable] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_tables": {}}  # what was computed about the automaton is computed again

    def table(self, task: str | Task = "") -> ChoiceTable:
        """Return the choices of the automaton under the goal and limits of a task; all its walks share them."""
        task = Task.of(task)
        key = (task.goal, task.limits)
        table = self._tables.get(key)
        if table is None:
            for oldest in list(self._tables)[: 1 - _TABLES]:
                self._tables.pop(oldest, None)
            with pause_garbage_collection():
                table = self._tables[key] = ChoiceTable.of(
                    self.source, goal=task.goal, limits=self.limits & task.limits, constraints=self.constraints,
                    lookahead=self.lookahead, max_states=self.max_states, solver=self.solver,
                    search_time=self.search_time,
                )  # fmt: skip
            table.patience = self.patience
        elif [key] != list(self._tables)[-1:]:
            self._tables.pop(key, None)
            self._tables[key] = table
        return table

    def start(self, task: str | Task, *, name: str = "") -> Walk:
        """Start a walk for ``task``, before its first question; the name distinguishes it from concurrent ones.

        Raises:
            NoValidPlan: no plan follows all the rules; the error names the symbols, limits or constraints to blame.
        """
        return Walk(self.table(task), task, name=name, **self._walk_settings)

    def resume(self, snapshot: Snapshot | str, task: str | Task | None = None, *, name: str = "") -> Walk:
        """Restore a walk from a snapshot (see :meth:`Walk.restore`); the name distinguishes it from concurrent ones.

        The task is needed if it has a goal, limits or inputs of its own; otherwise the snapshot's description suffices.
        """
        table, settings = self.table("" if task is None else task), self._walk_settings
        if task is None:
            return Walk.restore(snapshot, table, **settings, name=name)
        return Walk.restore(snapshot, table, **settings, name=name, task=task)

    @property
    def _walk_settings(self) -> SharedSettings:
        return {
            "wording": self.wording, "pages": self.pages, "budget": self.budget, "prices": self.prices,
            "on_event": self.on_event,
        }  # fmt: skip

    def plan(self, task: str | Task) -> Plan:
        """Make a plan for ``task``: a word of the language within all limits, whatever the LLM answers.

        Raises:
            NoValidPlan: no plan follows all the rules; raised before the first question.
            InvalidAnswer: the LLM gave no legal answer to a question within ``tries`` attempts.
            BudgetExceeded: the budget is used up; the partial plan is attached (for ``"best-first"``, the best finished
                plan so far, if there is one).
            LLMError: the LLM could not be asked.
        """
        return self.drive(self.start(task))

    async def aplan(self, task: str | Task) -> Plan:
        """Make a plan as :meth:`plan` does, without blocking the event loop."""
        return await self.adrive(self.start(task))

    def weigh(self, task: str | Task) -> WeightedRules:
        """Ask one question about the steps of a plan, and return the distribution over all plans by the answer.

        Its best plan is that of ``search="exact"``. It also has the k best plans, and samples.

        Raises:
            NoValidPlan: no plan follows all the rules.
            AutomatonError, InfiniteLanguage, Undecided: the rules cannot be weighed (:class:`WeightedRules`).
            InvalidAnswer, BudgetExceeded, LLMError: as in :meth:`plan`.
        """
        from formal_llm.planning.drivers.exact import ask_weights, weigh_steps

        walk = self.start(task)
        weigh_steps(walk.table)  # before anything is asked
        return driven(ask_weights(walk, partial(self._ask_question, walk)), self.llm.ask)

    def drive(self, walk: Walk) -> Plan:
        """Answer a walk's questions with this planner's LLM and search until the plan is finished."""
        driven(self.steps(walk), self.llm.ask)
        return walk.plan

    async def adrive(self, walk: Walk) -> Plan:
        """Drive a walk as :meth:`drive` does, without blocking the event loop."""
        await adriven(self.steps(walk), self.llm.aask)
        return walk.plan

    def steps(self, walk: Walk, rng: random.Random | None = None) -> Steps:
        """Yield the questions that take a walk to its end with this planner's search, repeated after bad answers.

        A generator without I/O, for code that answers questions in its own way: it yields a question and expects the
        answer to be sent, or an ``InvalidAnswer`` to be thrown. When it ends, :attr:`Walk.plan` is available.
        ``"sample"`` draws from ``rng``, by default from the planner's own generator.
        """
        callback = self.on_event
        if callback is not None and not walk.answered:
            callback(Started(walk.task, walk.name, id=walk.id))
        budget = walk.budget
        bounded = Budget(walk.answered + QUESTIONS) if budget is self._usual else budget
        walk.budget = bounded
        try:
            yield from self._start_search(walk, rng)
        except BaseException as error:  # including GeneratorExit: the caller has closed the generator
            if callback is not None:
                callback(Failed(error, walk.usage, walk.name, id=walk.id))
            raise
        finally:
            if walk.budget is bounded:
                walk.budget = budget

    def _start_search(self, walk: Walk, rng: random.Random | None) -> Steps:
        ask = partial(self._ask_question, walk)
        if self.search == "best-first":
            return best_first(walk, ask, length_penalty=self.length_penalty)
        if self.search == "sample":
            return sample(walk, rng or self._random, ask)
        knows = self.llm.knows_steps if self.search is None else None
        if self.search == "exact" or knows is not None:
            from formal_llm.planning.drivers.exact import find_steps, plan_at_once  # numpy, unlike other searches

            if knows is None or knows(find_steps(walk.table)):
                return plan_at_once(walk, ask, or_greedy=self.search is None)
        if self.search == "draft" or (self.search is None and self._may_draft(walk)):
            from formal_llm.planning.drivers.draft import draft_and_mend  # parses free text, unlike other searches

            return draft_and_mend(walk, ask, on_event=self.on_event)
        return greedy(walk, ask)

    def _may_draft(self, walk: Walk) -> bool:
        """Whether the LLM plans best by drafts, and the steps can be shown."""
        return self.llm.drafts and len(list(walk.table.vocabulary.terminals)) <= _SHOWN_STEPS

    def _ask_question(self, walk: Walk, question: Question) -> Asking:
        """Ask a question until its answer is legal, within the walk's budget, charging the walk for failed attempts."""
        callback = self.on_event
        if callback is not None:
            callback(Asked(question, id=walk.id))
        vain = NO_TOKENS

        def before_again(usage: TokenUsage) -> None:
            nonlocal vain
            vain = usage
            if walk.budget.metered:
                walk.afford(usage)

        try:
            answer = yield from attempts(question, self.tries, before_again)
        except BaseException as error:
            usage = error.usage if isinstance(error, InvalidAnswer) else None
            walk.charge(usage or vain)
            raise
        if callback is not None:
            callback(Answered(question, answer, id=walk.id))
        return answer

    def solve(
        self,
        task: str | Task,
        inputs: Mapping[str, object],
        toolkit: Runner[R],
        *,
        replans: int | None = 50,
        patience: int = 2,
    ) -> Solution[R]:
        """Plan, carry the plan out, and plan around tools that fail.

        Plans use only what the toolkit can do and the inputs that are given. When a tool fails, the branch that led to
        it is ruled out and planning continues from there (:meth:`Walk.rule_out`); a tool that has failed
        ``patience`` times is excluded from planning. So a broken tool costs a detour, not the task.

        Args:
            task: the task.
            inputs: the inputs by terminal.
            toolkit: what carries plans out: a :class:`~formal_llm.tools.Toolkit`, or an
                :class:`~formal_llm.tools.Executor` with settings of its own.
            replans: how many plans may fail; None for no bound.
            patience: how often a tool may fail before it is excluded.

        Raises:
            NoValidPlan: no plan follows all the rules with these tools and inputs; raised before the first question.
            NoPlanWorked: every remaining plan uses a tool that failed, or the replans are used up; the error names the
                tools.
            ToolkitError, InputError: tools or inputs do not fit the plan.
            InvalidAnswer, BudgetExceeded, LLMError: as in :meth:`plan`.
        """
        return solve_task(TaskSolver(self, task, inputs, toolkit, replans=replans, patience=patience))

    async def asolve(
        self,
        task: str | Task,
        inputs: Mapping[str, object],
        toolkit: Runner[R],
        *,
        replans: int | None = 50,
        patience: int = 2,
    ) -> Solution[R]:
        """Solve a task as :meth:`solve` does, without blocking the event loop."""
        return await asolve_task(TaskSolver(self, task, inputs, toolkit, replans=replans, patience=patience))
