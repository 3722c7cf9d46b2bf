"""Loading models that run here: from a folder, or by their name on the hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound

Kind = Literal["text", "encoder", "cross-encoder"]
_HOW = "pip install torch 'formal-llm[local]'"


@dataclass(frozen=True)
class Placement:
    """Where a model runs, and in which numbers.

    Attributes:
        device: as torch names it; ``"auto"``: a GPU where there is one.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"``; ``"auto"``: bfloat16 on a GPU, float32 on a CPU.
        device_map: as of ``from_pretrained``, for models over several devices; then ``device`` does not count.
        local_files_only: whether only what is on this machine is looked at.
    """

    device: str = "auto"
    dtype: str = "auto"
    device_map: Any = None
    local_files_only: bool = False


def load(name: str, kind: Kind = "text", placement: Placement | None = None) -> tuple[Any, Any]:
    """The model and the tokenizer of that name, ready to be asked.

    Args:
        name: a folder, or a name on the hub.
        kind: ``"text"`` for a model that writes (a decoder, or an encoder-decoder), ``"encoder"``,
            ``"cross-encoder"``.
        placement: where it runs.

    Raises:
        MissingDependency: torch or transformers are not installed.
        ResourceNotFound: there is no such folder.
        ModelError: it cannot be loaded.
    """
    placement = placement or Placement()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingDependency(f"local models need torch and transformers: {_HOW}") from error
    if _is_path(name) and not Path(name).is_dir():
        raise ResourceNotFound("model folder", name, [])
    device = placement.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    on_gpu = device.startswith("cuda") or placement.device_map is not None
    dtype_name = placement.dtype
    if dtype_name == "auto":
        dtype_name = "bfloat16" if on_gpu else "float32"
    dtype = getattr(torch, dtype_name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"dtype is float32, bfloat16 or float16, not {dtype_name!r}")
    files = {"local_files_only": placement.local_files_only}
    # Weights in safetensors only: a pickle could run code.
    settings: dict[str, Any] = {"dtype": dtype, "use_safetensors": True, **files}
    if placement.device_map is not None:
        settings["device_map"] = placement.device_map
    try:
        config = transformers.AutoConfig.from_pretrained(name, **files)
        classes = {
            "encoder": transformers.AutoModel,
            "cross-encoder": transformers.AutoModelForSequenceClassification,
            "text": transformers.AutoModelForSeq2SeqLM
            if getattr(config, "is_encoder_decoder", False)
            else transformers.AutoModelForCausalLM,
        }
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, **files)
        model = classes[kind].from_pretrained(name, config=config, **settings)
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"the model {name} cannot be loaded: {_first_line(error)}{_hint(name)}") from error
    if placement.device_map is None:
        try:
            model = model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ModelError(f"the model {name} cannot be moved to {device}: {_first_line(error)}") from error
    return model.eval(), tokenizer


def _is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or Path(name).exists()


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _hint(name: str) -> str:
    if Path(name).is_dir():
        return "; a folder has to hold config.json, model.safetensors and the tokenizer's files"
    return "; give the folder of a model that is on this machine, or a name on the hub where it can be reached"
