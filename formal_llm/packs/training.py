"""From the settings of a training run to a trainer: its tasks, its reward, its policy.

:class:`Ingredients` are what a run is made of besides the model: found, checked and counted without loading a model or
writing a file. :func:`trainer_of` adds the model and the folder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formal_llm.automata import Limits
from formal_llm.errors import MissingDependency, NoValidPlan, ResourceNotFound, TrainingError
from formal_llm.planning import Plan, Planner, Task, TaskPack
from formal_llm.rltf.reward_cache import CachedReward
from formal_llm.rltf.rewards import ExecutedReward, Judged, Reward, reward_of
from formal_llm.rltf.settings import Settings

if TYPE_CHECKING:
    from formal_llm.llms.local.model import LocalLLM
    from formal_llm.packs.openagi.judging import PlanJudge
    from formal_llm.rltf.distributed import World
    from formal_llm.rltf.metrics_log import View
    from formal_llm.rltf.policy import Policy
    from formal_llm.rltf.trainer import Trainer
    from formal_llm.rltf.warm_start import References

#: The file of rewards in the folder of a run.
REWARDS = "rewards.sqlite"
#: The folder of what tools gave, in the folder of a run whose plans are executed.
EXECUTED = "executed"
_NAMED = ("references", "executed")
_WITH_REFERENCES = "openagi"


@dataclass(frozen=True)
class Ingredients:
    """What a run is made of, but for the model.

    Attributes:
        settings: of the run.
        pack: the task pack.
        planner: its rules and wording; its LLM is not asked.
        tasks: what is trained on.
        held_out: the tasks by which it is judged; none of them is trained on.
        reward: of plans, without a cache.
        metrics: more functions of plans, by name: ``exact``, the share of plans with just the right tools, where it is
            known which these are.
        references: which plans a warm start imitates: those with just the right tools, where it is known which these
            are; else all.
        notes: what a person should know: which tasks were left out, and why.
    """

    settings: Settings
    pack: TaskPack
    planner: Planner
    tasks: tuple[Task, ...]
    held_out: tuple[Task, ...]
    reward: Reward
    metrics: Mapping[str, Reward] = field(default_factory=dict)
    references: References | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings, folder: str | Path | None = None) -> Ingredients:
        """What the settings ask for.

        Args:
            settings: of the run.
            folder: of the run, where results of tools are kept if plans are executed; None: they are not kept.

        Raises:
            ResourceNotFound: there is no such pack, split, task, reward, toolkit or data.
            TrainingError: no task is left to train on; the reward is not there for this pack.
            MissingDependency: executing plans needs libraries that are not installed.
        """
        pack = TaskPack.load(settings.pack)
        numbers, held = selected(pack, settings.train), selected(pack, settings.held_out)
        notes: list[str] = []
        judge: PlanJudge | None = None
        if settings.reward == "executed":
            judge = _judge(pack, settings, folder)
            numbers = _judgeable(judge, numbers, notes)
            held = _judgeable(judge, held, notes)
            task_of: Callable[[int], Task] = judge.task
        else:
            task_of = pack.task
        if not numbers:
            raise TrainingError(f"no task of {settings.train!r} is left to train on: {'; '.join(notes) or 'it is empty'}")
        trained = {pack.tasks[number].description for number in numbers}
        both = [number for number in held if pack.tasks[number].description in trained]
        if both:
            notes.append(f"{_tasks(both)} of {settings.held_out!r} is trained on, so it is not held out")
        if not settings.held_out:
            notes.append("no task is held out: nothing will be judged by tasks that were not trained on")
        known = pack.name == _WITH_REFERENCES
        return cls(
            settings,
            pack,
            pack.planner(),
            tuple(task_of(number) for number in numbers),
            tuple(task_of(number) for number in held if number not in both),
            reward_for(settings, pack, judge),
            _exact() if known else {},
            exact_tools(pack) if known else None,
            tuple(notes),
        )

    @property
    def updates(self) -> int:
        """How many updates the run has, those of the warm start included (as :attr:`Trainer.updates`)."""
        settings, wanted = self.settings, self.settings.updates
        if wanted is None:
            wanted = math.ceil(settings.epochs * len(self.tasks) / settings.tasks_per_update)
        return settings.warm_start + wanted

    def counts(self) -> list[float | None]:
        """How many plans each task has that is trained on (:func:`~formal_llm.rltf.plan_tree.count_plans`).

        Raises:
            NoValidPlan: a task has none.
        """
        from formal_llm.rltf.plan_tree import count_plans

        return [count_plans(self.planner, task) for task in self.tasks]


@contextmanager
def trainer_of(
    settings: Settings,
    folder: str | Path,
    *,
    world: World | None = None,
    views: Sequence[View] = (),
    ingredients: Ingredients | None = None,
) -> Iterator[Trainer]:
    """A trainer of what the settings ask for; its cache of rewards is closed at the end.

    Args:
        settings: of the run.
        folder: of the run; made if it is not there. Rewards are kept in ``rewards.sqlite`` in it.
        world: the processes of the run.
        views: who watches.
        ingredients: those of the settings, where they are known already.

    Raises:
        ResourceNotFound, TrainingError, MissingDependency: as :meth:`Ingredients.of`.
        ModelError: the model cannot be loaded or trained.
        RewardError: the file of rewards cannot be used.
    """
    place = Path(folder)
    parts = ingredients or Ingredients.of(settings, place)
    policy = policy_of(settings)
    from formal_llm.rltf.trainer import Trainer

    place.mkdir(parents=True, exist_ok=True)
    # A reward without a name of its own (a closure, an object) goes by the one under which the settings ask for it.
    name = None if parts.reward.identity is not None else settings.reward
    with CachedReward(parts.reward, place / REWARDS, name=name) as reward:
        yield Trainer(
            parts.planner,
            policy,
            reward,
            parts.tasks,
            place,
            held_out=parts.held_out,
            settings=settings,
            metrics=parts.metrics,
            references=parts.references,
            world=world,
            views=tuple(views),
        )


# -- tasks -------------------------------------------------------------------------------------------------------------


def selected(pack: TaskPack, text: str) -> list[int]:
    """The numbers of the tasks that a text means: a split of the pack, ``all``, or numbers as ``0,7,20-25``.

    Args:
        pack: the pack.
        text: the selection; the empty text for no task.

    Raises:
        ResourceNotFound: the pack has no such split or task.
        ValueError: a range that goes backwards.
    """
    text = text.strip()
    if not text:
        return []
    if not re.fullmatch(r"\d+(\s*-\s*\d+)?(\s*,\s*\d+(\s*-\s*\d+)?)*", text):
        pack.split(text)
        return list(range(len(pack.tasks))) if text == "all" else list(pack.splits[text])
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = int(first), int(last if dash else first)
        if end < begin:
            raise ValueError(f"tasks {part.strip()}: a range goes from the lower number to the higher one")
        # Both ends are looked up before the range is made: one may be far outside.
        pack.task(begin)
        pack.task(end)
        found += range(begin, end + 1)
    return list(dict.fromkeys(found))


def _tasks(numbers: Sequence[int]) -> str:
    return f"task{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


# -- the policy --------------------------------------------------------------------------------------------------------


def policy_of(settings: Settings) -> Policy:
    """The policy that the settings ask for.

    Raises:
        ModelError, ResourceNotFound: the model cannot be loaded or trained, or there are no such adapters.
        MissingDependency: torch, transformers or peft are not installed.
    """
    from formal_llm.rltf.policy import LoRA, Policy

    return Policy(
        model_of(settings),
        LoRA(settings.rank, settings.alpha, settings.dropout, settings.targets),
        temperature=settings.temperature,
        adapter=settings.adapter or None,
        seed=settings.seed,
        gradient_checkpointing=settings.gradient_checkpointing,
        autocast=settings.autocast or None,
    )


def model_of(settings: Settings) -> LocalLLM:
    """The model that the settings name, in their numbers and on their device.

    Raises:
        ModelError: it is no model that runs here, or it cannot be loaded.
        ResourceNotFound: there is no such folder.
        MissingDependency: torch or transformers are not installed.
    """
    from formal_llm.llms.local.model import EncoderLLM, TransformersLLM

    name = settings.model
    provider, colon, rest = name.partition(":")
    where: dict[str, Any] = {"device": settings.device, "dtype": settings.dtype}
    if name == "minilm":
        return EncoderLLM(**where)
    if provider == "transformers" and rest:
        return TransformersLLM(rest, **where)
    if provider == "encoder" and rest:
        return EncoderLLM(rest, **where)
    if Path(name).is_dir():
        return TransformersLLM(name, **where)
    if not colon and ("/" in name or name.startswith((".", "~"))):
        raise ResourceNotFound("model folder", name, [])
    from formal_llm.rltf.policy import local_model

    return local_model(name)  # says why it cannot be trained


# -- rewards -----------------------------------------------------------------------------------------------------------


def reward_for(settings: Settings, pack: TaskPack, judge: PlanJudge | None = None) -> Reward:
    """The reward that the settings name.

    Args:
        settings: of the run.
        pack: the task pack.
        judge: what executes plans, for the reward ``executed``.

    Raises:
        ResourceNotFound: there is no such reward.
        TrainingError: it is not there for this pack.
    """
    name = settings.reward
    if judge is not None:
        from formal_llm.packs.openagi.data_reward import data_reward

        return _stating(data_reward(judge), settings.failed_reward)
    if name == "references":
        if pack.name != _WITH_REFERENCES:
            raise TrainingError(
                f"the reward 'references' is for the pack {_WITH_REFERENCES}, of whose tasks it is known which tools they "
                f"call for; for {pack.name} give a reward of your own: MODULE:FUNCTION"
            )
        from formal_llm.packs.openagi.references import openagi_reward

        return openagi_reward()
    try:
        found = reward_of(name)
    except ResourceNotFound as error:
        if ":" in name:
            raise
        raise ResourceNotFound("reward", name, [*_NAMED, "MODULE:FUNCTION"]) from error
    if type(found) is not Reward:
        return found  # it says itself what it gives to plans that fail
    return ExecutedReward(
        found.judge,
        settings.failed_reward,
        name=None if found.identity is None else found.name,
        deterministic=found.deterministic,
        invalid=found.invalid,
    )


def _stating(reward: Reward, failed: float) -> Reward:
    """The same reward with another one for plans that fail."""
    if not failed:
        return reward

    def worth(task: Task, plan: Plan) -> Judged:
        judged = reward.judge(task, plan)
        return replace(judged, value=failed) if judged.failed else judged

    return Reward(worth, name=f"{reward.name}, failed {failed!r}", deterministic=reward.deterministic, invalid=failed)


def _exact() -> Mapping[str, Reward]:
    from formal_llm.packs.openagi.references import openagi_exact_reward

    return {"exact": openagi_exact_reward()}


def exact_tools(pack: TaskPack) -> References:
    """For each task of the OpenAGI pack the limits of plans with just the tools that its sentence calls for.

    Each of these tools once, no other tool; inputs as the task allows.
    """
    from formal_llm.packs.openagi.references import tools_called_for

    inputs = {entry["terminal"] for entry in pack.data["inputs"].values()}
    tools = [name for name in pack.cfg.terminals if name not in inputs]

    def limits(task: Task) -> Limits:
        wanted = tools_called_for(task)
        return Limits(at_most={name: int(name in wanted) for name in tools}, at_least=dict.fromkeys(sorted(wanted), 1))

    return limits


def _judge(pack: TaskPack, settings: Settings, folder: str | Path | None) -> PlanJudge:
    """What executes plans on task data and scores what comes out."""
    if pack.name != _WITH_REFERENCES:
        raise TrainingError(f"the reward 'executed' is for the pack {_WITH_REFERENCES}, whose tools and scores are known")
    if not settings.data:
        raise TrainingError(
            "the reward 'executed' needs task data: make some (formal-llm data openagi --out DIR) and give their folder "
            "as the setting data"
        )
    try:
        from formal_llm.packs.openagi.judging import PlanJudge
        from formal_llm.packs.openagi.toolkits import TOOLKITS
        from formal_llm.tools import Executor
    except ImportError as error:
        raise MissingDependency(
            f"executing plans needs libraries: pip install 'formal-llm[openagi]' ({error})"
        ) from error
    if settings.toolkit not in TOOLKITS:
        raise ResourceNotFound("toolkit", settings.toolkit, TOOLKITS)
    tools = TOOLKITS[settings.toolkit]()
    tools.check(pack.cfg, pack.data.get("kinds", {}), missing=True)
    kept = None if folder is None else Path(folder) / EXECUTED
    return PlanJudge(Executor(tools, cache=kept), settings.data, pack=pack)


def _judgeable(judge: PlanJudge, numbers: Sequence[int], notes: list[str]) -> list[int]:
    """The tasks that have a plan with the tools that are there, and a score for what it puts out."""
    planner = judge.pack.planner()
    without_plan, without_score = [], []
    for number in numbers:
        try:
            planner.start(judge.task(number))
        except NoValidPlan:
            without_plan.append(number)
            continue
        if judge.score_for(number) is None:
            without_score.append(number)
    for left_out, why in ((without_plan, "no plan with these tools"), (without_score, "no score for what comes out")):
        if left_out:
            notes.append(f"{_tasks(left_out)} left out: {why}")
    return [number for number in numbers if number not in without_plan and number not in without_score]
