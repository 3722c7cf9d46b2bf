"""The classical toolkit of OpenAGI: the tools that work without downloaded weights.

A tool is a function from pictures and texts to a picture or a text, as its type hints specify. Tasks that cannot be
done honestly without weights are missing: image classification, captioning, visual question answering, text to image
and translation. A planner avoids them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from formal_llm.packs.openagi.classical.colouring import colorization
from formal_llm.packs.openagi.classical.faces import detection
from formal_llm.packs.openagi.classical.language import question_answering, sentiment, summarization
from formal_llm.packs.openagi.classical.ngrams import fill_mask, text_generation
from formal_llm.packs.openagi.classical.restoration import deblurring, denoising, super_resolution

#: The tools by the terminals of grammars/openagi.cfg. A hash of their source text is their version in cache keys.
CLASSICAL: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        function.__name__: function
        for function in (
            colorization, super_resolution, denoising, deblurring, detection,
            summarization, text_generation, fill_mask, sentiment, question_answering,
        )
    }
)  # fmt: skip
#: The description of each tool: the first line of its docstring.
DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {name: (function.__doc__ or "").strip().split("\n", 1)[0].replace("``", "") for name, function in CLASSICAL.items()}
)
