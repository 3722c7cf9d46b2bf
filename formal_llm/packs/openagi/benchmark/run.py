"""The OpenAGI benchmark: plans of several LLMs by several methods, verified, executed, scored.

First all plans are made and verified, then each distinct one is executed once; both are recorded line by line
(:mod:`~formal_llm.packs.openagi.benchmark.records`), so that an interrupted run can be resumed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Unpack

from formal_llm.errors import ResourceNotFound
from formal_llm.packs.openagi.benchmark.conditions import PlanKey
from formal_llm.packs.openagi.benchmark.plans import AskingSettings, Plans, RunProgress
from formal_llm.packs.openagi.benchmark.records import Records, ScoreKey
from formal_llm.packs.openagi.data.samples import data_identity
from formal_llm.packs.openagi.scores.judging import PlanJudge


class Benchmark(Plans):
    """A benchmark over the tasks of the OpenAGI pack: plans and their values on task data.

    Args:
        judge: executes plans and scores them; its toolkit determines the available tools.
        numbers: the numbers of the tasks.
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
        return {**super().identity, "judge": self.judge.identity, "data": data_identity(self.judge.data)}

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
