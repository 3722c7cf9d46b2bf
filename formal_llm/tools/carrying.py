"""Carrying plans out: one step after the other, pure ones side by side where the rules allow it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from formal_llm.automata import PDA
from formal_llm.automata.models.symbols import turn_word
from formal_llm.errors import Cancelled, ExecutionError, InputError, ToolError
from formal_llm.llms.llm import LLM
from formal_llm.llms.usage import NO_TOKENS, TokenUsage
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.calling import Caller, error_line
from formal_llm.tools.filling import fill_arguments
from formal_llm.tools.kinds import Kind, Value
from formal_llm.tools.order import Clock, SystemClock, Timekeeper
from formal_llm.tools.result import OnProgress, Progress, ProgressEvent, Result, StepResult, StepState
from formal_llm.tools.steps import Argument, PlannedStep, PlannedSteps
from formal_llm.tools.store import Store, step_key
from formal_llm.tools.tool import Tool

#: The interval in seconds at which is checked whether a run was cancelled.
_POLL = 0.02

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What became of a step; for its attributes see :class:`~formal_llm.tools.result.StepResult`."""

    value: Value | None
    state: StepState
    seconds: float = 0.0
    tries: int = 0


@dataclass(eq=False)
class PlanRun:
    """A plan that is being carried out.

    Attributes:
        index: its position among the plans that are executed together.
        timekeeper: keeps the timetable of its rules; None if there is none.
        uses: how many steps still take each result, by the position of its step.
        usage: what a model that writes arguments has used.
        outcomes: what became of each step, by its position.
        ended: set when a step of the group that is under way has ended, by its position.
    """

    index: int
    steps: PlannedSteps
    timekeeper: Timekeeper | None
    uses: Counter[int]
    outcomes: dict[int, CallOutcome]
    ended: dict[int, asyncio.Event] = field(default_factory=dict)
    usage: TokenUsage = NO_TOKENS


