"""The OpenAGI benchmark: plans of several LLMs by several methods, verified, carried out, scored.

First all plans are made and verified, then each distinct one is carried out once; every line of both is on record
(:mod:`~formal_llm.packs.openagi.benchmark.records`), so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import groupby, product

from formal_llm import authored
from formal_llm.authored.tables import Items, Keys, read_toml
from formal_llm.errors import NoValidPlan, ResourceNotFound
from formal_llm.llms.llm import LLM
from formal_llm.packs.openagi.benchmark.conditions import Assignment, Attempt, Conditions, Method, PlanKey
from formal_llm.packs.openagi.benchmark.methods import make, why_not
from formal_llm.packs.openagi.benchmark.reading import Matcher, matcher_for, tool_texts
from formal_llm.packs.openagi.benchmark.records import Records, ScoreKey
from formal_llm.packs.openagi.data.samples import data_identity
from formal_llm.packs.openagi.scores.judging import PlanJudge
from formal_llm.planning import Task, TaskPack

#: After so many failures in a row that no plan is to blame for, a run ends: the provider cannot be reached.
_IN_A_ROW = 5


@dataclass(frozen=True, slots=True)
class RunProgress:
    """What a run has just done: in its phase ``"planning"`` or ``"executing"``, how far, and with which plan."""

    phase: str
    done: int
    total: int
    said: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A method that does not apply to an LLM, and why."""

    llm: str
    method: str
    why: str


