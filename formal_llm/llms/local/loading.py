"""Loading of local models: from a folder, or by their name on the hub; trained adapters with their base model."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from formal_llm.errors import MissingDependency, ModelError, ResourceNotFound
from formal_llm.llms.packaged import MINILM, SMOLLM2, find_minilm, find_smollm2

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase


ModelKind = Literal["text", "encoder"]
#: The devices of a model's parts, as for ``from_pretrained``: ``"auto"``, or a device for each module.
DeviceMap: TypeAlias = "str | Mapping[str, int | str | torch.device]"
#: The file beside trained adapters that records the scoring of options; without it they are scored by number.
SCORED = "scoring.txt"
_HOW = "pip install torch 'formal-llm[local]'"
#: Held while a model is loaded: transformers changes torch globally in the meantime, and if two models are loaded at
#: once, one may keep random weights.
LOADING = threading.RLock()


@dataclass(frozen=True)
class Placement:
    """The device and the number type of a model.

    Attributes:
        device: the device in torch's notation; ``"auto"``: a GPU if there is one.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"``; ``"auto"``: bfloat16 on a GPU, float32 on a CPU.
        device_map: as for ``from_pretrained``, for models on several devices (needs accelerate); replaces ``device``.
        local_files_only: whether to use only files on this machine.
    """

    device: str = "auto"
    dtype: str = "auto"
    device_map: DeviceMap | None = None
    local_files_only: bool = False


def load(
    name: str, kind: ModelKind = "text", placement: Placement | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a model and its tokenizer, ready for use.

    Args:
        name: a folder, a file ``FILE.gguf``, or a name on the hub. A folder may hold trained adapters (``final`` and
            ``best`` of a training run): then the model that they were trained on is loaded with them.
        kind: ``"text"`` for a model that writes (a decoder, or an encoder-decoder), or ``"encoder"``.
        placement: the device and the number type.

    Raises:
        MissingDependency: torch or transformers are not installed, or peft for adapters.
        ResourceNotFound: the folder does not exist.
        ModelError: the model cannot be loaded.
    """
    placement = placement or Placement()
    if (base := base_of(name)) is not None:
        model, tokenizer = load(base, kind, placement)
        return _apply_adapters(model, Path(name).expanduser()), tokenizer
    try:
        import torch  # noqa: F401  # checked here, together with transformers, which needs it
        import transformers
    except ImportError as error:
        raise MissingDependency(f"local models need torch and transformers: {_HOW}") from error
    if name.startswith("~"):
        name = str(Path(name).expanduser())
    one_file = name.endswith(".gguf") and Path(name).is_file()
    if _is_path(name) and not (one_file or Path(name).is_dir()):
        raise ResourceNotFound("model folder", name, [])
    device, dtype = _device_and_dtype(placement)
    # Code that comes with a model is not run, and there is no prompt to allow it.
    files: dict[str, Any] = {"local_files_only": placement.local_files_only, "trust_remote_code": False}
    if one_file:  # its weights become plain numbers, each time that it is loaded
        files |= {"gguf_file": Path(name).name, "local_files_only": True}
    place = str(Path(name).parent) if one_file else name
    # Only weights in safetensors, since a pickle could run code.
    settings: dict[str, Any] = {"dtype": dtype, "use_safetensors": True, **files}
    if placement.device_map is not None:
        settings["device_map"] = placement.device_map
    try:
        config = transformers.AutoConfig.from_pretrained(place, **files)
        two_parts = getattr(config, "is_encoder_decoder", False)
        classes = {
            "encoder": transformers.AutoModel,
            "text": transformers.AutoModelForSeq2SeqLM if two_parts else transformers.AutoModelForCausalLM,
        }
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **files)
        model, loading_info = classes[kind].from_pretrained(place, config=config, output_loading_info=True, **settings)
    except ImportError as error:
        raise MissingDependency(f"the model {name} cannot be loaded: {_first_line(error)}") from error
    except Exception as error:  # the readers of configs, weights and tokenizers have their own exceptions
        raise ModelError(f"the model {name} cannot be loaded: {_first_line(error)}{_describe_remedy(name)}") from error
    _check_weights(name, kind, config, loading_info["missing_keys"])
    if placement.device_map is None:
        try:
            model = model.to(device)
        except (RuntimeError, AssertionError) as error:
            raise ModelError(f"the model {name} cannot be moved to {device}: {_first_line(error)}") from error
    if one_file and hasattr(model.config, "quantization_config"):  # the weights are plain numbers now
        del model.config.quantization_config
        model.hf_quantizer, model.is_quantized = None, False
    model.name_or_path = name  # the name of the base model in adapters trained on it
    return model.eval(), tokenizer


