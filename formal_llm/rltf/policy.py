"""A policy: a local model whose answers are trained through LoRA adapters, with its own base model as reference.

The policy answers a question with a distribution over its options (see :mod:`formal_llm.llms.local`), at a temperature.
The adapters (Hu et al. 2021, arXiv 2106.09685) are the only weights that change. Without them the model is the one that
training started from, so the distance to it needs no second model.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms import LLM, resolve
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.loading import SCORED, base_of, quiet_peft, scoring_of
from formal_llm.llms.local.memory import fewer_tokens, fitted
from formal_llm.llms.question import Question

if TYPE_CHECKING:
    import torch
    from peft import PeftModel
    from transformers import PreTrainedModel

#: The query and value projections, under the names that models use: the first row that a model has is trained.
TARGETS = (
    ("q_proj", "v_proj"), ("q", "v"), ("query", "value"), ("q_lin", "v_lin"), ("c_attn",), ("query_key_value",),
    ("in_proj", "x_proj"),
    ("q_b_proj", "kv_b_proj"), ("q_proj", "kv_b_proj"),  # DeepSeek, from a latent vector
    ("qkv_proj",), ("Wqkv",), ("Wq", "Wv"), ("project_q", "project_v"), ("query_proj", "value_proj"),
    ("q_b_proj", "kv_proj"), ("key", "value"), ("kv_proj",),
    ("in_proj",),  # Mamba 2: produces everything that a layer reads of a token
)  # fmt: skip
#: The vision and audio parts of a model: they get no adapters by default, since plans consist of text.
_TOWERS = re.compile(r"(^|[._])(vision|visual|vit|image|video|audio|speech)", re.IGNORECASE)


@dataclass(frozen=True)
class LoRA:
    """The settings of the adapters.

    Attributes:
        rank: the rank of the two matrices of each adapter.
        alpha: the output of the adapters is multiplied by alpha / rank.
        dropout: the fraction of an adapter's input that is dropped in training.
        targets: the names of the modules that get adapters, anywhere in the model; if empty, the query and value
                projections, except those in vision and audio parts.
    """

    rank: int = 8
    alpha: float = 16.0
    dropout: float = 0.0
    targets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha <= 0 or not 0 <= self.dropout < 1:
            raise ValueError("rank counts from 1, alpha is above 0, dropout from 0 to below 1")


class Policy:
    """A model with adapters.

    Args:
        llm: a local model: ``"transformers:MODEL"``, ``"encoder:MODEL"``, ``"minilm"``, a folder, or a
                :class:`LocalLLM`. Its weights are frozen and the adapters added to it. A folder of trained adapters
                (``RUN/final``) denotes the model they were trained on and is then the ``adapter``.
        lora: the settings of the adapters.
        temperature: divides the log-probabilities of the options, which are then normalised again.
        adapter: a folder with trained adapters in the format of peft to continue from; ``lora`` is then ignored.
        seed: the seed for the initial weights of the adapters.
        gradient_checkpointing: recompute activations in the backward pass: slower, but with less memory.
        autocast: the data type for matrix products (``"bfloat16"``); default: that of the weights.

    Attributes:
        llm: the model as an LLM; its answers are those of the policy.
        model: the model with adapters, a ``peft.PeftModel``.
        room: the number of questions that fit in one backward pass; unlimited until memory first ran out.

    Raises:
        ModelError: the LLM is not a local model, it has no such modules, or the adapters do not fit it.
        MissingDependency: peft is not installed.
        ResourceNotFound: the folder does not exist.
    """

    def __init__(
        self,
        llm: str | LLM,
        lora: LoRA | None = None,
        *,
        temperature: float = 1.0,
        adapter: str | Path | None = None,
        seed: int = 0,
        gradient_checkpointing: bool = False,
        autocast: str | None = None,
    ) -> None:
        if not temperature > 0:
            raise ValueError(f"temperature is above 0, not {temperature}")
        if isinstance(llm, str):
            llm, own_adapter = base_and_adapter(llm)
            if own_adapter and "scoring=" not in llm and (scoring := scoring_of(own_adapter)):
                llm += f"{'&' if '?' in llm else '?'}scoring={scoring}"
            adapter = adapter or own_adapter
        self.llm = local_model(llm)
        self.scorer = self.llm.scorer
        self.temperature = temperature
        self.autocast = autocast
        self.room = sys.maxsize
        self.model = _with_adapters(self.scorer.model, lora or LoRA(), seed, None if adapter is None else Path(adapter))
        self.device = self.scorer.model.get_input_embeddings().weight.device
        if gradient_checkpointing:
            _enable_checkpointing(self.scorer.model)
        self.gradient_checkpointing = gradient_checkpointing
        self.changed()

    def __repr__(self) -> str:
        return f"<Policy {self.llm.name}: {self.trainable:,} of {self.size:,} weights are trained>"

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """The trained weights, in a fixed order."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def trainable(self) -> int:
        """The number of trained weights."""
        return sum(parameter.numel() for parameter in self.parameters)

    @property
    def size(self) -> int:
        """The total number of weights."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def log_probabilities(self, questions: Sequence[Question]) -> torch.Tensor:
        """Like :meth:`Scorer.log_probabilities`, at the policy's temperature; differentiable if gradients are enabled.

        If memory runs out without gradients, later passes read fewer tokens.
        """
        import torch

        if torch.is_grad_enabled():
            values = self._score_questions(questions)
        else:
            scorer = self.scorer
            values = fitted(lambda: self._score_questions(questions), lambda: fewer_tokens(scorer))
        if self.temperature == 1.0:
            return values
        return torch.log_softmax(values / self.temperature, dim=-1)

    def _score_questions(self, questions: Sequence[Question]) -> torch.Tensor:
        import torch

        dtype = None if self.autocast is None else getattr(torch, self.autocast)
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            return self.scorer.log_probabilities(questions).float()

    def reference(self, questions: Sequence[Question]) -> torch.Tensor:
        """Return the same for the model without its adapters, as constants.

        These are recomputed each time although they never change: the last bits of a result depend on what is computed
        along with it, and a resumed run must reach the same bits.
        """
        import torch

        with torch.no_grad(), self.without_adapters():
            return self.log_probabilities(questions)

    @contextmanager
    def without_adapters(self) -> Iterator[None]:
        """Use the model as it was before training."""
        with self.scorer.aside(), self.model.disable_adapter():
            yield

    @contextmanager
    def training(self) -> Iterator[None]:
        """Enable gradients and what only training uses (dropout of the adapters, gradient checkpointing)."""
        import torch

        # Set the flag module by module: setting all at once would enable the dropout of the base model, and the policy
        # would differ at each evaluation.
        for name, module in self.model.named_modules():
            if "lora_dropout" in name:
                module.training = True
        if self.gradient_checkpointing:
            from transformers.modeling_layers import GradientCheckpointingLayer

            self.scorer.model.training = True
            for module in self.scorer.model.modules():
                if isinstance(module, GradientCheckpointingLayer):
                    module.training = True
        try:
            with torch.enable_grad():
                yield
        finally:
            self.model.eval()

    def changed(self) -> None:
        """Discard what was computed with the old weights; call this after the weights have changed."""
        self.model.eval()
        self.scorer.forget()

    def save(self, folder: str | Path) -> None:
        """Save the adapters in the format of peft: ``peft.PeftModel.from_pretrained(base, folder)`` loads them.

        The file beside them records how options were scored, unless that was by their numbers.
        """
        self.model.save_pretrained(str(folder), save_embedding_layers=False)
        scoring = getattr(self.scorer, "scoring", "number")
        if scoring != "number":
            (Path(folder) / SCORED).write_text(scoring + "\n", encoding="utf-8")

    def load(self, folder: str | Path) -> None:
        """Replace the adapters with saved ones.

        Raises:
            ResourceNotFound: the folder contains none.
            ModelError: they do not fit the model.
        """
        from peft import get_peft_model_state_dict, set_peft_model_state_dict

        state = _state_in(Path(folder))
        current = get_peft_model_state_dict(self.model, save_embedding_layers=False)
        own = {name: tensor.shape for name, tensor in current.items()}
        saved = {name: tensor.shape for name, tensor in state.items()}
        if own != saved:
            odd = sorted(set(own) ^ set(saved)) or [name for name in own if own[name] != saved[name]]
            raise ModelError(f"the adapters in {folder} do not fit this model: {odd[0]} and {len(odd) - 1} more differ")
        set_peft_model_state_dict(self.model, state)
        self.changed()


def local_model(llm: str | LLM) -> LocalLLM:
    """Return the local model that a provider string or the folder of a model denotes.

    Raises:
        ModelError: it is not a model that runs locally.
    """
    if isinstance(llm, str) and Path(llm).is_dir():
        llm = f"transformers:{llm}"
    model = resolve(llm)
    if not isinstance(model, LocalLLM):
        raise ModelError(
            f"{llm if isinstance(llm, str) else type(llm).__name__} cannot be trained: training takes a model that "
            "runs here (transformers:MODEL, encoder:MODEL, minilm, or the folder of a model)"
        )
    return model


def base_and_adapter(model: str) -> tuple[str, str | None]:
    """Return the base model for a name that a person gives, and the folder of adapters if the name denotes one.

    Raises:
        ModelError: the base model of the adapters is missing or not specified.
    """
    provider, colon, rest = model.partition(":")
    if not colon or provider not in ("transformers", "encoder"):
        provider, rest = "transformers", model
    folder, question, settings = rest.partition("?")
    base = base_of(folder)
    return (model, None) if base is None else (f"{provider}:{base}{question}{settings}", folder)


def _enable_checkpointing(model: PreTrainedModel) -> None:
    """Make a model recompute its activations in the backward pass."""
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    else:  # its name before transformers 5.20
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()


def default_targets(model: torch.nn.Module) -> tuple[str, ...]:
    """Return the names of the modules that project queries and values.

    Raises:
        ModelError: the model has no module of a known name.
    """
    names = {name.rpartition(".")[2] for name, _ in model.named_modules() if not _TOWERS.search(name)}
    for targets in TARGETS:
        if names.issuperset(targets):
            return targets
    raise ModelError(f"{type(model).__name__} has no query and value projections by a known name; give lora targets")


def _with_adapters(model: PreTrainedModel, lora: LoRA, seed: int, folder: Path | None) -> PeftModel:
    """Add new adapters, or those in a folder, to a model."""
    try:
        import peft
    except ImportError as error:
        raise MissingDependency("training needs peft: pip install torch 'formal-llm[rltf]'") from error
    import torch

    name = type(model).__name__
    if any("lora_" in part for part, _ in model.named_modules()):
        raise ModelError(f"this {name} has trained adapters already; name their folder as the model, or as the adapter")
    away = sum(parameter.numel() for parameter in model.parameters() if parameter.device.type == "meta")
    if away:
        raise ModelError(
            f"{away:,} weights of this {name} do not fit the devices and are fetched when they are needed; no gradient "
            "goes through them: take dtype bfloat16, more devices, or a smaller model"
        )
    if folder is not None:
        _state_in(folder)
        try:
            with quiet_peft():
                return peft.PeftModel.from_pretrained(model, str(folder), is_trainable=True)
        except (ValueError, RuntimeError, KeyError, OSError) as error:
            raise ModelError(f"the adapters in {folder} do not fit {name}: {error}") from error
    from transformers.pytorch_utils import Conv1D

    targets = lora.targets or default_targets(model)
    aimed = {part: module for part, module in model.named_modules() if part.rpartition(".")[2] in targets}
    towers = [] if lora.targets else sorted(part for part in aimed if _TOWERS.search(part))
    config = peft.LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, bias="none", target_modules=list(targets),
        exclude_modules=towers or None, fan_in_fan_out=any(isinstance(module, Conv1D) for module in aimed.values()),
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]), quiet_peft():
        torch.manual_seed(seed)
        try:
            return peft.get_peft_model(model, config)
        except ValueError as error:
            raise ModelError(f"adapters cannot be put into {name}: {error}") from error


def _state_in(folder: Path) -> dict[str, torch.Tensor]:
    """Return the adapter weights in a folder."""
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        raise ResourceNotFound("adapter file", str(file), [])
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(str(file)))
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{file} cannot be read: {error}; remove {folder}, and train or copy the adapters again"
        ) from error
