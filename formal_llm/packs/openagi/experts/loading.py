"""Checkpoints for experts: where they are, how they are read, and errors when that fails.

A checkpoint is a folder as ``save_pretrained`` writes it, or a repository on the Hugging Face hub. Its weights are read
from safetensors, which hold numbers and no code. Every error names the tool, the checkpoint and a remedy.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from formal_llm.errors import CheckpointError, MissingDependency

if TYPE_CHECKING:
    from diffusers import DiffusionPipeline
    from transformers import BaseImageProcessor, PreTrainedModel, PreTrainedTokenizerBase

#: The number types of a model.
DTYPES = ("float32", "float16", "bfloat16")
_HOW = "pip install 'formal-llm[experts]'"
_INSTEAD = "name another checkpoint (experts(checkpoints={...}) or a TOML file), or leave the tool out"
#: The libraries that the extra ``experts`` installs.
_OURS = ("torch", "transformers", "diffusers", "numpy", "PIL", "safetensors", "huggingface_hub")
#: Weights that some heads do not use, and that checkpoints often lack.
_UNUSED = ("pooler", "position_ids")


@dataclass(frozen=True)
class ModelSource:
    """A checkpoint, and how to read it.

    Attributes:
        tool: the tool that uses it; several, separated by commas, if they share it.
        checkpoint: a repository on the hub, or a folder.
        revision: the branch, tag or commit on the hub; None for the main branch.
        weights: ``"safetensors"``, or ``"any"`` to read files of PyTorch too, with ``torch.load(weights_only=True)``.
        dtype: one of :data:`DTYPES`.
        offline: whether to read only from this machine.
        may_lack: parts of the names of weights that the checkpoint may lack.
    """

    tool: str
    checkpoint: str
    revision: str | None = None
    weights: Literal["safetensors", "any"] = "safetensors"
    dtype: str = "float32"
    offline: bool = False
    may_lack: tuple[str, ...] = ()

    @property
    def folder(self) -> Path | None:
        """The folder, if the checkpoint is one; None for a repository on the hub.

        Raises:
            CheckpointError: it is written as a folder that does not exist.
        """
        path = Path(self.checkpoint).expanduser()
        if path.is_dir():
            return path
        # A name on the hub is owner/name or, for the oldest repositories, a name alone.
        if self.checkpoint.startswith((".", "~", "/")) or "\\" in self.checkpoint or self.checkpoint.count("/") > 1:
            raise self._make_error("is no folder")
        return None

    @property
    def key(self) -> str:
        """The key that distinguishes loaded models."""
        return f"{self.checkpoint}@{self.revision or 'main'} {self.dtype} {self.weights}"

    def compute_fingerprint(self) -> str:
        """Return a short hash that changes with the checkpoint, as far as can be detected without reading all of it.

        For a folder it covers the names, sizes and times of its files; for a repository its name and revision.
        """
        digest = hashlib.sha256(self.key.encode())
        if (folder := self.folder) is not None:
            for file in sorted(path for path in folder.rglob("*") if path.is_file()):
                stat = file.stat()
                digest.update(f"\0{file.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}".encode())
        return digest.hexdigest()[:12]

    def is_local(self) -> bool:
        """Return whether the checkpoint is on this machine: a folder, or a repository with weights in the hub's cache.

        Raises:
            CheckpointError: as for :attr:`folder`.
            MissingDependency: huggingface_hub is not installed.
        """
        if self.folder is not None:
            return True
        cached = self._find_cached()
        endings = {".safetensors"} if self.weights == "safetensors" else {".safetensors", ".bin"}
        return cached is not None and any(file.suffix in endings for file in cached.rglob("*"))

    def _find_cached(self) -> Path | None:
        """Find the folder of the repository in the hub's cache, if it is there."""
        with self.translate_errors("a repository"):
            from huggingface_hub import try_to_load_from_cache

            for name in ("config.json", "model_index.json", "model.safetensors"):
                found = try_to_load_from_cache(self.checkpoint, name, revision=self.revision)
                if isinstance(found, str):
                    return Path(found).parent
        return None

    # -- reading ------------------------------------------------------------------------------------------------

    def load_model(self, auto: str) -> PreTrainedModel:
        """Load a model of transformers, by the name of an ``Auto...`` or model class, on the CPU, ready for use.

        Raises:
            CheckpointError: it is not available, has another architecture, or lacks weights.
            MissingDependency: torch or transformers are not installed.
        """
        with self.translate_errors(auto):
            import torch
            import transformers

            model, info = getattr(transformers, auto).from_pretrained(
                self._place,
                dtype=getattr(torch, self.dtype),
                output_loading_info=True,
                **self._only,
                **self._where,
            )
        # Missing weights would be initialized at random, and the tool would return nonsense without a warning.
        known = (*_UNUSED, *self.may_lack)
        missing = sorted(name for name in info["missing_keys"] if not any(part in name for part in known))
        if missing:
            some = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
            raise self._make_error(f"has no weights for {some}: it was made for something else")
        return model.eval()

    def load_tokenizer(self) -> PreTrainedTokenizerBase:
        """Load the tokenizer.

        Raises:
            CheckpointError, MissingDependency: as :meth:`load_model`.
        """
        with self.translate_errors("AutoTokenizer"):
            from transformers import AutoTokenizer

            return AutoTokenizer.from_pretrained(self._place, **self._where)

    def image_processor(self) -> BaseImageProcessor:
        """Load the image processor, which needs only Pillow.

        Raises:
            CheckpointError, MissingDependency: as :meth:`load_model`.
        """
        with self.translate_errors("AutoImageProcessor"):
            from transformers import AutoImageProcessor

            return AutoImageProcessor.from_pretrained(self._place, **self._where, backend="pil")

    def load_pipeline(self, name: str) -> DiffusionPipeline:
        """Load a pipeline of diffusers, by the name of its class, on the CPU, without progress bars.

        Raises:
            CheckpointError, MissingDependency: as :meth:`load_model`.
        """
        with self.translate_errors(name):
            import diffusers
            import torch

            found = getattr(diffusers, name).from_pretrained(self._place, **self._only, **self._where)
            if self.dtype != "float32":
                found.to(getattr(torch, self.dtype))  # the name of from_pretrained's argument depends on the version
        found.set_progress_bar_config(disable=True)
        return found

    @property
    def _place(self) -> str:
        """The location to pass to ``from_pretrained``: the folder, or the name on the hub.

        Offline it is the folder in the hub's cache, since the libraries contact the hub about a name even offline.
        """
        folder = self.folder or (self._find_cached() if self.offline else None)
        if folder is None and self.offline:
            raise FileNotFoundError("it is not in the cache, and the hub is not to be asked")
        return str(folder or self.checkpoint)

    @property
    def _only(self) -> dict[str, bool | None]:
        """The arguments of ``from_pretrained`` about the format of the weights."""
        return {"use_safetensors": True if self.weights == "safetensors" else None}

    @property
    def _where(self) -> dict[str, str | bool]:
        if self.folder is not None or self.offline:
            return {"local_files_only": True}
        return {} if self.revision is None else {"revision": self.revision}

    @contextmanager
    def translate_errors(self, what: str) -> Iterator[None]:
        """Translate the libraries' exceptions into helpful errors."""
        try:
            yield
        except (CheckpointError, MemoryError):
            raise
        except ImportError as error:
            if error.name in _OURS:
                raise MissingDependency(f"the tool {self.tool} needs {error.name}: {_HOW}") from error
            problem = f"needs a library that is not installed ({_format_error(error)})"
            raise self._make_error(problem, f"install it, {_INSTEAD}") from error
        except OSError as error:  # not found, no network, no permission, no safetensors
            if "safetensors" in str(error):
                remedy = 'name a revision that has, or say weights = "any" in the TOML file if you trust it'
                raise self._make_error(f"has no weights as safetensors ({_format_error(error)})", remedy) from error
            if self.folder is not None:
                raise self._make_error(f"is not complete ({_format_error(error)})") from error
            remedy = f"download it once with a network ({get_download_command(self)}), {_INSTEAD}"
            raise self._make_error(
                f"cannot be had from the hub or its cache ({_format_error(error)})", remedy
            ) from error
        except Exception as error:  # another architecture, a damaged file: each library has its own exceptions
            raise self._make_error(f"cannot be read as {what} ({_format_error(error)})") from error

    def _make_error(self, problem: str, remedy: str = _INSTEAD) -> CheckpointError:
        return CheckpointError(self.tool, self.checkpoint, problem, remedy)


def get_download_command(source: ModelSource) -> str:
    """Return the command that downloads a checkpoint from the hub."""
    return f"hf download {source.checkpoint}" + (f" --revision {source.revision}" if source.revision else "")


def hub_answers(seconds: float = 5.0) -> bool:
    """Return whether the hub responds in some seconds, with any status; its own client tries a minute for each file.

    Raises:
        MissingDependency: huggingface_hub is not installed.
    """
    try:
        from huggingface_hub import constants, get_session
    except ImportError as error:
        raise MissingDependency(f"experts need huggingface_hub: {_HOW}") from error
    try:
        get_session().head(constants.ENDPOINT, timeout=seconds)
    except _get_network_errors():
        return False
    return True


def _get_network_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that the hub's client raises without a response, or when it must not connect."""
    kinds: list[type[Exception]] = [OSError]
    for name in ("httpx", "httpx2"):  # the client uses one or the other, depending on its version
        with suppress(ImportError):
            kinds.append(import_module(name).HTTPError)
    return tuple(kinds)


def offline_by_environment() -> bool:
    """Return whether ``HF_HUB_OFFLINE`` forbids requests to the hub."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE")


def _format_error(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}{'...' if len(text) > 300 else ''}"
