"""Models in one file of llama.cpp's format (GGUF): their weights are written out once, and kept for the next time.

transformers reads such files, but works out all numbers anew each time: 18 seconds of processor time for 135 million
of them. What it has read is kept in the user's cache as a folder like any other.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from formal_llm.authored.caches import user_cache
from formal_llm.errors import MissingDependency, ModelError

if TYPE_CHECKING:
    import torch

_LOG = logging.getLogger(__name__)
#: The beginning of every such file.
_MAGIC = b"GGUF"
#: How much of a file's beginning distinguishes it from others of the same size and time: the names and sizes of its
#: weights.
_HEAD = 1 << 20


def written_out(file: Path, dtype: torch.dtype) -> Path:
    """The folder with the weights of a GGUF file as numbers of this kind; made where it is not there yet.

    That it takes a while is logged, which shows on standard error. Several processes may make it at once.

    Raises:
        MissingDependency: the package ``gguf`` is not installed.
        ModelError: the file is no GGUF file, is damaged, or is of an architecture that transformers does not read from
            such files; or the cache cannot be written.
    """
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
        status = file.stat()
    except OSError as error:
        raise ModelError(f"the model {file} cannot be read: {error.strerror}") from error
    if not head.startswith(_MAGIC):
        raise ModelError(f"the model {file} is no GGUF file: it does not begin with {_MAGIC.decode()}")
    kind = str(dtype).removeprefix("torch.")
    told = hashlib.sha256(f"{status.st_size} {status.st_mtime_ns} {kind} ".encode() + head).hexdigest()[:16]
    folder = user_cache() / "gguf" / f"{file.stem}-{kind}-{told}"
    if not (folder / "config.json").is_file():
        part = folder.with_name(f"{uuid4().hex}.part")
        _LOG.warning("%s is written out once, which takes a while; it is kept in %s", file.name, folder.parent)
        try:
            _write_out(file, dtype, part)
            if not folder.exists():
                part.replace(folder)
        except OSError as error:
            if not (folder / "config.json").is_file():  # else another process was quicker
                problem = f"{file.name} cannot be kept in {folder.parent}: {error.strerror or error}"
                raise ModelError(f"{problem}; name another folder for caches: XDG_CACHE_HOME") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def _write_out(file: Path, dtype: torch.dtype, folder: Path) -> None:
    import transformers

    where = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name, "local_files_only": True}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
        model = transformers.AutoModelForCausalLM.from_pretrained(dtype=dtype, **where)
    except ImportError as error:
        raise MissingDependency("GGUF files need the package gguf: pip install gguf") from error
    except Exception as error:  # the readers of headers, weights and tokenizers each have exceptions of their own
        raise ModelError(f"the model {file} cannot be read: {str(error).strip() or type(error).__name__}") from error
    # The weights are plain numbers now; what is left of the quantization would have them read as quantized ones.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.hf_quantizer, model.is_quantized = None, False
    folder.mkdir(parents=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
