"""Trained adapters on the model that a provider string names."""

from __future__ import annotations

import hashlib
from pathlib import Path

from formal_llm.errors import ModelError, ResourceNotFound
from formal_llm.llms.llm import LLM, resolve
from formal_llm.llms.local.loading import base_of
from formal_llm.llms.packaged import find_minilm, find_smollm2


def with_adapter(llm: str, folder: Path) -> LLM:
    """Load the model of a provider string with adapters that were trained on it.

    Args:
        llm: ``minilm``, ``encoder:MODEL``, ``smollm2``, ``transformers:MODEL``, the last two with settings.
        folder: the folder of the adapters, such as ``RUN/best``.

    Raises:
        ResourceNotFound: there are no adapters in the folder.
        ModelError: the LLM is no local model, or the adapters were trained on another one.
    """
    base = base_of(str(folder))
    if base is None:
        raise ResourceNotFound("folder of adapters", str(folder), [])
    provider, _, rest = llm.partition(":")
    model, question, settings = rest.partition("?")
    if provider == "smollm2":
        model, question, settings = "", "?" if rest else "", rest
    if provider not in ("minilm", "encoder", "smollm2", "transformers"):
        raise ModelError(
            f"{llm} takes no adapters: they are for a model that runs here (minilm, smollm2, transformers:)"
        )
    own = {"minilm": find_minilm, "smollm2": find_smollm2}.get(provider, lambda: Path(model))()
    if str(own) != base and not (own.exists() and Path(base).exists() and own.samefile(base)):
        raise ModelError(f"the adapters in {folder} were trained on {base}, not on {llm}")
    kind = "encoder" if provider in ("minilm", "encoder") else "transformers"
    return resolve(f"{kind}:{folder}{question}{settings}")


def fingerprint(folder: Path) -> str:
    """Return six digits that identify the adapters in a folder.

    Raises:
        ResourceNotFound: there are no adapters.
    """
    file = folder / "adapter_model.safetensors"
    if not file.is_file():
        raise ResourceNotFound("adapter file", str(file), [])
    return hashlib.sha256(file.read_bytes()).hexdigest()[:6]
