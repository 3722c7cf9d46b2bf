"""The value of a plan on task data: the plan is executed on each sample, and its outputs are scored.

The kinds of the output and of the expected value determine the score, as the benchmark's groups do: an image against a
text (Task 1) by CLIP score, a text against a text (Task 2) by BERTScore, an image against an image (Task 3) by ViT
similarity or, without downloads, by SSIM; Task X by its output. A plan that is invalid or that fails has the value 0.

The same call is the reward of reinforcement learning from task feedback: ``PlanJudge(...)(task, plan)`` is a number
from 0 to 1. It is always the same for the same task and plan, and fast if the plan or parts of it were executed before.
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
from formal_llm.automata.lookahead.derivations import derivations
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
    """The value of a plan on task data.

    Attributes:
        value: the mean over the samples, from 0 to 1.
        scores: the value on each sample; 0 if the plan failed on it.
        score: the name of the score; empty if nothing was scored.
        valid: whether the plan follows the rules of its task.
        reason: why the plan is invalid, or why nothing was scored; empty otherwise.
        errors: the error on each sample; empty if there was none.
        results: the results of the execution on each sample, if they were requested.
        passing: whether a failure may be temporary, as a timeout on a busy machine is. Such a judgement is not cached.
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
    """Executes plans on task data and scores their outputs.

    Args:
        tools: a toolkit, or an executor with its own settings: with a cache on disk, nothing is executed twice, in this
            process or in another.
        data: the data by task number, or the folder that holds them.
        scores: the scores; by default :meth:`Scores.make_offline`.
        samples: the number of samples to use of each task, from the first; by default all.
        pack: the pack whose tasks these are.

    Threads may share it. Judgements are cached. :func:`data_reward` creates a named reward from it.

    Raises:
        ValueError: the number of samples is below 1.
        ResourceNotFound: there are no data.
        MissingDependency: the offline scores are needed and MiniLM is not installed.
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
        self.scores = scores or Scores.make_offline()
        self.samples = samples
        self.pack = pack or TaskPack.load("openagi")
        self._lock = threading.Lock()
        self._known: dict[tuple[int, tuple[str, ...]], Judgement] = {}
        self._verifiers: dict[tuple[str | None, Limits], Verifier] = {}
        self._rows: dict[int, tuple[list[Sample], list[SampleInputs]]] = {}

    def __call__(self, task: AnyTask, plan: AnyPlan) -> float:
        """Return the value of a plan for a task, from 0 to 1; see :meth:`judge_plan`."""
        return self.judge_plan(task, plan).value

    def judge_plan(
        self, task: AnyTask, plan: AnyPlan, *, keep: bool = False, cancel: threading.Event | None = None
    ) -> Judgement:
        """Judge a plan for a task; its value is from 0 to 1.

        A negative score (possible with SSIM) counts as 0, and a score on another scale is divided by its best value.

        Args:
            task: the task, or its number.
            plan: the plan, or its word.
            keep: whether the judgement keeps the values of all steps.
            cancel: ends the execution when it is set.

        Raises:
            ResourceNotFound: the pack has no such task, or there are no data for it.
            InputError: the data cannot be read.
            Cancelled: ``cancel`` was set.
            CheckpointError, ImportError: a tool lacks a requirement, which is not the plan's fault.
        """
        number = self.find_number(task)
        word = plan.word if isinstance(plan, Plan) else tuple(plan)
        key = (number, word)
        if not keep and key in self._known:
            return self._known[key]
        verified = self.verify_word(number, word)
        if verified.valid:
            judgement = self._execute_plan(number, word, keep, cancel)
        else:
            judgement = Judgement(0.0, valid=False, reason=verified.reason)
        if not judgement.passing:
            with self._lock:
                self._known[key] = replace(judgement, results=())
        return judgement

    @property
    def data_identity(self) -> str:
        """The factors of the data that determine the values."""
        return data_identity(self.data)

    def verify_word(self, task: AnyTask, word: Sequence[str]) -> Verification:
        """Verify that a word is a plan for a task: it follows the task's rules and uses only available tools."""
        wanted = self.get_task(task)
        with self._lock:
            key = (wanted.goal, wanted.limits)
            if key not in self._verifiers:
                self._verifiers[key] = Verifier(self._planner.table(wanted).automaton)
            return self._verifiers[key].verify(tuple(word), repair=False)

    def score_for(self, task: AnyTask) -> Score | None:
        """Return the score that judges the plans of a task; None if there is none for their output.

        Raises:
            ResourceNotFound: the pack has no such task, or there are no data for it.
        """
        number = self.find_number(task)
        samples, _ = self._prepare_samples(number)
        expected = expected_of(samples[0]) if samples else None
        goal = self.pack.tasks[number].goal
        if expected is None or goal is None:
            return None
        return self.scores.get_score(self.pack.data["kinds"][goal], _get_kind(expected))

    def get_task(self, task: AnyTask) -> Task:
        """Return the task (see :meth:`find_number`) with a limit of 0 for each missing tool, so that plans avoid it."""
        found = self.pack.task(self.find_number(task))
        return replace(found, limits=found.limits & self.executor.limits(self.pack.cfg))

    def find_number(self, task: AnyTask) -> int:
        """Return the number of a task.

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
        """The factors besides the data that determine the values, as JSON data."""
        tools = sorted((tool.name, tool.version) for tool in self.executor.toolkit)
        return {"judge": "openagi", "samples": self.samples, "scores": self.scores.identity, "tools": tools}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {task.description: number for number, task in enumerate(self.pack.tasks)}

    @cached_property
    def _planner(self) -> Planner:
        return self.pack.planner()

    def _execute_plan(
        self, number: int, word: tuple[str, ...], keep: bool, cancel: threading.Event | None
    ) -> Judgement:
        samples, inputs = self._prepare_samples(number)
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
                raise cause  # not the plan's fault
            if result.error is not None:
                errors[place] = str(result.error)
                continue
            output, expected = result.output, expected_of(sample)
            against = "nothing" if expected is None else _get_kind(expected)
            score = self.scores.get_score(_get_kind(output), against)
            if expected is None or score is None:
                errors[place] = f"there is no score for an {_get_kind(output)} against {against}"
            else:
                waiting.setdefault(score, []).append((place, output, expected))
        for score, rows in waiting.items():
            for (place, *_), value in zip(rows, score.score_pairs(row[1:] for row in rows), strict=True):
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

    def _prepare_samples(self, number: int) -> tuple[list[Sample], list[SampleInputs]]:
        """Return the samples of a task and, for each, the inputs by terminal; keep those of the last few tasks."""
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
    """Turn a judge into a reward whose name changes whenever its rewards would: with the tools, scores, or data.

    A plan that is invalid, or that fails on every sample, gets 0, and the reason is recorded.
    """
    identity = json.dumps([judge.identity, judge.data_identity], sort_keys=True, default=str)
    name = f"openagi data, {hashlib.sha256(identity.encode()).hexdigest()[:16]}"

    def reward_plan(task: Task, plan: Plan) -> Judged:
        judged = judge.judge_plan(task, plan)
        failed = judged.reason or (judged.errors[0] if judged.errors and all(judged.errors) else "")
        return Judged(judged.value, failed)

    return Reward(reward_plan, name=name)


#: The number of tasks whose samples are kept in memory.
_KEPT = 32


def inputs_of(sample: Sample, pack: TaskPack) -> SampleInputs:
    """Return the inputs of a sample by terminal, as an executor takes them; several texts are a tuple, in order."""
    known = pack.data["inputs"]
    by_terminal: dict[str, list[ImageOrText]] = {}
    for value in sample.inputs.values():
        by_terminal.setdefault(known[_get_kind(value)]["terminal"], []).append(value)
    return {name: values[0] if len(values) == 1 else tuple(values) for name, values in by_terminal.items()}


def expected_of(sample: Sample) -> ImageOrText | None:
    """Return the expected output of a sample; its text if the benchmark has no output, as for text to image."""
    texts = (value for value in sample.inputs.values() if isinstance(value, str))
    return next(iter(sample.outputs.values()), next(texts, None))


def plan_of(cfg: CFG, word: Sequence[str], task: str = "") -> Plan:
    """Build the plan that a word of a grammar represents, for the task with a description.

    Raises:
        ValueError: it is not a word of the grammar.
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
    return Plan(task, root, order=cfg.order)


def _get_kind(value: ImageOrText) -> str:
    return "image" if isinstance(value, Image.Image) else "text"
