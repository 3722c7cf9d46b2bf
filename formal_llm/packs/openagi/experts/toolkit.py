"""The experts: the fifteen tools of OpenAGI as models of transformers and diffusers.

Their checkpoints are listed in ``tasks/openagi/experts.toml`` and in an optional file of the user. A model is loaded
when its tool is first used. The models share a bounded memory: the least recently used one makes room.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from formal_llm.errors import CheckpointError, ToolkitError
from formal_llm.packs.openagi.experts.expert import Expert, split_batches
from formal_llm.packs.openagi.experts.loaded import GATE, LoadedModel, pick_device
from formal_llm.packs.openagi.experts.loading import ModelSource, get_download_command, offline_by_environment
from formal_llm.packs.openagi.experts.model_pool import ModelPool
from formal_llm.packs.openagi.experts.settings import VARIABLE, ExpertSettings, read_settings, unknown
from formal_llm.tools import Tool, Toolkit
from formal_llm.tools.kinds import kind_named

#: Part of the key of every cached result; it changes when experts use their models differently.
VERSION = "1"


class ExpertToolkit(Toolkit):
    """The experts as a toolkit.

    Attributes:
        pool: the models in memory.
        left_out: the tools whose checkpoint is not on this machine, each with a remedy.
    """

    def __init__(
        self, experts: Mapping[str, Expert], settings: ExpertSettings, device: str, memory: int | None
    ) -> None:
        self.experts = dict(experts)
        self.device = device
        self.pool: ModelPool[LoadedModel] = ModelPool(memory)
        users: dict[str, _SharedModel] = {}
        tools = []
        for name, expert in experts.items():
            shared = users.setdefault(key := _model_key(expert), _SharedModel(self.pool, key))
            shared.tools.append(name)
            tools.append(
                Tool(
                    name,
                    tuple(map(kind_named, expert.inputs)),
                    kind_named(expert.output),
                    partial(shared.run_one, expert),
                    batch=partial(shared.run_many, expert),
                    pure=True,
                    description=f"{_describe_expert(expert)} ({expert.source.checkpoint})",
                    version=_compute_fingerprint(expert),
                    parameters=("document", "question") if expert.inputs == ("text", "text") else expert.inputs,
                )
            )
        for model in users.values():
            self._add_model(model, settings)
        super().__init__(tools)

    def _add_model(self, model: _SharedModel, settings: ExpertSettings) -> None:
        first = self.experts[model.tools[0]]
        first.source = replace(first.source, tool=", ".join(model.tools))
        working = max(settings.tools[name]["working_memory"] for name in model.tools) * 1_000_000
        moves: dict[str, Any] = {}
        if self.device != "cpu":
            # The model waits in the memory of the machine while the device has no room for it.
            moves = {
                "enter": lambda loaded: loaded.move_model(self.device),
                "leave": lambda loaded: loaded.move_model("cpu"),
            }

        def load_model() -> LoadedModel:
            with GATE.wait_to_load():
                return first.load_model()

        self.pool.add(model.key, load_model, size=lambda loaded: loaded.bytes + working, **moves)


@dataclass(eq=False)
class _SharedModel:
    """A model in the pool; the tools that share it use it one after the other."""

    pool: ModelPool[LoadedModel]
    key: str
    tools: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run_one(self, expert: Expert, *values: Any) -> Any:
        """Run an expert on one value of each input."""
        return self.run_many(expert, *([value] for value in values))[0]

    def run_many(self, expert: Expert, *columns: Sequence[Any]) -> list[Any]:
        """Run an expert on many values of each input, in batches."""
        results: list[Any] = []
        # Pipelines keep their current work in their attributes, and two batches at once would need twice the memory.
        with self.lock, self.pool.use(self.key) as loaded:
            import torch

            with GATE.wait_to_work(), torch.inference_mode():
                for some in split_batches(range(len(columns[0])), expert.batch):
                    results += expert.run_batch(loaded, *([column[place] for place in some] for column in columns))
        return results


def experts(
    only: Collection[str] | None = None,
    *,
    checkpoints: Mapping[str, str] | None = None,
    settings: str | os.PathLike[str] | None = None,
    device: str | None = None,
    memory: int | None = None,
    offline: bool | None = None,
) -> ExpertToolkit:
    """Create the toolkit of experts. Nothing is loaded or downloaded before a tool is used.

    Args:
        only: the tools to include; by default all. A planner avoids the others.
        checkpoints: replacement checkpoints by tool: a repository on the hub or a folder, of the same kind of model.
        settings: a TOML file in the form of ``tasks/openagi/experts.toml``, with the differences only; by default the
            file that the environment variable ``FORMAL_LLM_EXPERTS`` names, if any.
        device: the device of the models, as torch names it; by default a GPU if there is one.
        memory: how many bytes the models may occupy there together; by default unlimited.
        offline: whether to use only checkpoints on this machine and leave out the other tools; by default as the
            settings or the environment variable ``HF_HUB_OFFLINE`` specify.

    Raises:
        ToolkitError: a setting or a tool does not exist.
        ResourceNotFound: there is no such file.
        CheckpointError: a checkpoint is written as a folder that does not exist, or a tool in ``only`` is not available
            offline.
        MissingDependency: torch is not installed.
    """
    tables = read_settings(settings, checkpoints)
    machine = tables.machine
    if strangers := [name for name in only or () if name not in tables.tools]:
        raise ToolkitError([unknown("expert", name, tables.tools) for name in strangers])
    target = pick_device(device or machine["device"])
    bound = memory if memory is not None else int(machine["memory_gb"] * 1_000_000_000) or None
    local = offline if offline is not None else machine["offline"] or offline_by_environment()
    found: dict[str, Expert] = {}
    left_out: dict[str, str] = {}
    for name in [name for name in tables.tools if only is None or name in only]:
        expert = _make_expert(name, tables, target, local)
        if local and not expert.source.is_local():
            problem = "is not on this machine"
            remedy = (
                f"download it with a network ({get_download_command(expert.source)}), or name a folder ({VARIABLE})"
            )
            if only is not None:
                raise CheckpointError(name, expert.source.checkpoint, problem, remedy)
            left_out[name] = f"its checkpoint {problem}; {remedy}"
            continue
        found[name] = expert
    toolkit = ExpertToolkit(found, tables, target, bound)
    toolkit.left_out = MappingProxyType(left_out)
    return toolkit


def _make_expert(name: str, settings: ExpertSettings, device: str, offline: bool) -> Expert:
    table, loader = settings.tools[name], settings.get_loader(name)
    dtype = table["dtype"]
    if dtype == "float16" and device == "cpu":
        dtype = "float32"  # half precision is for GPUs: CPUs are slow with it, and lack some of its operations
    source = ModelSource(
        name, table["checkpoint"], table["revision"] or None, table["weights"], dtype, offline, tuple(table["may_lack"])
    )
    _ = source.folder  # raise for a missing folder before anything runs
    own = {setting: table[setting] for setting in loader.defaults}
    return loader(source, own, batch=table["batch"], generation=table["generation"])


def _model_key(expert: Expert) -> str:
    """Return the key of the model of an expert; experts with the same key share it."""
    return f"{type(expert).__name__} {expert.source.key}"


def _compute_fingerprint(expert: Expert) -> str:
    """Return a hash of the factors besides the inputs that determine the results, for cache keys."""
    used_settings = json.dumps([expert.settings, expert.generation], sort_keys=True, default=str)
    text = f"{VERSION} {type(expert).__name__} {expert.source.compute_fingerprint()} {used_settings}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _describe_expert(expert: Expert) -> str:
    """Return the first sentence of an expert's documentation, without references."""
    return (type(expert).__doc__ or "").split("\n", 1)[0].split(" (")[0].rstrip(".")
