"""Loading models that run here: from a folder, or by their name on the hub."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

ModelKind = Literal["text", "encoder", "cross-encoder"]
#: Which part of a model lies where, as ``from_pretrained`` takes it: ``"auto"``, or a device for each module.
DeviceMap: TypeAlias = "str | Mapping[str, int | str | torch.device]"
_HOW = "pip install torch 'formal-llm[local]'"
#: Held while a model is loaded: transformers changes torch for everybody in the meantime, and of two models that are
#: loaded at once one may keep random weights.
LOADING = threading.RLock()


@dataclass(frozen=True)
class Placement:
    """Where a model runs, and in which numbers.

    Attributes:
        device: as torch names it; ``"auto"``: a GPU where there is one.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"``; ``"auto"``: bfloat16 on a GPU, float32 on a CPU.
        device_map: as of ``from_pretrained``, for models over several devices (needs accelerate); then ``device`` does
            not count.
        local_files_only: whether only what is on this machine is looked at.
    """

    device: str = "auto"
    dtype: str = "auto"
    device_map: DeviceMap | None = None
    local_files_only: bool = False


def load(
    name: str, kind: ModelKind = "text", placement: Placement | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model and the tokenizer of that name, ready to be asked.

    Args:
        name: a folder, or a name on the hub.
        kind: ``"text"`` for a model that writes (a decoder, or an encoder-decoder), ``"encoder"``, ``"cross-encoder"``.
        placement: where it runs.

    Raises:
        MissingDependency: torch or transformers are not installed.
        ResourceNotFound: there is no such folder.
        ModelError: it cannot be loaded.
    """
    placement = placement or Placement()
    try:
        import torch  # noqa: F401  # looked for here, with what needs it
        import transformers
    except ImportError as error:
        raise MissingDependency(f"local models need torch and transformers: {_HOW}") from error
    if name.startswith("~"):
        name = str(Path(name).expanduser())
    if _is_path(name) and not Path(name).is_dir():
        raise ResourceNotFound("model folder", name, [])
    device, dtype = _device_and_dtype(placement)
    # Code that comes with a model is not run, and nobody is asked whether to.
    files = {"local_files_only": placement.local_files_only, "trust_remote_code": False}
    # Weights in safetensors only: a pickle could run code.
    settings: dict[str, Any] = {"dtype": dtype, "use_safetensors": True, **files}
    if placement.device_map is not None:
        settings["device_map"] = placement.device_map
    try:
        config = transformers.AutoConfig.from_pretrained(name, **files)
        two_parts = getattr(config, "is_encoder_decoder", False)
        classes = {
            "encoder": transformers.AutoModel,
            "cross-encoder": transformers.AutoModelForSequenceClassification,
            "text": transformers.AutoModelForSeq2SeqLM if two_parts else transformers.AutoModelForCausalLM,
        }
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **files)
        model, told = classes[kind].from_pretrained(name, config=config, output_loading_info=True, **settings)
    except Exception as error:  # the readers of configs, weights and tokenizers each have exceptions of their own
        raise ModelError(f"the model {name} cannot be loaded: {_first_line(error)}{_hint(name)}") from error
    _check_weights(name, kind, config, told["missing_keys"])
    if placement.device_map is None:
        try:
            model = model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ModelError(f"the model {name} cannot be moved to {device}: {_first_line(error)}") from error
    return model.eval(), tokenizer


def _device_and_dtype(placement: Placement) -> tuple[str, torch.dtype]:
    """The device and the numbers that a placement stands for on this machine."""
    import torch

    device = placement.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.device(device)
    except RuntimeError as error:
        raise ModelError(f"there is no device {device!r}; give cpu, cuda or cuda:0") from error
    on_gpu = torch.cuda.is_available() and (device.startswith("cuda") or placement.device_map is not None)
    name = placement.dtype
    if name == "auto":
        name = "bfloat16" if on_gpu else "float32"
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"dtype is float32, bfloat16 or float16, not {name!r}")
    return device, dtype


def check_vocabulary(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raise ``ModelError`` for a tokenizer that has tokens which the model does not know: it is another model's."""
    known, told = model.get_input_embeddings().weight.shape[0], len(tokenizer)
    if told > known:
        problem = f"the tokenizer has {told:,} tokens and the model knows {known:,}"
        raise ModelError(f"{problem}: it is the tokenizer of another model")


def _check_weights(name: str, kind: ModelKind, config: PreTrainedConfig, missing: Iterable[str]) -> None:
    """Raise for weights that the files do not have: they would be random numbers, and so would the answers."""
    if kind == "encoder" and getattr(config, "is_encoder_decoder", False):
        raise ModelError(f"the model {name} is an encoder-decoder ({config.model_type}); use it as transformers:{name}")
    # What the vectors of encoders are made of is below the pooler, which many encoders come without.
    lacking = sorted(key for key in missing if not (kind == "encoder" and key.startswith("pooler.")))
    if lacking:
        wanted = {"text": "a model that writes", "encoder": "an encoder", "cross-encoder": "a cross-encoder"}[kind]
        raise ModelError(
            f"the model {name} ({config.model_type}) is not {wanted}, or its files are not complete: it has no weights "
            f"for {', '.join(lacking[:3])}{' ...' if len(lacking) > 3 else ''}"
        )


def _is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or Path(name).exists()


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0].rstrip(".")


def _hint(name: str) -> str:
    if Path(name).is_dir():
        return (
            "; a folder has to hold config.json, model.safetensors (other kinds of weights can run code, and are not "
            "loaded) and the tokenizer's files"
        )
    return "; give the folder of a model that is on this machine, or a name on the hub where it can be reached"
