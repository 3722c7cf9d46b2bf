"""Create a trainer from the settings of a training run: its tasks, its reward, its policy.

:class:`Ingredients` holds the parts of a run other than the model. They are found, checked and counted without loading
a model or writing a file. :func:`trainer_of` adds the model and the folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.errors import ModelError, ResourceNotFound, TrainingError
from formal_llm.llms.local.encoders import EncoderLLM
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.loading import scoring_of, settings_of
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.packs import training_rewards as rewards
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning import Planner, Task, TaskPack
from formal_llm.planning.rewordings import LabelledTask, has_labels, read_rewordings, read_sentences
from formal_llm.planning.walks.wording import adapt_wording
from formal_llm.rltf.all_plans import count_plans
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.metrics_log import View
from formal_llm.rltf.policy import LoRA, Policy, base_and_adapter, local_model
from formal_llm.rltf.rewards import CachedReward, Reward
from formal_llm.rltf.settings import Settings, count_updates
from formal_llm.rltf.trainer import Trainer
from formal_llm.rltf.warm_start import ReferenceLimits

if TYPE_CHECKING:
    from formal_llm.packs.openagi.scores.judging import PlanJudge


@dataclass(frozen=True)
class Ingredients:
    """The parts of a run other than the model.

    Attributes:
        planner: the rules and the wording; its LLM is not used.
        held_out: the tasks that evaluate the training; none of them is trained on.
        validation: the tasks that determine which adapters are best; none of them is trained on.
        reward: the reward of plans, without a cache.
        metrics: additional functions of plans, by name: ``exact`` if the right tools of a task are known.
        references: the plans that a warm start imitates: those with exactly the right tools if known, else all.
        notes: messages for the user: which tasks were left out, and why.
    """

    settings: Settings
    pack: TaskPack
    planner: Planner
    tasks: tuple[Task, ...]
    held_out: tuple[Task, ...]
    reward: Reward
    validation: tuple[Task, ...] = ()
    metrics: Mapping[str, Reward] = field(default_factory=dict)
    references: ReferenceLimits | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings, folder: str | Path | None = None) -> Ingredients:
        """Collect the ingredients that the settings specify.

        Args:
            settings: the settings of the run.
            folder: the folder of the run, where results of executed tools are kept; None if they are not kept.

        Raises:
            ResourceNotFound: there is no such pack, split, task, reward, toolkit or data.
            TrainingError: no task is left to train on, or the reward does not apply to this pack.
            MissingDependency: executing plans needs libraries that are not installed.
        """
        pack = TaskPack.load(settings.pack)
        tasks, held_out = selected(pack, settings.train), selected(pack, settings.held_out)
        validation = selected(pack, settings.validation)
        notes: list[str] = []
        judge: PlanJudge | None = None
        if settings.reward == "executed":
            judge = rewards.judge_of(pack, settings, folder)
            tasks = rewards.select_judgeable(judge, tasks, notes)
            held_out = rewards.select_judgeable(judge, held_out, notes)
            validation = rewards.select_judgeable(judge, validation, notes)
        if not tasks:
            why = "; ".join(notes) or "nothing is selected"
            raise TrainingError(f"there is no task to train on in {settings.train!r}: {why}")
        trained = {task.description for task in tasks}
        both = [task for task in held_out if task.description in trained]
        if both:
            notes.append(f"{rewards.format_tasks(pack, both)} trained on, so not held out")
        if not settings.held_out:
            notes.append("no task is held out: nothing will be judged by tasks that were not trained on")
        known = pack.name == rewards.WITH_REFERENCES
        return cls(
            settings,
            pack,
            pack.planner(),
            tuple(tasks),
            tuple(task for task in held_out if task not in both),
            rewards.reward_for(settings, pack, judge),
            tuple(task for task in validation if task.description not in trained),
            rewards.exact_metric() if known else {},
            rewards.exact_tools(pack) if known else None,
            tuple(notes),
        )

    @property
    def updates(self) -> int:
        """The number of updates in the run, including those of the warm start."""
        return count_updates(self.settings, len(self.tasks))

    def counts(self) -> list[float | None]:
        """Count the plans of each task to train on (:func:`~formal_llm.rltf.all_plans.count_plans`).

        Raises:
            NoValidPlan: a task has no plan.
        """
        return [count_plans(self.planner, task) for task in self.tasks]


def trainer_of(
    settings: Settings,
    folder: str | Path,
    *,
    world: Processes | None = None,
    views: Sequence[View] = (),
    ingredients: Ingredients | None = None,
) -> Trainer:
    """Create the trainer that the settings specify.

    Args:
        settings: the settings of the run.
        folder: the folder of the run, created if missing.
        world: the processes of the run.
        views: the views that receive the metrics.
        ingredients: the ingredients from the settings, if they are already known.

    Raises:
        ResourceNotFound, TrainingError, MissingDependency: as for :meth:`Ingredients.of`.
        ModelError: the model cannot be loaded or trained.
    """
    place = Path(folder)
    parts = ingredients or Ingredients.of(settings, place)
    if settings.device_map and world is not None and world.size > 1:
        raise TrainingError(
            f"{world.size} processes, and device_map: it spreads one model over all devices, so one process trains it"
        )
    policy = policy_of(settings)
    if settings.threads is not None:
        import torch

        torch.set_num_threads(settings.threads)
    place.mkdir(parents=True, exist_ok=True)
    # The wording is the one the model reads best, and the same as when it plans with the trained adapters.
    planner = parts.pack.planner(wording=adapt_wording(parts.pack.wording, policy.llm))
    return Trainer(
        planner, policy, CachedReward(parts.reward), parts.tasks, place,
        held_out=parts.held_out, validation=parts.validation, settings=settings, metrics=parts.metrics,
        references=parts.references, world=world, views=tuple(views),
    )  # fmt: skip


def selected(pack: TaskPack, text: str) -> list[Task]:
    """Return the tasks that a text selects; none for an empty text.

    The text is a split of the pack, ``all``, numbers as in ``0,7,20-25``, a file of sentences such as
    ``validation.toml`` (:mod:`~formal_llm.planning.rewordings`), or several of these: ``training + rewordings.toml``.

    Raises:
        ResourceNotFound: the pack has no such split, task or file.
        NotationError: the file cannot be read.
        ValueError: a range is reversed.
    """
    found: list[Task] = []
    for part in filter(None, map(str.strip, text.split("+"))):
        if part.endswith(".toml"):
            found += read_rewordings(pack, part)
        elif re.fullmatch(r"\d+(\s*-\s*\d+)?(\s*,\s*\d+(\s*-\s*\d+)?)*", part):
            found += [pack.tasks[number] for number in _parse_numbers(pack, part)]
        else:
            found += pack.split(part)
    return list(dict.fromkeys(found))


def labelled(pack: TaskPack, text: str) -> list[LabelledTask]:
    """Return the tasks that a text selects, each with the steps that its sentence calls for.

    The text is as in :func:`selected`; besides, it may name files of labelled sentences
    (:func:`~formal_llm.planning.rewordings.read_sentences`). What is named twice is there twice. Tasks of the split
    ``test``, in the pack's words or in others, are left out.

    Raises:
        ResourceNotFound, NotationError, ValueError: as :func:`selected`.
        TrainingError: it is not known which steps a sentence calls for.
    """
    tested = {pack.tasks[number].description for number in pack.splits.get("test", ())}
    found: list[LabelledTask] = []
    for part in filter(None, map(str.strip, text.split("+"))):
        if part.endswith(".toml") and has_labels(pack, part):
            found += read_sentences(pack, part)
        elif pack.name == rewards.WITH_REFERENCES:
            tasks = [task for task in selected(pack, part) if (task.original or task.description) not in tested]
            found += [LabelledTask(task, frozenset(tools_called_for(task))) for task in tasks]
        else:
            raise TrainingError(f"{part}: which steps these call for is not known; give a file of labelled sentences")
    return found


def _parse_numbers(pack: TaskPack, text: str) -> list[int]:
    """Parse the numbers of tasks in a text such as ``0,7,20-25``."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        begin, end = int(first), int(last if dash else first)
        if end < begin:
            raise ValueError(f"tasks {part.strip()}: a range goes from the lower number to the higher one")
        # Look up both ends before expanding the range: one may be far outside.
        pack.task(begin)
        pack.task(end)
        found += range(begin, end + 1)
    return found


