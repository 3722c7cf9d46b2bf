"""What a plan is worth on task data: it is carried out on each sample, and what comes out is scored.

Which score, the kinds of what comes out and of what was expected say, as the benchmark's groups do: a picture against a
text (Task 1) by CLIP score, text against text (Task 2) by BERTScore, picture against picture (Task 3) by ViT similarity
or, without downloads, by SSIM; Task X by what it puts out. A plan that is not valid or that fails is worth 0.

The same call is the reward of reinforcement learning from task feedback: ``PlanJudge(...)(task, plan)`` is a number
from 0 to 1, always the same for the same task and plan, and quick where the plan, or parts of it, was executed before.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from PIL import Image

from formal_llm.automata import CFG, Limits
from formal_llm.automata.languages.ambiguity import derivations
from formal_llm.errors import Cancelled, CheckpointError, ExecutionError, ResourceNotFound, ToolError
from formal_llm.packs.openagi.data.samples import ImageOrText, Sample, TaskData, data_identity, read_data
from formal_llm.packs.openagi.scores.choice import Scores
from formal_llm.packs.openagi.scores.score import Score
from formal_llm.planning import Plan, Planner, Task, TaskPack
from formal_llm.planning.checking.verify import Verification, Verifier
from formal_llm.planning.plans.tree import Node
from formal_llm.rltf.rewards import Judged, Reward
from formal_llm.tools import Executor, Result, Toolkit

#: The inputs of a sample by terminal; several of one terminal as a tuple.
SampleInputs: TypeAlias = dict[str, ImageOrText | tuple[ImageOrText, ...]]
#: A task, or its number in the pack.
AnyTask: TypeAlias = int | Task
#: A plan, or its word.
AnyPlan: TypeAlias = Plan | Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """What a plan is worth.

    Attributes:
        value: the mean over the samples, from 0 to 1.
        scores: for each sample; 0 where the plan failed on it.
        score: the name of the score; empty where nothing was scored.
        valid: whether the plan follows the rules of its task.
        reason: why it is not valid, or why nothing was scored; empty otherwise.
        errors: for each sample what went wrong, empty where nothing did.
        results: what the execution gave on each sample; kept only where that was asked for.
        passing: whether a failure may pass, as a timeout on a busy machine does. Such a judgement is not remembered.
    """

    value: float
    scores: tuple[float, ...] = ()
    score: str = ""
    valid: bool = True
    reason: str = ""
    errors: tuple[str, ...] = ()
    results: tuple[Result, ...] = ()
    passing: bool = False


class PlanJudge:
    """Carries plans out on task data and scores what comes out.

    Args:
        tools: a toolkit, or an executor with settings of its own: with a cache on disk, what was executed once is never
            executed again, in this process or in another.
        data: the data by the number of the task, or the folder that holds them.
        scores: the scores; :meth:`Scores.offline` where left out.
        samples: how many samples of each task count, from the first; all where left out.
        pack: the pack whose tasks these are.

    Threads may share it. Plans that were judged are remembered. :func:`data_reward` makes a reward with a name of it.

    Raises:
        ValueError: a number of samples below 1.
        ResourceNotFound: no data.
        MissingDependency: the offline scores are wanted and MiniLM is not installed.
    """

    def __init__(
        self,
        tools: Toolkit | Executor,
        data: Mapping[int, TaskData] | str | Path,
        scores: Scores | None = None,
        *,
        samples: int | None = None,
        pack: TaskPack | None = None,
    ) -> None:
        if samples is not None and samples < 1:
            raise ValueError(f"samples count from 1, not {samples}")
        self.executor = tools if isinstance(tools, Executor) else Executor(tools)
        self.data = data if isinstance(data, Mapping) else read_data(data)
        self.scores = scores or Scores.offline()
        self.samples = samples
        self.pack = pack or TaskPack.load("openagi")
        self._lock = threading.Lock()
        self._known: dict[tuple[int, tuple[str, ...]], Judgement] = {}
        self._verifiers: dict[tuple[str | None, Limits], Verifier] = {}
        self._rows: dict[int, tuple[list[Sample], list[SampleInputs]]] = {}

    def __call__(self, task: AnyTask, plan: AnyPlan) -> float:
        """What a plan is worth for a task, from 0 to 1; see :meth:`judge`."""
        return self.judge(task, plan).value

    def judge(
        self, task: AnyTask, plan: AnyPlan, *, keep: bool = False, cancel: threading.Event | None = None
    ) -> Judgement:
        """What a plan is worth for a task, from 0 to 1.

        A negative score (SSIM has some) counts as 0, and one of another scale is divided by its best value.

        Args:
            task: the task, or its number.
            plan: the plan, or its word.
            keep: whether the judgement keeps the values of all steps.
            cancel: when it is set, the execution ends.

        Raises:
            ResourceNotFound: the pack has no such task, or there are no data for it.
            InputError: the data cannot be read.
            Cancelled: ``cancel`` was set.
            CheckpointError, ImportError: a tool has not what it needs, which is no fault of the plan.
        """
        number = self.number(task)
        word = plan.word if isinstance(plan, Plan) else tuple(plan)
        key = (number, word)
        if not keep and key in self._known:
            return self._known[key]
        verified = self.verify(number, word)
        if verified.valid:
            made = self._executed(number, word, keep, cancel)
        else:
            made = Judgement(0.0, valid=False, reason=verified.reason)
        if not made.passing:
            with self._lock:
                self._known[key] = replace(made, results=())
        return made

    def verify(self, task: AnyTask, word: Sequence[str]) -> Verification:
        """Whether a word is a plan for a task (as :meth:`task`): the task's rules, and no tool that is not there."""
        wanted = self.task(task)
        with self._lock:
            key = (wanted.goal, wanted.limits)
            if key not in self._verifiers:
                self._verifiers[key] = Verifier(self._planner.table(wanted).automaton)
            return self._verifiers[key].verify(tuple(word), repair=False)

    def score_for(self, task: AnyTask) -> Score | None:
        """The score that judges the plans of a task; None where there is none for what they put out.

        Raises:
            ResourceNotFound: the pack has no such task, or there are no data for it.
        """
        number = self.number(task)
        samples, _ = self._prepared(number)
        expected = expected_of(samples[0]) if samples else None
        goal = self.pack.tasks[number].goal
        if expected is None or goal is None:
            return None
        return self.scores.of(self.pack.data["kinds"][goal], _kind(expected))

    def task(self, task: AnyTask) -> Task:
        """The task (as :meth:`number`), with limits of 0 for the tools that are not there, which planning avoids."""
        found = self.pack.task(self.number(task))
        return replace(found, limits=found.limits & self.executor.limits(self.pack.cfg))

    def number(self, task: AnyTask) -> int:
        """The number of a task.

        Raises:
            ResourceNotFound: the pack has no such task.
        """
        if isinstance(task, Task):
            if task.description not in self._numbers:
                raise ResourceNotFound("task", task.description, [])
            return self._numbers[task.description]
        self.pack.task(task)
        return task

    @property
    def identity(self) -> dict[str, object]:
        """What the values depend on besides the data, as JSON data."""
        tools = sorted((tool.name, tool.version) for tool in self.executor.toolkit)
        return {"judge": "openagi", "samples": self.samples, "scores": self.scores.identity, "tools": tools}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {task.description: number for number, task in enumerate(self.pack.tasks)}

    @cached_property
    def _planner(self) -> Planner:
        return self.pack.planner()

    def _executed(self, number: int, word: tuple[str, ...], keep: bool, cancel: threading.Event | None) -> Judgement:
        samples, inputs = self._prepared(number)
        if not samples:
            return Judgement(0.0, reason="the task has no samples")
        plan = plan_of(self.pack.cfg, word, self.pack.tasks[number].description)
        try:
            results = self.executor.run_many([plan] * len(samples), inputs, keep=keep, cancel=cancel)
        except Cancelled:
            raise
        except ExecutionError as error:  # tools or inputs do not fit the plan, so it fails on every sample
            nothing = (0.0,) * len(samples)
            return Judgement(0.0, nothing, reason=str(error), errors=(str(error),) * len(samples))
        scores, errors = [0.0] * len(samples), [""] * len(samples)
        waiting: dict[Score, list[tuple[int, ImageOrText, ImageOrText]]] = {}
        for place, (sample, result) in enumerate(zip(samples, results, strict=True)):
            if isinstance(result.error, Cancelled):
                raise result.error
            if isinstance(cause := getattr(result.error, "cause", None), (CheckpointError, ImportError)):
                raise cause  # nothing that the plan could help
            if result.error is not None:
                errors[place] = str(result.error)
                continue
            output, expected = result.output, expected_of(sample)
            against = "nothing" if expected is None else _kind(expected)
            score = self.scores.of(_kind(output), against)
            if expected is None or score is None:
                errors[place] = f"there is no score for an {_kind(output)} against {against}"
            else:
                waiting.setdefault(score, []).append((place, output, expected))
        for score, rows in waiting.items():
            for (place, *_), value in zip(rows, score.many(row[1:] for row in rows), strict=True):
                scores[place] = max(value, 0.0) / score.most
        return Judgement(
            sum(scores) / len(scores),
            tuple(scores),
            ", ".join(sorted(score.name for score in waiting)),
            reason="" if waiting else errors[0],
            errors=tuple(errors),
            results=tuple(results) if keep else (),
            passing=any(isinstance(r.error, ToolError) and r.error.reason in ("timeout", "memory") for r in results),
        )

    def _prepared(self, number: int) -> tuple[list[Sample], list[SampleInputs]]:
        """The samples of a task and, for each, the inputs by terminal. Those of the last few tasks are kept."""
        with self._lock:
            if number not in self._rows:
                if number not in self.data:
                    raise ResourceNotFound("data for the task", str(number), map(str, self.data))
                samples = list(islice(self.data[number], self.samples))
                if len(self._rows) >= _KEPT:
                    del self._rows[next(iter(self._rows))]
                self._rows[number] = samples, [inputs_of(sample, self.pack) for sample in samples]
            return self._rows[number]


