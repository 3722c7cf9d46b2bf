"""The settings of a training run: a recipe in TOML, which ``formal-llm train --set`` can change."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from formal_llm.authored.tables import TablePath, TableProblem, TomlFile
from formal_llm.errors import NotationError, ResourceNotFound, did_you_mean
from formal_llm.llms.scoring import known_mode
from formal_llm.rltf.advantages import ADVANTAGES, estimator


class Settings(BaseModel):
    """The settings of a training run. The defaults are those of the paper where it has any (arXiv 2402.00798).

    A *group* is all samples of one task in one update; an *update* is one step of the optimizer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    # -- what
    model: str = Field(default="minilm", description="The model: a folder, transformers:NAME, encoder:NAME, minilm.")
    pack: str = Field(default="openagi", description="The task pack: a name, or a folder.")
    train: str = Field(
        default="training",
        description="The tasks to train on: a split of the pack, numbers (0,7,20-25), FILE.toml, or several with +.",
    )
    held_out: str = Field(default="test", description="The tasks to judge by; never trained on.")
    validation: str = Field(
        default="", description="The tasks that determine the best adapters and when to stop; none: those held out."
    )
    reward: str = Field(default="references", description="The reward: references, executed, or MODULE:FUNCTION.")
    failed_reward: float = Field(default=0.0, description="The reward of a plan whose execution fails.")
    toolkit: str = Field(default="classical", description="What executes plans, for the reward 'executed'.")
    data: str = Field(default="", description="The folder of task data, for the reward 'executed'.")
    reward_workers: int = Field(default=1, ge=1, description="How many plans are judged at the same time.")

    # -- the policy
    rank: int = Field(default=8, ge=1, description="The rank of the LoRA adapters.")
    alpha: float = Field(default=16.0, gt=0, description="Their output is multiplied with alpha / rank.")
    dropout: float = Field(default=0.0, ge=0, lt=1, description="The dropout of the adapters' inputs.")
    targets: tuple[str, ...] = Field(default=(), description="The modules with adapters; none: queries and values.")
    adapter: str = Field(default="", description="A folder with trained adapters to begin with.")
    temperature: float = Field(default=1.0, gt=0, description="The temperature of the policy.")
    template: tuple[str, ...] = Field(
        default=(), description="What the chat template reads: NAME=VALUE, such as enable_thinking=false."
    )
    scoring: str = Field(
        default="",
        description="How options are scored and trained (number, text, calibrated); none: as the adapter, or number.",
    )
    dtype: Literal["auto", "float32", "bfloat16"] = Field(default="auto", description="The numbers of the weights.")
    autocast: Literal["", "bfloat16"] = Field(default="", description="The numbers of products: mixed precision.")
    device: str = Field(default="auto", description="Where the model runs, as torch names it.")
    device_map: str = Field(
        default="", description="Spread a model that fits no one device: auto, balanced, sequential; none: one device."
    )
    gradient_checkpointing: bool = Field(default=False, description="Compute activations twice, to save memory.")
    batch_tokens: int | None = Field(
        default=None, ge=1, description="Tokens read in one pass: bounds memory; none: as many as suit the device."
    )

    # -- the update
    advantage: str = Field(default="reinforce", description=f"The estimator: {', '.join(ADVANTAGES)}.")
    samples: int = Field(default=1, ge=1, description="Plans sampled for each task in each update.")
    tasks_per_update: int = Field(default=1, ge=1, description="Tasks in each update.")
    epochs: int = Field(default=30, ge=1, description="How often each task is trained on.")
    updates: int | None = Field(default=None, ge=0, description="How many updates instead, whatever the epochs.")
    learning_rate: float = Field(default=1e-3, gt=0, description="Of Adam.")
    schedule: Literal["constant", "linear", "cosine"] = Field(default="constant", description="How the rate goes down.")
    warmup: int = Field(default=0, ge=0, description="Updates in which the learning rate rises to its value.")
    weight_decay: float = Field(default=0.0, ge=0, description="Of AdamW; 0 makes it Adam.")
    clip: float = Field(default=1.0, ge=0, description="The largest norm of a gradient; 0: no bound.")
    entropy: float = Field(default=0.0, ge=0, description="Bonus for the entropy of choices.")
    kl: float = Field(default=0.0, ge=0, description="Penalty for the distance KL(policy || base) of choices.")
    decay: float = Field(default=0.8, ge=0, le=1, description="Of the moving average of a task's rewards.")
    known_plans: int = Field(default=64, ge=1, description="Plans of a task that the stratified estimator sums over.")
    exact_plans: int = Field(default=2_000, ge=1, description="Up to how many plans a task's gradient is exact.")
    questions_per_pass: int = Field(
        default=256, ge=1, description="Distinct questions in one backward pass: bounds memory."
    )

    # -- the run
    warm_start: int = Field(default=0, ge=0, description="Supervised updates on reference plans first.")
    warm_plans: int = Field(default=4, ge=1, description="Reference plans of each task for them.")
    warm_learning_rate: float | None = Field(default=None, gt=0, description="Of Adam in them; none: learning_rate.")
    evaluate_every: int = Field(default=0, ge=0, description="Updates between evaluations; 0: before and after only.")
    patience: int = Field(
        default=0,
        ge=0,
        description="Evaluations without a better one after which the run stops; 0: it runs to its end.",
    )
    checkpoint_every: int = Field(default=10, ge=0, description="Updates between checkpoints; 0: at the end only.")
    keep_checkpoints: int = Field(
        default=2, ge=1, description="How many of the last ones are kept; the best one besides."
    )
    processes: int | None = Field(default=None, ge=1, description="How many processes there must be.")
    threads: int | None = Field(
        default=None, ge=1, description="Threads that compute on a CPU; none: as many as torch takes."
    )
    tensorboard: bool = Field(default=False, description="Write the figures for TensorBoard as well.")
    wandb: str = Field(default="", description="The project at Weights & Biases that gets the figures as well.")
    seed: int = Field(default=0, ge=0, description="Of all draws.")

    @field_validator("advantage")
    @classmethod
    def _known_advantage(cls, name: str) -> str:
        try:
            return estimator(name).name
        except ResourceNotFound as error:
            nearest = did_you_mean(name, error.known)
            raise ValueError(f"no advantage {name!r}" + (f"; did you mean {nearest}?" if nearest else "")) from None

    @field_validator("scoring")
    @classmethod
    def _known_scoring(cls, scoring: str) -> str:
        return known_mode(scoring) if scoring else ""

    @classmethod
    def read(cls, path: str | Path, changes: Mapping[str, object] | None = None) -> Settings:
        """Read the settings of a recipe.

        Args:
            path: a TOML file. Its tables only organize the settings; their names are ignored.
            changes: settings that override those of the file.

        Raises:
            ResourceNotFound: the file does not exist.
            NotationError: the file is not TOML, or contains an unknown setting.
        """
        file = Path(path)
        if not file.is_file():
            raise ResourceNotFound("recipe", str(path), [])
        recipe = TomlFile.read(path, object)
        places: dict[str, TablePath] = {}
        values: dict[str, object] = {}
        for place, value in _settings_in(recipe.data):
            name = str(place[-1])
            if name in places:
                recipe.fail(TableProblem(place, f"the setting {name} is there twice"))
            places[name], values[name] = place, value
        try:
            return cls.model_validate({**values, **(changes or {})})
        except ValidationError as error:
            name, problem = _describe_error(error)
            if name in places and name not in (changes or {}):
                recipe.fail(TableProblem(places[name], problem))
            raise NotationError(problem, file=str(path)) from None

    @classmethod
    def of(cls, values: Mapping[str, object], file: str = "") -> Settings:
        """Return checked settings.

        Raises:
            NotationError: a setting is unknown or has an invalid value; the error specifies which.
        """
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise NotationError(_describe_error(error)[1], file=file) from None