def policy_of(settings: Settings) -> Policy:
    """Create the policy that the settings specify.

    Raises:
        ModelError, ResourceNotFound: the model cannot be loaded or trained, or there are no such adapters.
        MissingDependency: torch, transformers or peft are not installed.
    """
    model, adapter = base_and_adapter(settings.model)
    adapter = settings.adapter or adapter
    if adapter and not (file := Path(adapter) / "adapter_model.safetensors").is_file():
        raise ResourceNotFound("adapter file", str(file), [])  # before a large model is loaded
    scoring = settings.scoring or (scoring_of(adapter) if adapter else "")
    return Policy(
        model_of(settings.model_copy(update={"model": model, "scoring": scoring})),
        LoRA(settings.rank, settings.alpha, settings.dropout, settings.targets),
        temperature=settings.temperature,
        adapter=adapter,
        seed=settings.seed,
        gradient_checkpointing=settings.gradient_checkpointing,
        autocast=settings.autocast or None,
    )


def model_of(settings: Settings) -> LocalLLM:
    """Load the model that the settings name, with their number type and on their device.

    Raises:
        ModelError: it is not a local model, it does not exist, or it cannot be loaded.
        ResourceNotFound: there is no such folder.
        MissingDependency: torch or transformers are not installed.
    """
    name = settings.model
    provider, colon, rest = name.partition(":")
    template = settings_of(settings.template)
    if template and provider != "transformers" and not Path(name).is_dir():
        raise ModelError(f"{name} has no chat template, so {min(template)} sets nothing")
    if name == "minilm" or (provider == "encoder" and rest):
        if settings.scoring:
            raise ModelError(f"{name} is a sentence encoder, which compares texts; leave scoring out")
        if settings.device_map:
            raise ModelError(f"{name} is a sentence encoder, which device_map does not spread; leave it out")
        encoder = (rest,) if rest else ()
        return EncoderLLM(*encoder, device=settings.device, dtype=settings.dtype, batch_tokens=settings.batch_tokens)
    named = provider == "transformers" and rest
    if named or Path(name).is_dir():
        return TransformersLLM(
            rest if named else name, device=settings.device, dtype=settings.dtype,
            device_map=settings.device_map or None, batch_tokens=settings.batch_tokens,
            template_settings=template, scoring=settings.scoring or "number",
        )  # fmt: skip
    if not colon and ("/" in name or name.startswith((".", "~"))):
        raise ModelError(f"there is no folder {name!r}; a model of the hub by that name is written transformers:{name}")
    if name == "smollm2":  # calibrated by default elsewhere; in training the settings decide
        name, settings = f"smollm2:scoring={settings.scoring or 'number'}", settings.model_copy(update={"scoring": ""})
    if settings.scoring:
        raise ModelError(f"{name} does not take the setting scoring: that is for models that write, named without any")
    return local_model(name)  # raises an error that explains why it cannot be trained