def data_reward(judge: PlanJudge) -> Reward:
    """A judge as the reward of training, whose name changes whenever its rewards would: with tools, scores, or data.

    A plan that is not valid, or that fails on every sample, gets 0, and the reason is on record.
    """
    said = json.dumps([judge.identity, data_identity(judge.data)], sort_keys=True, default=str)
    name = f"openagi data, {hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def worth(task: Task, plan: Plan) -> Judged:
        judged = judge.judge(task, plan)
        failed = judged.reason or (judged.errors[0] if judged.errors and all(judged.errors) else "")
        return Judged(judged.value, failed, judged.passing)

    return Reward(worth, name=name)


#: The samples of so many tasks are kept in memory.
_KEPT = 32


def inputs_of(sample: Sample, pack: TaskPack) -> SampleInputs:
    """The inputs of a sample by terminal, as an executor takes them; several texts in their order, as a tuple."""
    known = pack.data["inputs"]
    given: dict[str, list[ImageOrText]] = {}
    for value in sample.inputs.values():
        given.setdefault(known[_kind(value)]["terminal"], []).append(value)
    return {name: values[0] if len(values) == 1 else tuple(values) for name, values in given.items()}


def expected_of(sample: Sample) -> ImageOrText | None:
    """What should come out of a sample: its output; its text where the benchmark has none, as for text to image."""
    texts = (value for value in sample.inputs.values() if isinstance(value, str))
    return next(iter(sample.outputs.values()), next(texts, None))


def plan_of(cfg: CFG, word: Sequence[str], task: str = "") -> Plan:
    """The plan of a word of a grammar, for a task of some description.

    Raises:
        ValueError: it is no word of the grammar.
    """
    found = derivations(cfg, word, 1).found
    if not found:
        raise ValueError(f"this is no word of the grammar: {' '.join(word) or 'the empty word'}")
    root = Node(cfg.start, cfg.label(cfg.start))
    waiting = [root]
    for production in found[0]:
        node = waiting.pop()
        while node.symbol in cfg.terminals:
            node = waiting.pop()
        node.text = production.text
        node.children = [Node(name, cfg.label(name), terminal=name in cfg.terminals) for name in production.body]
        waiting.extend(reversed(node.children))
    return Plan(task, root)


def _kind(value: ImageOrText) -> str:
    return "image" if isinstance(value, Image.Image) else "text"