class PlansRun:
    """Carries out several plans at once, each in its own order.

    Args:
        caller, store, llm, clock, wait: of the executor.
        workers: the maximum number of calls at once.
        batch_size: the maximum number of calls passed at once to a tool that can process several together.
        keep: whether results keep all their values, or only the last one.
        cancel: when it is set, everything unfinished ends with ``Cancelled``.
        on_progress: called with each event, in the thread of the loop.
    """

    def __init__(
        self,
        caller: Caller,
        store: Store,
        llm: LLM | None,
        clock: Clock | None,
        *,
        wait: bool,
        workers: int,
        batch_size: int,
        keep: bool,
        cancel: threading.Event | None,
        on_progress: OnProgress | None,
    ) -> None:
        self._caller = caller
        self._store = store
        self._llm = llm
        self._clock, self._wait = clock, wait
        self._batch_size = batch_size
        self._keep = keep
        self._cancel = cancel
        self._on_progress = on_progress
        self._slots = asyncio.Semaphore(workers)
        #: The pure calls that are under way, by the keys of their results.
        self._flights: dict[str, asyncio.Task[CallOutcome]] = {}
        self._batches: dict[str, _Batches] = {}
        self._done = self._total = 0

    async def run_plans(self, plans: Sequence[tuple[int, PlannedSteps]], after: Result | None = None) -> list[Result]:
        """Return the result of each plan, in order; an exception in ``on_progress`` ends the run.

        ``after`` has what was done of another plan, see :meth:`Executor.run`.
        """
        self._total = sum(step.tool is not None for _, steps in plans for step in steps)
        tasks = [asyncio.create_task(self._carry_out(index, steps, after)) for index, steps in plans]
        watch = asyncio.create_task(self._watch(tasks))
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in (*tasks, *self._flights.values(), watch):
                task.cancel()

    async def _watch(self, tasks: Sequence[asyncio.Task[Result]]) -> None:
        while self._cancel is not None:
            await asyncio.sleep(_POLL)
            if self._cancel.is_set():
                for task in tasks:
                    task.cancel()

    async def _carry_out(self, index: int, steps: PlannedSteps, after: Result | None) -> Result:
        begin = time.perf_counter()
        uses = Counter(position for step in steps for position in step.takes)
        given = {step.position: CallOutcome(step.given, "given") for step in steps if step.given is not None}
        run = PlanRun(index, steps, self._make_timekeeper(steps.plan), uses, given)
        if after is not None:
            _take_over(run, after)
        error: ExecutionError | None = None
        try:
            for group in steps.groups:
                await self._carry_out_group(run, group)
        except ExecutionError as caught:
            error = caught
        except asyncio.CancelledError:
            error = Cancelled()
        result = self._make_result(run, error, time.perf_counter() - begin)
        if isinstance(error, (ToolError, Cancelled)):
            error.result = result
        return result

    def _make_timekeeper(self, plan: Plan) -> Timekeeper | None:
        rules = plan.rules
        if not self._wait or not isinstance(rules, PDA) or not rules.times:
            return None
        numbers = {name: symbol.numbers for name, symbol in rules.symbols.items()}
        seconds = {name: rules.times.seconds(numbers, name) for name in rules.terminals}
        return Timekeeper(rules.times, seconds, self._clock or SystemClock())

    async def _carry_out_group(self, run: PlanRun, group: Sequence[PlannedStep]) -> None:
        """Carry out steps side by side, each after those whose results it takes. The first that fails ends them."""
        run.ended = {step.position: asyncio.Event() for step in group}
        if len(group) == 1:
            await self._carry_out_step(run, group[0])
        else:
            await asyncio.gather(*(self._carry_out_step(run, step) for step in group))

    async def _carry_out_step(self, run: PlanRun, step: PlannedStep) -> None:
        for position in step.takes:
            if position in run.ended:
                await run.ended[position].wait()
        if step.tool is not None and step.position not in run.outcomes:
            run.outcomes[step.position] = await self._carry_out_call(run, step, step.tool)
        elif step.is_decision:
            run.outcomes[step.position] = CallOutcome(None, "decided")
        run.ended[step.position].set()

    async def _carry_out_call(self, run: PlanRun, step: PlannedStep, tool: Tool) -> CallOutcome:
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled
        try:
            if run.timekeeper is not None:
                await run.timekeeper.await_begin(step.name)
            outcome = await self._call_tool(run, step, tool)
            if run.timekeeper is not None:
                run.timekeeper.note_end(step.name)
        except ToolError as error:
            run.outcomes[step.position] = CallOutcome(None, "failed")
            self._done += 1
            self._notify("failed", run, step)
            shown = next((one for one in run.steps.plan.steps if one.position == step.position), None)
            raise error.at(step.position, shown) from error.cause
        self._done += 1
        self._notify("cached" if outcome.state == "cached" else "executed", run, step, outcome.seconds)
        return outcome

    async def _call_tool(self, run: PlanRun, step: PlannedStep, tool: Tool) -> CallOutcome:
        parameters = tool.signature.by_name
        filled: Mapping[str, Value] = {}
        if step.asked:
            assert self._llm is not None
            known = [*_list_known(run)]
            filled, used = await asyncio.to_thread(
                fill_arguments, self._llm, run.steps.plan.task, tool, step.asked, known
            )
            run.usage += used
        inputs = [
            filled[one.name] if value is None else self._take(run, value, one.kind, tool)
            for value, one in zip(step.arguments, tool.signature.required, strict=True)
        ]
        named = {name: self._take(run, one, parameters[name].kind, tool) for name, one in step.named.items()}
        key = step_key(tool, inputs, named)
        if key is None:
            return await self._make(run, step, tool, inputs, named)
        flight = self._flights.get(key)
        if flight is not None:
            self._store.count_calls(shared=1)
            return CallOutcome((await asyncio.shield(flight)).value, "cached")
        flight = self._flights[key] = asyncio.create_task(self._find_or_make(key, run, step, tool, inputs, named))
        flight.add_done_callback(lambda landed: self._land(key, landed))
        return await asyncio.shield(flight)

    def _take(self, run: PlanRun, argument: Argument, kind: Kind, tool: Tool) -> Value:
        """Return the value of an argument; the last step that takes a result lets go of it."""
        if isinstance(argument, Value):
            value = argument
        else:
            taken = run.outcomes[argument].value
            assert taken is not None
            value = taken
            run.uses[argument] -= 1
            if not run.uses[argument] and not self._keep and self._llm is None:
                run.outcomes[argument] = replace(run.outcomes[argument], value=None)
        try:
            return value if value.kind == kind else Value(kind, kind.accept(value.copy()))
        except InputError as error:
            raise ToolError(tool.name, f"was given what it does not take: {error}", reason="kind") from error

    def _land(self, key: str, flight: asyncio.Task[CallOutcome]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # those who wait for it have it; there may be none left

    async def _find_or_make(
        self, key: str, run: PlanRun, step: PlannedStep, tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value]
    ) -> CallOutcome:
        known = await self._in_thread(partial(self._store.find_result, key, tool.output))
        if known is not None:
            return CallOutcome(known, "cached")
        outcome = await self._make(run, step, tool, inputs, named)
        assert outcome.value is not None
        try:
            await self._in_thread(partial(self._store.keep_result, key, outcome.value))
        except Exception as error:  # of the kind's own functions
            problem = f"returned a value that cannot be kept: {error_line(error)}"
            raise ToolError(tool.name, problem, reason="kind", cause=error) from error
        return outcome

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Do work of the store: in a thread, where it reads and writes files."""
        return work() if self._store.cache is None else await asyncio.to_thread(work)

    async def _make(
        self, run: PlanRun, step: PlannedStep, tool: Tool, inputs: Sequence[Value], named: Mapping[str, Value]
    ) -> CallOutcome:
        if tool.batch is not None and not named and self._batch_size > 1:
            batches = self._batches.setdefault(tool.name, _Batches(tool, self._caller, self._slots, self._batch_size))
            self._notify("started", run, step)
            outcome = await batches.call(inputs)
        else:
            async with self._slots:
                self._notify("started", run, step)
                begin = time.perf_counter()
                value, tries = await self._caller.acall(tool, inputs, named)
                outcome = CallOutcome(value, "executed", time.perf_counter() - begin, tries)
        self._store.count_calls(executed=1)
        return outcome

    def _notify(self, event: ProgressEvent, run: PlanRun, step: PlannedStep, seconds: float = 0.0) -> None:
        if self._on_progress is not None:
            self._on_progress(Progress(event, step.name, run.index, step.position, self._done, self._total, seconds))

    def _make_result(self, run: PlanRun, error: ExecutionError | None, seconds: float) -> Result:
        last = next((step.position for step in reversed([*run.steps]) if not step.is_decision), None)
        steps, cost = [], 0.0
        for step in sorted(run.steps, key=lambda step: step.position):
            outcome = run.outcomes.get(step.position, CallOutcome(None, "not run"))
            value = outcome.value if self._keep or step.position == last else None
            steps.append(
                StepResult(
                    step.position, step.name, step.label, outcome.state, value, tuple(step.takes), outcome.seconds,
                    outcome.tries,
                )
            )  # fmt: skip
            cost += step.tool.cost if step.tool is not None and outcome.state == "executed" else 0
        return Result(run.steps.plan, tuple(steps), error, seconds, cost, run.usage)


def _take_over(run: PlanRun, after: Result) -> None:
    """Take the results of the steps with which a plan begins as another one did."""
    done = turn_word(after.steps, after.plan.order)
    places = {step.position: place for place, step in enumerate(done)}
    own_places = {step.position: place for place, step in enumerate(run.steps)}
    for step, other in zip(run.steps, done, strict=False):
        same = step.name == other.name and [own_places[n] for n in step.takes] == [places[n] for n in other.inputs]
        if not same or other.state in ("failed", "not run"):
            return
        if step.tool is not None:
            if other.value is None:
                return
            run.outcomes[step.position] = CallOutcome(other.value, "cached")
            if run.timekeeper is not None:
                run.timekeeper.assume_end(step.name)


def _list_known(run: PlanRun) -> Iterator[tuple[str, Value]]:
    """Yield the inputs of a plan and its results so far, with their names."""
    for name, values in run.steps.given.values.items():
        yield from ((name, value) for value in values)
    for step in run.steps:
        outcome = run.outcomes.get(step.position)
        if step.tool is not None and outcome is not None and outcome.value is not None:
            yield step.tool.returns or step.name, outcome.value


class _Batches:
    """The calls of a tool that can process several together: what comes while a batch is under way is in the next."""

    def __init__(self, tool: Tool, caller: Caller, slots: asyncio.Semaphore, most: int) -> None:
        self._tool = tool
        self._caller = caller
        self._slots = slots
        self._most = most
        self._waiting: list[tuple[Sequence[Value], asyncio.Future[CallOutcome]]] = []
        self._busy = False

    async def call(self, inputs: Sequence[Value]) -> CallOutcome:
        """Return the outcome of one call; raises what a call of the tool raises."""
        mine: asyncio.Future[CallOutcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((inputs, mine))
        if not self._busy:
            self._busy = True
            try:
                await asyncio.sleep(0)  # whoever is ready now comes along
                while self._waiting:
                    async with self._slots:
                        taken, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                        await self._run_batch(taken)
            finally:
                self._busy = False
        return await mine

    async def _run_batch(self, taken: Sequence[tuple[Sequence[Value], asyncio.Future[CallOutcome]]]) -> None:
        begin = time.perf_counter()
        if len(taken) > 1:
            try:
                values = await self._caller.acall_many(self._tool, [inputs for inputs, _ in taken])
            except ToolError:
                pass  # one of them is the cause: each alone
            else:
                seconds = time.perf_counter() - begin
                for value, (_, future) in zip(values, taken, strict=True):
                    _settle(future, CallOutcome(value, "executed", seconds, 1))
                return
        for inputs, future in taken:
            begin = time.perf_counter()
            try:
                value, tries = await self._caller.acall(self._tool, inputs)
            except ExecutionError as error:
                _settle(future, error)
            else:
                _settle(future, CallOutcome(value, "executed", time.perf_counter() - begin, tries))


def _settle(future: asyncio.Future[CallOutcome], outcome: CallOutcome | ExecutionError) -> None:
    if future.done():  # cancelled: nobody waits for it
        return
    if isinstance(outcome, CallOutcome):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
