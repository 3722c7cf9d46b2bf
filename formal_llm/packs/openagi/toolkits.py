"""The toolkits of OpenAGI by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from formal_llm.packs.openagi.classical.colouring import colorization
from formal_llm.packs.openagi.classical.faces import detection
from formal_llm.packs.openagi.classical.language import question_answering, sentiment, summarization
from formal_llm.packs.openagi.classical.ngrams import fill_mask, text_generation
from formal_llm.packs.openagi.classical.restoration import deblurring, denoising, super_resolution
from formal_llm.packs.openagi.experts.loading import hub_answers
from formal_llm.packs.openagi.experts.toolkit import experts
from formal_llm.tools import Toolkit, ToolkitMaker, tool

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


def classical() -> Toolkit:
    """Create the toolkit of the tools that work without downloaded weights.

    A tool is a function from pictures and texts to a picture or a text, as its type hints specify. What cannot be done
    honestly without weights is missing: image classification, captioning, visual question answering, text to image and
    translation. A planner avoids these tasks.
    """
    tools = [tool(name, description=DESCRIPTIONS[name], pure=True)(function) for name, function in CLASSICAL.items()]
    return Toolkit(tools)


def experts_at_hand() -> Toolkit:
    """Create the experts for interactive use, where the user sees which tools are left out.

    If checkpoints are not on this machine and the hub does not respond, their tools are left out, so that the user does
    not wait minutes for each failure.

    Raises:
        ToolkitError, ResourceNotFound, CheckpointError, MissingDependency: as for the experts.
    """
    tools = experts()
    everything = all(expert.source.is_local() for expert in tools.experts.values())
    return tools if everything or hub_answers() else experts(offline=True)


#: The functions that create each toolkit, in general and for interactive use.
TOOLKITS: Mapping[str, ToolkitMaker] = MappingProxyType({"classical": classical, "experts": experts})
AT_HAND: Mapping[str, ToolkitMaker] = MappingProxyType({**TOOLKITS, "experts": experts_at_hand})