def _describe_error(error: ValidationError) -> tuple[str, str]:
    """Return the setting that an error is about, and the problem."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        suggestion = did_you_mean(name, Settings.model_fields)
        return name, f"there is no setting {name}" + (f"; did you mean {suggestion}?" if suggestion else "")
    return name, f"{name}: {first['msg'].removeprefix('Value error, ')}, not {first['input']!r}"


def _settings_in(data: Mapping[str, object], table: TablePath = ()) -> Iterator[tuple[TablePath, object]]:
    """Yield the settings of a file with their paths, whatever tables they are in."""
    todo = [(table, data)]
    while todo:
        table, data = todo.pop()
        for name, value in data.items():
            if isinstance(value, Mapping):
                todo.append(((*table, name), value))
            else:
                yield (*table, name), value


# -- derived from the settings and the number of an update alone, so no checkpoint contains it -------------------------


def count_updates(settings: Settings, tasks: int) -> int:
    """Return the number of updates of a run on this number of tasks, including those of the warm start."""
    updates = settings.updates
    if updates is None:
        updates = math.ceil(settings.epochs * tasks / settings.tasks_per_update)
    return settings.warm_start + updates


def tasks_of(settings: Settings, tasks: int, update: int) -> list[int]:
    """Return the positions of the tasks of an update: each epoch goes through all tasks in a new order.

    Args:
        settings: the settings of the run.
        tasks: the number of tasks to train on.
        update: the number of the update, from 1, not counting those of the warm start, which use all tasks.
    """
    size = settings.tasks_per_update
    places = []
    for number in range((update - 1) * size, update * size):
        epoch, place = divmod(number, tasks)
        order = list(range(tasks))
        random.Random(f"{settings.seed} epoch {epoch}").shuffle(order)
        places.append(order[place])
    return places


def learning_rate(settings: Settings, step: int, updates: int) -> float:
    """Return the learning rate of an update.

    Args:
        settings: the settings of the run.
        step: the number of the update, from 1 to ``updates``, counting those of the warm start.
        updates: see :func:`count_updates`.
    """
    if step <= settings.warm_start:
        return settings.warm_learning_rate or settings.learning_rate
    number, total = step - settings.warm_start, updates - settings.warm_start
    if number <= settings.warmup:
        return settings.learning_rate * number / settings.warmup
    progress = (number - settings.warmup - 1) / max(total - settings.warmup, 1)
    falls = {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    return settings.learning_rate * falls[settings.schedule]
