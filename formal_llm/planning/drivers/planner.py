"""The planner: walks an automaton and asks an LLM at each branch."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Container, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from formal_llm.automata import CFG, PDA, Limits, Source
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME, pause_garbage_collection
from formal_llm.errors import InvalidAnswer, WritesNoText
from formal_llm.llms.driven import adriven, driven
from formal_llm.llms.generation import TextLLM
from formal_llm.llms.llm import Asking, LLMLike, answered, attempts, resolve
from formal_llm.llms.question import Question
from formal_llm.llms.usage import NO_TOKENS, Prices, TokenUsage
from formal_llm.planning.drivers.batch import Outcome, TaskRunBatch
from formal_llm.planning.drivers.driving import Snapshot, Steps, WalkDriver, answer_while_pondering
from formal_llm.planning.drivers.search import best_first, greedy, sample
from formal_llm.planning.drivers.solving import Runner, Solution, TaskSolver, asolve_task, solve_task
from formal_llm.planning.drivers.streams import arun_batch, astream_outcomes, run_batch, stream_outcomes
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.source import source_of
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import QUESTIONS, Budget
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.events import Answered, Asked, EventCallback, Failed, Started
from formal_llm.planning.walks.pages import Pages
from formal_llm.planning.walks.walk import LookaheadMode, SharedSettings, Walk
from formal_llm.planning.walks.wording import Wording, adapt_wording

if TYPE_CHECKING:
    from formal_llm.planning.drivers.draft import Drafting
    from formal_llm.planning.drivers.stepping import Stepping


class PlansMany:
    """The methods of a planner for many tasks; the planner is a :class:`WalkDriver`."""

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
        """A plan for each task; many walks advance together, and one task's failure is its own.

        How they advance depends on the LLM: one that can be awaited has ``concurrency`` questions in flight; one that
        answers many questions together is asked ``concurrency`` at once; any other is asked one at a time, or from
        ``concurrency`` threads if that is given and above 1 (then it must allow being called from several threads).

        Args:
            tasks: the tasks; taken one by one as places become free, so a generator of many will do.
            concurrency: how many walks are under way at most.
            budget: what all plans together may use: questions, requests, tokens, cost (what each may use is the
                planner's own budget). It is looked at before each question, so at most the questions in flight go
                beyond it; what is not finished by then ends with ``BudgetExceeded``, its ``shared`` True.
            skip: places among the tasks, from 0, that are left out since they are done already.
            begun: for places among the tasks, from 0, the snapshot of a walk to continue (:meth:`Walk.snapshot`).
            on_outcome: called with each outcome as it comes. What it raises ends the run.

        Returns:
            One outcome for each task, in their order: the plan, or what went wrong.

        Raises:
            ValueError: a concurrency below 1; a budget of steps or backtracks, which only single plans have.
            RuntimeError: called from a coroutine; there :meth:`aplan_all` is awaited.
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
        """As :meth:`plan_all`, on the running event loop."""
        return await arun_batch(TaskRunBatch(self, tasks, budget, skip, begun, on_outcome), concurrency)

    def plan_each(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
    ) -> Generator[Outcome]:
        """As :meth:`plan_all`, but each outcome is handed out as it comes and then let go.

        For any number of tasks: no more plans are held than are under way, and a task is taken from ``tasks`` when a
        place is free and the outcome before was taken. Stopping early, with ``break`` or ``close()``, stops the
        run.

        Returns:
            The outcomes in the order in which the plans are finished; :attr:`Outcome.index` is the place of the task.
        """
        return stream_outcomes(TaskRunBatch(self, tasks, budget, skip, begun), concurrency)

    def aplan_each(
        self: WalkDriver,
        tasks: Iterable[str | Task],
        *,
        concurrency: int | None = None,
        budget: Budget | None = None,
        skip: Container[int] = (),
        begun: Mapping[int, Snapshot] | None = None,
    ) -> AsyncGenerator[Outcome]:
        """As :meth:`plan_each`, on the running event loop: ``async for outcome in planner.aplan_each(tasks)``."""
        return astream_outcomes(TaskRunBatch(self, tasks, budget, skip, begun), concurrency)


Search = Literal["greedy", "best-first", "sample", "draft"]
#: The goals and limits of tasks for which what was learnt is kept; the least recently used are dropped.
_TABLES = 64
#: What carrying out a plan gives.
R = TypeVar("R")


class PlannerSettings(SharedSettings, total=False):
    """The settings of a :class:`Planner`, for those who hand them on."""

    constraints: Sequence[PDA]
    search: Search
    seed: int
    length_penalty: float
    drafting: Drafting | None
    tries: int
    max_states: int
    solver: bool
    search_time: float | None


class Planner(PlansMany):
    """Makes plans that follow the rules of a grammar or automaton.

    Args:
        source: a grammar, a flowchart, a behaviour, or an automaton.
        llm: who answers: a provider string (``"openai:MODEL"``, ``"builtin"``, ...), a function of the question, or an
            object with ``choose``.
        limits: limits besides those of ``source``; of two limits on the same thing the tighter one counts.
        constraints: finite automata that the plan's word must satisfy as well.
        lookahead: ``"on"``: only options from which a valid plan can be finished are offered. ``"off"``: all that the
            automaton allows next; dead ends are left by backtracking.
        search: what becomes of the answers (see :mod:`formal_llm.planning.drivers.search`). ``"greedy"``: each is
            followed. ``"best-first"``: the plan is the one to which the answers together give the highest probability;
            this takes more questions, and an llm whose answers have probabilities. ``"sample"``: each choice is drawn
            from them. ``"draft"``: the llm writes a whole plan in one request, and is asked only where that leaves the
            rules (see :mod:`formal_llm.planning.drivers.draft`); it has to write free text.
        seed: where the draws of ``"sample"`` begin. They continue from plan to plan; in :meth:`plan_all` each task has
            its own, in whatever order answers come.
        length_penalty: of ``"best-first"``: 0 for the most probable plan; above 0, longer plans are favoured (see
            :func:`formal_llm.planning.drivers.search.best_first`).
        drafting: of ``"draft"``: when to draft anew.
        wording: how questions are put; where left out :meth:`Wording.default`, shortened for models that read so best.
        pages: the most options of a question, or :class:`~formal_llm.planning.walks.pages.Pages`: how a question with
            more of them is asked as several ones. None for no bound.
        budget: what each plan may use; where left out, 200 questions each time that a walk is driven. Walks that others
            take to their end (:meth:`start`, training) have no such bound.
        prices: what the model's tokens cost; then plans report their cost, and a budget may bound it.
        tries: how often one question is asked until the answer is legal.
        max_states: the budget of one lookahead query (see :class:`Lookahead`).
        solver: whether an integer program may decide what the lookahead's search does not (see :class:`Lookahead`).
        search_time: the seconds of search that a question may take; None for no bound (see :class:`ChoiceTable`).
        on_event: called with what happens (see :mod:`formal_llm.planning.walks.events`). ``"best-first"`` reports
            questions, answers and the finished plan, not of what happens on each of its branches.

    One planner serves any number of plans: what it learns of the automaton it keeps.

    Raises:
        TypeError: no rules, or no LLM; the message shows what to write instead.
        ValueError: a setting that is none, or that has no meaning with the others.
        UnknownProvider, MissingKey: no such LLM, or one without its key.
        WritesNoText: drafts are wanted of an LLM that only chooses.
    """

    def __init__(
        self,
        source: Source,
        llm: LLMLike = "builtin",
        *,
        limits: Limits | None = None,
        constraints: Sequence[PDA] = (),
        lookahead: LookaheadMode = "on",
        search: Search = "greedy",
        seed: int = 0,
        length_penalty: float = 0.0,
        drafting: Drafting | None = None,
        wording: Wording | None = None,
        pages: Pages | int | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
        tries: int = 3,
        max_states: int = 20_000,
        solver: bool = True,
        search_time: float | None = SEARCH_TIME,
        on_event: EventCallback | None = None,
    ) -> None:
        if lookahead not in ("on", "off"):
            raise ValueError(f"lookahead is 'on' or 'off', not {lookahead!r}")
        if search not in (known := get_args(Search)):
            raise ValueError(f"search is one of {', '.join(map(repr, known))}, not {search!r}")
        if length_penalty and search != "best-first":
            raise ValueError(f"a length_penalty is for search='best-first', not for {search!r}")
        if length_penalty < 0:
            raise ValueError(f"length_penalty is 0 or more, not {length_penalty}")
        if drafting is not None and search != "draft":
            raise ValueError(f"a drafting is for search='draft', not for {search!r}")
        if tries < 1:
            raise ValueError("tries counts from 1")
        (budget or Budget()).check(prices)
        self._given = source
        self.source = source_of(source)
        self.llm = resolve(llm)
        if search == "draft" and not isinstance(self.llm, TextLLM):
            raise WritesNoText(self.llm, "draft a plan", "let it choose: search='greedy'")
        self.limits = limits or Limits()
        self.constraints = tuple(constraints)
        self.lookahead = lookahead
        self.search: Search = search
        self.length_penalty = length_penalty
        self.drafting = drafting
        self.seed = seed
        self._random = random.Random(seed)
        self.wording = (wording or adapt_wording(Wording(), self.llm)).settled(self.source)
        self.pages = Pages.of(pages)
        #: The budget of walks by default; while this planner asks, questions are bounded as well.
        self._usual = Budget()
        self.budget = budget or self._usual
        self.prices = prices
        self.tries = tries
        self.max_states = max_states
        self.solver = solver
        self.search_time = search_time
        self.on_event = on_event
        self._tables: dict[tuple[str | None, Limits], ChoiceTable] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_tables": {}}  # what was learnt of the automaton is learnt anew

    def table(self, task: str | Task = "") -> ChoiceTable:
        """The choices of this planner's automaton, under the goal and the limits of a task; shared by its walks."""
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
        elif [key] != list(self._tables)[-1:]:
            self._tables.pop(key, None)
            self._tables[key] = table
        return table

    def start(self, task: str | Task, *, name: str = "") -> Walk:
        """A walk for ``task``, before its first question; it has a name where several are under way.

        Raises:
            NoValidPlan: nothing follows all the rules; the message names the symbols, limits or constraints are to
                blame.
        """
        return Walk(self.table(task), task, name=name, **self._walk_settings)

    def resume(self, snapshot: Snapshot | str, task: str | Task | None = None, *, name: str = "") -> Walk:
        """The walk of a snapshot (see :meth:`Walk.restore`); it has a name where several are under way.

        The task is needed where it had a goal, limits or inputs of its own; else its description is in the snapshot.
        """
        table, settings = self.table("" if task is None else task), self._walk_settings
        if task is None:
            return Walk.restore(snapshot, table, **settings, name=name)
        return Walk.restore(snapshot, table, **settings, name=name, task=task)

    def step_through(self, task: str | Task = "") -> Stepping:
        """A plan for ``task`` that you make yourself, a choice at a time: see where it stands, choose, go back.

        Raises:
            NoValidPlan: as :meth:`start`.
        """
        from formal_llm.planning.drivers.stepping import Stepping  # pictures and reasons; a plan needs neither

        goal, rules = Task.of(task).goal, self._given
        return Stepping(self.start(task), rules.with_start(goal) if goal and isinstance(rules, CFG) else rules)

    @property
    def _walk_settings(self) -> SharedSettings:
        """What every walk of this planner is given."""
        return {
            "wording": self.wording, "pages": self.pages, "budget": self.budget, "prices": self.prices,
            "on_event": self.on_event,
        }  # fmt: skip

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

    async def aplan(self, task: str | Task) -> Plan:
        """As :meth:`plan`, without blocking the event loop while the LLM answers."""
        return await self.adrive(self.start(task))

    def drive(self, walk: Walk) -> Plan:
        """Answer a walk's questions with this planner's LLM, as its search has it, until the plan is finished."""
        driven(self.steps(walk), partial(answered, self.llm))
        return walk.plan

    async def adrive(self, walk: Walk) -> Plan:
        """As :meth:`drive`, without blocking the event loop while the LLM answers."""
        await adriven(self.steps(walk), partial(answer_while_pondering, self.llm, walk))
        return walk.plan

    def steps(self, walk: Walk, rng: random.Random | None = None) -> Steps:
        """The questions that take a walk to its end as this planner's search has it, bad answers asked again.

        A generator without input or output of its own, for those who answer questions in their own way: it yields a
        question, and is sent an answer to it, or an ``InvalidAnswer`` is thrown in. Then :attr:`Walk.plan` is there.
        The draws of ``"sample"`` come from ``rng``, or from the planner's own.
        """
        told = self.on_event
        if told is not None and not walk.answered:
            told(Started(walk.task, walk.name, id=walk.id))
        given = walk.budget
        bounded = Budget(walk.answered + QUESTIONS) if given is self._usual else given
        walk.budget = bounded
        try:
            yield from self._start_search(walk, rng)
        except BaseException as error:  # also where no answer is wanted any more
            if told is not None:
                told(Failed(error, walk.usage, walk.name, id=walk.id))
            raise
        finally:
            if walk.budget is bounded:
                walk.budget = given

    def _start_search(self, walk: Walk, rng: random.Random | None) -> Steps:
        ask = partial(self._ask_question, walk)
        if self.search == "best-first":
            return best_first(walk, ask, length_penalty=self.length_penalty)
        if self.search == "sample":
            return sample(walk, rng or self._random, ask)
        if self.search == "draft":
            from formal_llm.planning.drivers.draft import draft_and_mend  # reads free text; other searches do not

            return draft_and_mend(walk, ask, self.drafting, on_event=self.on_event)
        return greedy(walk, ask)

    def _ask_question(self, walk: Walk, question: Question) -> Asking:
        """Ask a question until its answer is legal, within the walk's budget; failed attempts count as well."""
        told = self.on_event
        if told is not None:
            told(Asked(question, id=walk.id))
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
        if told is not None:
            told(Answered(question, answer, id=walk.id))
        return answer

    # -- planning and carrying out ------------------------------------------------------------------------------

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

        What the toolkit cannot do, and inputs that are not given, are not planned with. A tool that fails rules out the
        branch that led to it, and planning continues from there (:meth:`Walk.rule_out`); one that has failed
        ``patience`` times is planned without. So a broken tool costs a detour and not the task.

        Args:
            task: the task.
            inputs: the inputs by terminal.
            toolkit: what carries plans out: a :class:`~formal_llm.tools.Toolkit`, or an
                :class:`~formal_llm.tools.Executor` with settings of its own.
            replans: how many plans may fail; None for no bound.
            patience: how often a tool may fail before it is planned without.

        Raises:
            NoValidPlan: nothing follows all the rules with these tools and inputs; before the first question is asked.
            NoPlanWorked: no plan is left that does without the tools that failed, or the replans are used up; names the
                tools.
            ToolkitError, InputError: tools or inputs do not fit the plan.
            InvalidAnswer, BudgetExceeded, LLMError: as :meth:`plan` does.
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
        """As :meth:`solve_task`, without blocking the event loop while the LLM and the tools work."""
        return await asolve_task(TaskSolver(self, task, inputs, toolkit, replans=replans, patience=patience))
