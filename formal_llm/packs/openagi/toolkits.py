"""The toolkits of OpenAGI by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from formal_llm.packs.openagi.classical import CLASSICAL, DESCRIPTIONS
from formal_llm.tools import Toolkit, tool


def classical() -> Toolkit:
    """The tools that work without downloaded weights (:mod:`formal_llm.packs.openagi.classical`)."""
    made = [tool(name, description=DESCRIPTIONS[name])(function) for name, function in CLASSICAL.items()]
    return Toolkit(made)


def experts() -> Toolkit:
    """The models of the hub (:func:`formal_llm.packs.openagi.experts.experts`), as the settings say."""
    from formal_llm.packs.openagi.experts import experts as made

    return made()


#: What makes each toolkit.
TOOLKITS: Mapping[str, Callable[[], Toolkit]] = MappingProxyType({"classical": classical, "experts": experts})
