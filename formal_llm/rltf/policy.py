"""A policy: a local model whose answers are trained through LoRA adapters, its own base being the reference.

The policy answers a question with a distribution over the options (see :mod:`formal_llm.llms.local`), at a temperature.
The adapters (Hu et al. 2021, arXiv 2106.09685) are the only weights that change; without them the model is the one that
training began with, so the distance to it costs no second model.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms.llm import LLM, resolve
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.loading import SCORED, base_of, quiet_peft, scoring_of
from formal_llm.llms.local.memory import fewer_tokens, fitted
from formal_llm.llms.question import Question
from formal_llm.llms.scoring import named

if TYPE_CHECKING:
    import torch
    from peft import PeftModel
    from transformers import PreTrainedModel

#: The projections of queries and values, as models name them: the first row of names that a model has is trained.
TARGETS = (
    ("q_proj", "v_proj"), ("q", "v"), ("query", "value"), ("q_lin", "v_lin"), ("c_attn",), ("query_key_value",),
    ("in_proj", "x_proj"),
    ("q_b_proj", "kv_b_proj"), ("q_proj", "kv_b_proj"),  # of DeepSeek, from a latent vector
    ("qkv_proj",), ("Wqkv",), ("Wq", "Wv"), ("project_q", "project_v"), ("query_proj", "value_proj"),
    ("q_b_proj", "kv_proj"), ("key", "value"), ("kv_proj",),
    ("in_proj",),  # of Mamba 2: it makes all that a layer reads of a token
)  # fmt: skip
#: Parts of a model that look at pictures or hear: they get no adapters of themselves, since plans are made of text.
_TOWERS = re.compile(r"(^|[._])(vision|visual|vit|image|video|audio|speech)", re.IGNORECASE)


@dataclass(frozen=True)
class LoRA:
    """Settings of the adapters.

    Attributes:
        rank: of the two matrices of each adapter.
        alpha: the adapters' output is multiplied with alpha / rank.
        dropout: the share of an adapter's input that is left out in training.
        targets: the names of the modules that get adapters, wherever they are; empty: the projections of queries and
            values, but not in parts that look at pictures or hear.
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
            :class:`LocalLLM`. Its weights are frozen, and the adapters put into it. The folder of trained adapters
            (``RUN/final``) stands for the model they were trained on, and is the ``adapter`` then.
        lora: settings of the adapters.
        temperature: the log-probabilities of options are divided by it, and normalised again.
        adapter: a folder with trained adapters in the format of peft, to go on from; then ``lora`` does not count.
        seed: of the adapters' first weights.
        gradient_checkpointing: compute activations again in the backward pass: slower, in less memory.
        autocast: the numbers that products are computed in (``"bfloat16"``), those of the weights where left out.

    Attributes:
        llm: the model as an answerer; its answers are the policy's.
        model: the model with adapters, a ``peft.PeftModel``.
        room: for how many questions a backward pass has had room; larger than any number before memory ran out.

    Raises:
        ModelError: the LLM is no local model, has no such modules, or the adapters do not fit it.
        MissingDependency: peft is not installed.
        ResourceNotFound: there is no such folder.
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
            llm, own = base_and_adapter(llm)
            if own and "scoring=" not in llm and (scoring := scoring_of(own)):
                llm += f"{'&' if '?' in llm else '?'}scoring={scoring}"
            adapter = adapter or own
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
        """The weights that are trained, in a fixed order."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def trainable(self) -> int:
        """How many weights are trained."""
        return sum(parameter.numel() for parameter in self.parameters)

    @property
    def size(self) -> int:
        """How many weights there are."""
        return sum(parameter.numel() for parameter in self.model.parameters())

    def log_probabilities(self, questions: Sequence[Question]) -> torch.Tensor:
        """As :meth:`Scorer.log_probabilities`, at the policy's temperature; differentiable where gradients are on.

        Where memory runs out without gradients, fewer tokens are read in a pass from then on.
        """
        import torch

        if torch.is_grad_enabled():
            values = self._score_questions(questions)
        else:
            scorer = self.scorer
            values = fitted(
                lambda: self._score_questions(questions), lambda: scorer.drop_graphs() or fewer_tokens(scorer)
            )
        if self.temperature == 1.0:
            return values
        return torch.log_softmax(values / self.temperature, dim=-1)

    def _score_questions(self, questions: Sequence[Question]) -> torch.Tensor:
        import torch

        dtype = None if self.autocast is None else getattr(torch, self.autocast)
        with torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None):
            return self.scorer.log_probabilities(questions).float()

    def reference(self, questions: Sequence[Question]) -> torch.Tensor:
        """The same of the model without its adapters; constants.

        Computed anew each time, though it never changes: what a model computes depends in its last bits on what is
        computed with it, and a run that is resumed has to come to the same bits.
        """
        import torch

        with torch.no_grad(), self.without_adapters():
            return self.log_probabilities(questions)

    @contextmanager
    def without_adapters(self) -> Iterator[None]:
        """The model as it was before training."""
        with self.scorer.aside(), self.model.disable_adapter():
            yield

    def keeping_graphs(self, most: int) -> AbstractContextManager[None]:
        """As :meth:`Scorer.keeping_graphs`; the gradient is whole after ``scorer.settle()``.

        Nothing is kept where training computes something else than answering: with dropout, and activations twice.
        """
        dropout = any(config.lora_dropout for config in self.model.peft_config.values())
        return self.scorer.keeping_graphs(0 if dropout or self.gradient_checkpointing else most)

    @contextmanager
    def training(self) -> Iterator[None]:
        """Gradients are on, and what is only for training (dropout of adapters, checkpoints) is in force."""
        import torch

        # The flag is set module by module: all at once would bring the dropouts of the base model back, and the policy
        # would be another one at each look.
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
        """The weights have changed: what was computed with the old ones is forgotten."""
        self.model.eval()
        self.scorer.forget()

    def save(self, folder: str | Path) -> None:
        """Save the adapters in the format of peft: ``peft.PeftModel.from_pretrained(base, folder)`` loads them.

        Beside them stands how options were scored, where that is not by their numbers.
        """
        self.model.save_pretrained(str(folder), save_embedding_layers=False)
        scoring = getattr(self.scorer, "scoring", {"number": 1.0})
        if scoring != {"number": 1.0}:
            (Path(folder) / SCORED).write_text(named(scoring) + "\n", encoding="utf-8")

    def load(self, folder: str | Path) -> None:
        """Put saved adapters in the place of these.

        Raises:
            ResourceNotFound: there are none in the folder.
            ModelError: they do not fit the model.
        """
        from peft import get_peft_model_state_dict, set_peft_model_state_dict

        state = _state_in(Path(folder))
        mine = get_peft_model_state_dict(self.model, save_embedding_layers=False)
        own = {name: tensor.shape for name, tensor in mine.items()}
        told = {name: tensor.shape for name, tensor in state.items()}
        if own != told:
            odd = sorted(set(own) ^ set(told)) or [name for name in own if own[name] != told[name]]
            raise ModelError(f"the adapters in {folder} do not fit this model: {odd[0]} and {len(odd) - 1} more differ")
        set_peft_model_state_dict(self.model, state)
        self.changed()


def local_model(llm: str | LLM) -> LocalLLM:
    """The local model that a provider string, or the folder of a model, stands for.

    Raises:
        ModelError: it is no model that runs here.
    """
    if isinstance(llm, str) and Path(llm).is_dir():
        llm = f"transformers:{llm}"
    found = resolve(llm)
    if not isinstance(found, LocalLLM):
        raise ModelError(
            f"{llm if isinstance(llm, str) else type(llm).__name__} cannot be trained: training takes a model that "
            "runs here (transformers:MODEL, encoder:MODEL, minilm, or the folder of a model)"
        )
    return found


def base_and_adapter(model: str) -> tuple[str, str | None]:
    """A model as a person names it, and the folder of adapters where it names one: then the model is their base.

    Raises:
        ModelError: the model of the adapters is not there, or nothing says which it is.
    """
    provider, colon, rest = model.partition(":")
    if not colon or provider not in ("transformers", "encoder"):
        provider, rest = "transformers", model
    folder, question, settings = rest.partition("?")
    base = base_of(folder)
    return (model, None) if base is None else (f"{provider}:{base}{question}{settings}", folder)


def _enable_checkpointing(model: PreTrainedModel) -> None:
    """Have a model compute its activations again in the backward pass."""
    if hasattr(model, "activation_checkpointing_enable"):
        model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    else:  # its name before transformers 5.20
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.enable_input_require_grads()


def default_targets(model: torch.nn.Module) -> tuple[str, ...]:
    """The names of the modules that project queries and values.

    Raises:
        ModelError: none of the names that are known.
    """
    names = {name.rpartition(".")[2] for name, _ in model.named_modules() if not _TOWERS.search(name)}
    for targets in TARGETS:
        if names.issuperset(targets):
            return targets
    raise ModelError(f"{type(model).__name__} has no query and value projections by a known name; give lora targets")


def _with_adapters(model: PreTrainedModel, lora: LoRA, seed: int, folder: Path | None) -> PeftModel:
    """A model with new adapters, or with those in a folder."""
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
    """The weights of the adapters in a folder."""
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        raise ResourceNotFound("adapter file", str(file), [])
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(str(file)))
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{file} cannot be read: {error}") from error