class Benchmark:
    """A benchmark over the tasks of the OpenAGI pack.

    Args:
        judge: carries plans out and scores them; its toolkit says which tools can be planned with.
        numbers: the numbers of the tasks.
        repeats: how many plans each method makes for each task.
        matcher: reads steps in free text; that of :func:`matcher_for` where left out.
        temperature, max_tokens: for free text.
        tries: how often one question is asked until its answer is legal.

    Attributes:
        left_out: tasks that no plan with these tools solves, each with the reason; no method is asked for them.
        unscored: tasks whose outputs no score can judge.

    Raises:
        ValueError: no task, or less than one repeat.
        ResourceNotFound: there are no such tasks, or no data for one.
        NoValidPlan: no plan with these tools solves any of the tasks.
    """

    def __init__(
        self,
        judge: PlanJudge,
        numbers: Sequence[int],
        *,
        repeats: int = 5,
        matcher: Matcher | None = None,
        temperature: float = 0.0,
        max_tokens: int = 1024,
        tries: int = 3,
    ) -> None:
        if repeats < 1 or not numbers:
            raise ValueError("a benchmark needs a task and a repeat at least")
        self.judge = judge
        self.pack: TaskPack = judge.pack
        self.repeats = repeats
        tasks = {number: judge.task(number) for number in dict.fromkeys(numbers)}
        if missing := [number for number in tasks if number not in judge.data]:
            raise ResourceNotFound("data for the task", str(missing[0]), map(str, judge.data))
        self.tasks: dict[int, Task] = {}
        self.left_out: dict[int, str] = {}
        planner = self.pack.planner()
        for number, task in tasks.items():
            try:
                planner.start(task)
                self.tasks[number] = task
            except NoValidPlan as error:
                self.left_out[number] = str(error)
        if not self.tasks:
            tools_there = ", ".join(judge.executor.toolkit.tools) or "none"
            raise NoValidPlan(f"none of the {len(tasks)} tasks has a plan with these tools: {tools_there}")
        self.unscored = {number for number in self.tasks if judge.score_for(number) is None}
        every = tool_texts(self.pack)
        tools = tuple(tool for tool in every if tool.name in judge.executor.toolkit)
        self.conditions = Conditions(
            self.pack, self.tasks, tools, every, matcher or matcher_for(every), read_examples({t.name for t in tools}),
            temperature, max_tokens, tries,
        )  # fmt: skip

    @cached_property
    def identity(self) -> dict[str, object]:
        """What the figures depend on besides the LLMs, as JSON data."""
        rules = [self.pack.planner().table().automaton.fingerprint, asdict(self.pack.wording)]
        return {
            "rules": hashlib.sha256(repr(rules).encode()).hexdigest()[:16],
            "judge": self.judge.identity,
            "data": data_identity(self.judge.data),
            "asking": self.conditions.identity,
        }

    def score_names(self, groups: Mapping[int, str] | None = None) -> dict[str, str]:
        """For each group of tasks the names of the scores that judge it.

        Args:
            groups: for tasks that are counted under another group than their own, that group.
        """
        names: dict[str, list[str]] = {}
        for number, task in self.tasks.items():
            if (score := self.judge.score_for(number)) is not None:
                names.setdefault((groups or {}).get(number, task.group), []).append(score.name)
        return {group: ", ".join(dict.fromkeys(known)) for group, known in names.items()}

    @property
    def samples(self) -> tuple[int, int]:
        """On how many samples the plans of a task are carried out: the fewest and the most."""
        there = [len(self.judge.data[number]) for number in self.tasks]
        counts = [min(count, self.judge.samples or count) for count in there]
        return min(counts), max(counts)

    def skipped(self, llms: Mapping[str, LLM], methods: Sequence[Method]) -> list[Skipped]:
        """The methods that do not apply to some LLM."""
        pairs = product(llms.items(), methods)
        return [Skipped(name, method, why) for (name, llm), method in pairs if (why := why_not(method, llm))]

    def run(
        self,
        llms: Mapping[str, LLM],
        methods: Sequence[Method],
        records: Records,
        *,
        concurrency: int | None = None,
        on_step: Callable[[RunProgress], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> None:
        """Make the plans that are not on record yet, and carry out those that were not carried out.

        Args:
            llms: the LLMs by the names under which their plans are on record.
            methods: the methods; what does not apply to an LLM is passed over.
            records: what is on record.
            concurrency: how many plans are under way at most; as suits each LLM where left out.
            on_step: called after each plan.
            cancel: when it is set, the execution of plans ends.

        Raises:
            LLMError: the provider failed several times in a row, or some plans are missing since it failed now and
                then; what was made is on record, and the next run goes on with the rest.
            Cancelled: ``cancel`` was set.
        """
        skipped = {(one.llm, one.method) for one in self.skipped(llms, methods)}
        keys = [
            PlanKey(name, method, number, repeat)
            for name in llms for method in methods if (name, method) not in skipped
            for repeat in range(self.repeats) for number in self.tasks
        ]  # fmt: skip
        in_a_row = 0
        lost: Exception | None = None
        done = sum(key in records.plans for key in keys)

        def note(key: PlanKey, made: Attempt | Exception) -> None:
            nonlocal done, in_a_row, lost
            if isinstance(made, Exception):
                in_a_row, lost = in_a_row + 1, made
                if in_a_row >= _IN_A_ROW:
                    raise made
                return
            in_a_row = 0
            self._keep(records, key, made)
            done += 1
            if on_step is not None:
                on_step(RunProgress("planning", done, len(keys), f"{key.llm} {key.method}: task {key.task}"))

        missing = [key for key in keys if key not in records.plans]
        for (name, method), jobs in groupby(missing, lambda key: key[:2]):
            make(method, Assignment(llms[name], list(jobs), self.conditions, note, concurrency))
        self._execute(records, keys, on_step, cancel)
        if lost is not None:
            raise lost

    def _keep(self, records: Records, key: PlanKey, made: Attempt) -> None:
        verified = self.judge.verify(key.task, made.word)
        valid = verified.valid and not made.error
        records.add_plan(
            {
                "llm": key.llm, "method": key.method, "task": key.task, "repeat": key.repeat,
                "group": self.tasks[key.task].group, "word": list(made.word), "steps": list(made.steps),
                "valid": valid, "reason": made.error or ("" if valid else verified.reason), "text": made.text,
                "questions": made.questions, "usage": asdict(made.usage),
            }
        )  # fmt: skip

    def _execute(
        self,
        records: Records,
        keys: Sequence[PlanKey],
        on_step: Callable[[RunProgress], None] | None,
        cancel: threading.Event | None,
    ) -> None:
        wanted = {
            ScoreKey(key.task, tuple(plan["word"]))
            for key in keys
            if (plan := records.plans.get(key)) and plan["valid"] and key.task not in self.unscored
        }
        # By task, so that the samples of one are in memory at a time.
        todo = sorted(wanted - records.scores.keys())
        for place, scored in enumerate(todo, 1):
            records.add_score(scored, self.judge.judge(scored.task, scored.word, keep=True, cancel=cancel))
            if on_step is not None:
                said = f"task {scored.task}: {' '.join(scored.word)}"
                on_step(RunProgress("executing", len(wanted) - len(todo) + place, len(wanted), said))


def read_examples(tools: set[str]) -> dict[int, tuple[str, ...]]:
    """The worked examples for few-shot prompts that do with these tools: the task's number, and the tools in order."""
    example = Keys({"task": int, "tools": Items(str)}, needed=("task", "tools"))
    shape = Keys({"examples": Items(example)}, needed=("examples",))
    rows = read_toml(authored.find("tasks", "openagi") / "examples.toml", shape)["examples"]
    return {row["task"]: tuple(row["tools"]) for row in rows if tools.issuperset(row["tools"])}