def model_and_settings(text: str) -> tuple[str, dict[str, object]]:
    """Split a text such as ``models/qwen3?enable_thinking=false&dtype=bfloat16`` into the model and the settings.

    Raises:
        ValueError: the text after the question mark is no setting.
    """
    if "?" not in text or Path(text).expanduser().exists():
        return text, {}
    name, _, rest = text.partition("?")
    return name, settings_of(rest.split("&"))


def settings_of(lines: Iterable[str]) -> dict[str, object]:
    """Read settings from texts ``NAME=VALUE``. A value is read as JSON if possible (true, 3, "3"), else it is a text.

    Raises:
        ValueError: a text has no name or no equals sign, or a name occurs twice.
    """
    found: dict[str, object] = {}
    for line in lines:
        name, equals, value = (part.strip() for part in line.partition("="))
        if not equals or not name.isidentifier():
            raise ValueError(f"{line!r} is no setting; write NAME=VALUE, such as enable_thinking=false")
        if name in found:
            raise ValueError(f"the setting {name} is there twice")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def base_of(name: str) -> str | None:
    """Return the base model of the adapters in a folder; None if it holds no adapters, or a whole model."""
    folder = Path(name).expanduser()
    file = folder / "adapter_config.json"
    if not file.is_file() or (folder / "config.json").is_file():
        return None
    try:
        base = json.loads(file.read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError) as error:
        raise ModelError(f"the adapters in {name} cannot be read: {_first_line(error)}") from error
    if not base:
        raise ModelError(f"nothing says which model the adapters in {name} are for: base_model_name_or_path in {file}")
    if MINILM in Path(base).parts:  # its path is different in each environment
        return str(find_minilm())
    if SMOLLM2 in Path(base).parts:
        return str(find_smollm2())
    if _is_path(base) and not Path(base).expanduser().exists():
        raise ModelError(
            f"the adapters in {name} are for the model {base}, and there is no such folder or file here; put "
            f"its place as base_model_name_or_path into {file}"
        )
    return str(base)


def scoring_of(name: str) -> str:
    """Return the scoring with which the adapters in a folder were trained; "" if unknown, or without adapters."""
    file = Path(name).expanduser() / SCORED
    try:
        return file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} cannot be read: {_first_line(error)}") from error


@contextmanager
def quiet_peft() -> Iterator[None]:
    """Suppress the warning that peft reads an attribute which transformers will remove."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing.*", category=FutureWarning)
        yield


def _apply_adapters(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    try:
        from peft import PeftModel
    except ImportError as error:
        raise MissingDependency("trained adapters need peft: pip install torch 'formal-llm[rltf]'") from error
    file = folder / "adapter_model.safetensors"
    if not file.is_file():  # other kinds of weights can run code
        raise ResourceNotFound("adapter file", str(file), [])
    try:
        with quiet_peft():
            PeftModel.from_pretrained(model, str(folder))  # changes the model in place
    except Exception as error:  # as above
        name = type(model).__name__
        raise ModelError(f"the adapters in {folder} do not fit {name}: {_first_line(error)}") from error
    return model.eval()


def _device_and_dtype(placement: Placement) -> tuple[str, torch.dtype]:
    """Return the device and the number type of a placement on this machine."""
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
    """Raise ``ModelError`` if the tokenizer has tokens that the model does not know: it is another model's."""
    known, tokenizer_size = model.get_input_embeddings().weight.shape[0], len(tokenizer)
    if tokenizer_size > known:
        problem = f"the tokenizer has {tokenizer_size:,} tokens and the model knows {known:,}"
        raise ModelError(f"{problem}: it is the tokenizer of another model")


def _check_weights(name: str, kind: ModelKind, config: PreTrainedConfig, missing: Iterable[str]) -> None:
    """Check that the files have all weights; missing ones would be random, and so would the answers."""
    if kind == "encoder" and getattr(config, "is_encoder_decoder", False):
        raise ModelError(f"the model {name} is an encoder-decoder ({config.model_type}); use it as transformers:{name}")
    # The vectors of encoders are computed without the pooler, which many encoders do not have.
    lacking = sorted(key for key in missing if not (kind == "encoder" and key.startswith("pooler.")))
    if lacking:
        wanted = {"text": "a model that writes", "encoder": "an encoder"}[kind]
        raise ModelError(
            f"the model {name} ({config.model_type}) is not {wanted}, or its files are not complete: it has no weights "
            f"for {', '.join(lacking[:3])}{' ...' if len(lacking) > 3 else ''}"
        )


def _is_path(name: str) -> bool:
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or Path(name).exists()


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0].rstrip(".")


def _describe_remedy(name: str) -> str:
    if Path(name).is_dir():
        return (
            "; a folder has to hold config.json, model.safetensors (other kinds of weights can run code, and are not "
            "loaded) and the tokenizer's files"
        )
    return "; give the folder of a model that is on this machine, or a name on the hub where it can be reached"
