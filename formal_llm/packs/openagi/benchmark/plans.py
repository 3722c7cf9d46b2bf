"""Plans of several LLMs by several methods for some tasks, verified and recorded; nothing is executed here."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack

from formal_llm import authored
from formal_llm.authored.tables import Items, Keys, read_toml
from formal_llm.automata import Limits
from formal_llm.errors import AutomatonError, Cancelled, InfiniteLanguage, NoValidPlan, ResourceNotFound, Undecided
from formal_llm.llms.llm import LLM
from formal_llm.packs.openagi.benchmark.conditions import Assignment, Attempt, Conditions, Method, PlanKey
from formal_llm.packs.openagi.benchmark.methods import make_attempts, why_not
from formal_llm.packs.openagi.benchmark.reading import LexicalMatcher, Matcher, matcher_for, tool_texts
from formal_llm.packs.openagi.benchmark.records import Records, ScoreKey
from formal_llm.planning import Plan, Task, TaskPack
from formal_llm.planning.checking.verify import Verifier
from formal_llm.planning.drivers.exact import weigh_steps
from formal_llm.planning.plans.overlay import Overlay
from formal_llm.rltf.rewards import Reward

if TYPE_CHECKING:
    from formal_llm.packs.openagi.scores.judging import PlanJudge

#: The number of consecutive failures not caused by a plan after which a run ends: the provider is unreachable.
_IN_A_ROW = 5


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run: its phase, ``"planning"`` or ``"executing"``, the number of plans, and the last plan."""

    phase: str
    done: int
    total: int
    said: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A method that does not apply to an LLM, and why."""

    llm: str
    method: Method
    why: str


class AdaptedLLM(NamedTuple):
    """An LLM with trained adapters, and the name under which its plans are recorded."""

    name: str
    llm: LLM


class AskingSettings(TypedDict, total=False):
    """The settings for questions to LLMs.

    Attributes:
        repeats: how many plans each method makes for each task; by default 5.
        matcher: matches steps in free text; by default that of :func:`matcher_for`.
        temperature, max_tokens: the settings for free text; by default 0 and 1,024.
        tries: how often to ask one question until its answer is legal; by default 3.
    """

    repeats: int
    matcher: Matcher
    temperature: float
    max_tokens: int
    tries: int


class Plans:
    """The plans of a benchmark.

    Args:
        tasks: the tasks by number.
        there: the available tools; by default all.
        settings: see :class:`AskingSettings`.

    Attributes:
        tasks: the tasks that have a plan.
        left_out: tasks that no plan with these tools solves, each with the reason; the methods skip them.
        conditions: the conditions that all methods share.

    Raises:
        ValueError: there is no task, or less than one repeat.
        NoValidPlan: no plan with these tools solves any of the tasks.
    """

    def __init__(
        self,
        pack: TaskPack,
        tasks: Mapping[int, Task],
        there: Collection[str] | None = None,
        **settings: Unpack[AskingSettings],
    ) -> None:
        asking: AskingSettings = {"repeats": 5, "temperature": 0.0, "max_tokens": 1024, "tries": 3, **settings}
        self.repeats = asking["repeats"]
        if self.repeats < 1 or not tasks:
            raise ValueError("a benchmark needs a task and a repeat at least")
        self.pack = pack
        self.tasks: dict[int, Task] = {}
        self.left_out: dict[int, str] = {}
        self._planner = pack.planner()
        self._verifiers: dict[tuple[str | None, Limits], Verifier] = {}
        for number, task in tasks.items():
            try:
                self._planner.start(task)
                self.tasks[number] = task
            except NoValidPlan as error:
                self.left_out[number] = str(error)
        if not self.tasks:
            tools_there = ", ".join(there or ()) or "none"
            raise NoValidPlan(f"none of the {len(tasks)} tasks has a plan with these tools: {tools_there}")
        self.conditions = self._make_conditions(there, asking)

    def _make_conditions(self, there: Collection[str] | None, asking: AskingSettings) -> Conditions:
        every = tool_texts(self.pack)
        tools = tuple(tool for tool in every if there is None or tool.name in there)
        return Conditions(
            self.pack, self.tasks, tools, every, asking.get("matcher") or matcher_for(every),
            read_examples({tool.name for tool in tools}), asking["temperature"], asking["max_tokens"], asking["tries"],
        )  # fmt: skip

    @cached_property
    def identity(self) -> dict[str, object]:
        """The factors besides the LLMs that determine the plans, as JSON data."""
        rules = [self._planner.table().automaton.fingerprint, asdict(self.pack.wording)]
        return {
            "rules": hashlib.sha256(repr(rules).encode()).hexdigest()[:16],
            "asking": self.conditions.identity,
        }

    def list_skipped(
        self, llms: Mapping[str, LLM], methods: Sequence[Method], trained: Mapping[str, AdaptedLLM] | None = None
    ) -> list[Skipped]:
        """List the methods that do not apply to some LLM."""
        return not_asked(llms, methods, trained or {})

    def run(
        self,
        llms: Mapping[str, LLM],
        methods: Sequence[Method],
        records: Records,
        *,
        trained: Mapping[str, AdaptedLLM] | None = None,
        concurrency: int | None = None,
        on_step: Callable[[RunProgress], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> None:
        """Make the plans that are not recorded yet, and execute those that were not executed.

        Args:
            llms: the LLMs by the names under which their plans are recorded.
            methods: the methods; those that do not apply to an LLM are skipped.
            records: the records.
            trained: by the names of LLMs, the same with trained adapters, which the method ``rltf`` uses.
            concurrency: the maximum number of plans made concurrently; by default as suits each LLM.
            on_step: called after each plan.
            cancel: ends the execution of plans when it is set.

        Raises:
            LLMError: the provider failed several times in a row, or some plans are missing due to occasional failures;
                the others are recorded, and the next run makes the rest.
            Cancelled: ``cancel`` was set.
        """
        llm_by_name = {**llms, **{one.name: one.llm for one in (trained or {}).values()}}
        keys = [
            PlanKey(name, method, number, repeat)
            for name, method in self._list_pairs(llms, methods, trained or {})
            for repeat in range(self.repeats) for number in self.tasks
        ]  # fmt: skip
        in_a_row = 0
        lost: Exception | None = None
        done = sum(key in records.plans for key in keys)

        def note_outcome(key: PlanKey, made: Attempt | Exception) -> None:
            nonlocal done, in_a_row, lost
            if isinstance(made, Exception):
                in_a_row, lost = in_a_row + 1, made
                if in_a_row >= _IN_A_ROW:
                    raise made
                return
            in_a_row = 0
            self._record_attempt(records, key, made)
            done += 1
            if on_step is not None:
                on_step(RunProgress("planning", done, len(keys), f"{key.llm} {key.method}: task {key.task}"))

        missing = [key for key in keys if key not in records.plans]
        for (name, method), jobs in groupby(missing, lambda key: key[:2]):
            make_attempts(method, Assignment(llm_by_name[name], list(jobs), self.conditions, note_outcome, concurrency))
        self._execute_plans(records, keys, on_step, cancel)
        if lost is not None:
            raise lost

    def _list_pairs(
        self, llms: Mapping[str, LLM], methods: Sequence[Method], trained: Mapping[str, AdaptedLLM]
    ) -> Iterator[tuple[str, Method]]:
        """List the recorded names of the LLMs with the methods that apply to them."""
        for name, llm in llms.items():
            skipped = [one.method for one in self.list_skipped({name: llm}, methods, trained)]
            for method in methods:
                if method not in skipped:
                    yield (trained[name].name if method == "rltf" else name), method

    def _execute_plans(
        self,
        records: Records,
        keys: Sequence[PlanKey],
        on_step: Callable[[RunProgress], None] | None,
        cancel: threading.Event | None,
    ) -> None:
        """Execute the plans; does nothing by default."""

    def _record_attempt(self, records: Records, key: PlanKey, made: Attempt) -> None:
        task = self.tasks[key.task]
        kind = (task.goal, task.limits)
        if kind not in self._verifiers:
            self._verifiers[kind] = Verifier(self._planner.table(task).automaton)
        verified = self._verifiers[kind].verify(tuple(made.word), repair=False)
        valid = verified.valid and not made.error
        records.add_plan(
            {
                "llm": key.llm, "method": key.method, "task": key.task, "repeat": key.repeat,
                "group": task.group, "word": list(made.word), "steps": list(made.steps),
                "valid": valid, "reason": made.error or ("" if valid else verified.reason), "text": made.text,
                "questions": made.questions, "usage": asdict(made.usage),
            }
        )  # fmt: skip


def not_asked(llms: Mapping[str, LLM], methods: Sequence[Method], trained: Mapping[str, AdaptedLLM]) -> list[Skipped]:
    """List the methods that do not apply to some LLM."""
    pairs = [(name, llm, method) for name, llm in llms.items() for method in methods]
    return [Skipped(name, method, why) for name, llm, method in pairs if (why := _why_not(name, method, llm, trained))]


def _why_not(name: str, method: Method, llm: LLM, trained: Mapping[str, AdaptedLLM]) -> str:
    if method == "rltf":
        return "" if name in trained else "it has no trained adapters: --adapter FOLDER"
    return why_not(method, llm)


def read_examples(tools: set[str]) -> dict[int, tuple[str, ...]]:
    """Read the worked examples for few-shot prompts that need only these tools: the tools in order, by task number."""
    example = Keys({"task": int, "tools": Items(str)}, needed=("task", "tools"))
    shape = Keys({"examples": Items(example)}, needed=("examples",))
    rows = read_toml(authored.find("tasks", "openagi") / "examples.toml", shape)["examples"]
    return {row["task"]: tuple(row["tools"]) for row in rows if tools.issuperset(row["tools"])}


class Benchmark(Plans):
    """A benchmark over the tasks of the OpenAGI pack: plans and their values on task data.

    Args:
        judge: executes plans and scores them; its toolkit determines the available tools.
        settings: see :class:`~formal_llm.packs.openagi.benchmark.plans.AskingSettings`.

    Attributes:
        unscored: tasks whose outputs no score can judge.

    Raises:
        ValueError: there is no task, or less than one repeat.
        ResourceNotFound: there are no such tasks, or no data for one.
        NoValidPlan: no plan with these tools solves any of the tasks.
    """

    def __init__(self, judge: PlanJudge, numbers: Sequence[int], **settings: Unpack[AskingSettings]) -> None:
        self.judge = judge
        tasks = {number: judge.get_task(number) for number in dict.fromkeys(numbers)}
        if missing := [number for number in tasks if number not in judge.data]:
            raise ResourceNotFound("data for the task", str(missing[0]), map(str, judge.data))
        super().__init__(judge.pack, tasks, judge.executor.toolkit.tools, **settings)
        self.unscored = {number for number in self.tasks if judge.score_for(number) is None}

    @cached_property
    def identity(self) -> dict[str, object]:
        """The factors besides the LLMs that determine the figures, as JSON data."""
        return {**super().identity, "judge": self.judge.identity, "data": self.judge.data_identity}

    def score_names(self, groups: Mapping[int, str] | None = None) -> dict[str, str]:
        """Return for each group of tasks the names of the scores that judge it.

        Args:
            groups: the group of each task that is counted in another group than its own.
        """
        names: dict[str, list[str]] = {}
        for number, task in self.tasks.items():
            if (score := self.judge.score_for(number)) is not None:
                names.setdefault((groups or {}).get(number, task.group), []).append(score.name)
        return {group: ", ".join(dict.fromkeys(known)) for group, known in names.items()}

    @property
    def samples(self) -> tuple[int, int]:
        """The minimum and maximum numbers of samples on which the plans of a task are executed."""
        available = [len(self.judge.data[number]) for number in self.tasks]
        counts = [min(count, self.judge.samples or count) for count in available]
        return min(counts), max(counts)

    def _execute_plans(
        self,
        records: Records,
        keys: Sequence[PlanKey],
        on_step: Callable[[RunProgress], None] | None,
        cancel: threading.Event | None,
    ) -> None:
        required = {
            ScoreKey(key.task, tuple(plan["word"]))
            for key in keys
            if (plan := records.plans.get(key)) and plan["valid"] and key.task not in self.unscored
        }
        # Sorted by task, so that only the samples of one task are in memory at a time.
        todo = sorted(required - records.scores.keys())
        for place, scored in enumerate(todo, 1):
            records.add_score(scored, self.judge.judge_plan(scored.task, scored.word, keep=True, cancel=cancel))
            if on_step is not None:
                plan_text = f"task {scored.task}: {' '.join(scored.word)}"
                on_step(RunProgress("executing", len(required) - len(todo) + place, len(required), plan_text))


class PackPlans(Plans):
    """A benchmark over tasks of any pack; nothing is carried out.

    Args:
        pack: the pack.
        tasks: the tasks by number.
        reward: how good a valid plan is; None where only validity counts. An invalid plan has the value 0.
        settings: see :class:`AskingSettings`.

    Attributes:
        reward: the same; it may be set before the first use of :attr:`identity`.

    Raises:
        ValueError, NoValidPlan: as in :class:`Plans`.
    """

    def __init__(
        self, pack: TaskPack, tasks: Mapping[int, Task], reward: Reward | None = None,
        **settings: Unpack[AskingSettings],
    ) -> None:  # fmt: skip
        self.reward = reward
        super().__init__(pack, tasks, **settings)

    def _make_conditions(self, there: Collection[str] | None, asking: AskingSettings) -> Conditions:  # noqa: ARG002
        return Conditions(
            self.pack, self.tasks, (), (), LexicalMatcher(()), {}, asking["temperature"], asking["max_tokens"],
            asking["tries"],
        )  # fmt: skip

    @cached_property
    def identity(self) -> dict[str, object]:
        """The factors besides the LLMs that determine the figures, as JSON data."""
        tasks = {str(number): task.description for number, task in self.tasks.items()}
        quality = None if self.reward is None else self.reward.identity
        return {**super().identity, "tasks": tasks, "quality": quality}

    def list_skipped(
        self, llms: Mapping[str, LLM], methods: Sequence[Method], trained: Mapping[str, AdaptedLLM] | None = None
    ) -> list[Skipped]:
        """List the methods that do not apply to some LLM, or to these rules."""
        try:
            weigh_steps(self._planner.table(next(iter(self.tasks.values()))))
            why = ""
        except (AutomatonError, InfiniteLanguage, Undecided) as error:
            why = str(error)
        looking = [Skipped(llm, "look", why) for llm in llms if why and "look" in methods]
        return super().list_skipped(llms, methods, trained) + looking

    def _execute_plans(
        self,
        records: Records,
        keys: Sequence[PlanKey],
        on_step: Callable[[RunProgress], None] | None,
        cancel: threading.Event | None,
    ) -> None:
        if self.reward is None:
            return
        made = [records.plans[key] for key in keys if key in records.plans]
        valid = {ScoreKey(plan["task"], tuple(plan["word"])) for plan in made if plan["valid"]}
        todo = sorted(valid - records.scores.keys())
        for place, (number, word) in enumerate(todo, len(valid) - len(todo) + 1):
            if cancel is not None and cancel.is_set():
                raise Cancelled
            task = self.tasks[number]
            drawn = Overlay(word, self._planner.table(task).lookahead.source)
            plan = Plan(task.description, drawn.tree, order=self._planner.table(task).vocabulary.order)
            judged = self.reward.judge(task, plan)
            records.record_score(ScoreKey(number, word), judged.value, self.reward.name, judged.failed)
            if on_step is not None:
                on_step(RunProgress("judging", place, len(valid), f"task {number}"))
