"""Rules from a file, whatever notation it is written in.

====================  =================================================
``.cfg``              a grammar (:class:`CFG`)
``.pda``              a pushdown automaton (:class:`PDA`)
``.mmd, .mermaid``    a flowchart (:class:`Flowchart`), as its automaton
``.bpmn``             a process in BPMN 2.0, as a flowchart
``.scxml, .xstate``   a state machine in SCXML, or of XState in JSON, as its automaton
``.agent``            a behaviour (:class:`Behaviour`), as its automaton
====================  =================================================

Other packages may offer readers of more endings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from formal_llm.authored.files import read_text
from formal_llm.authored.plugins import Plugins
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.rules import Rules
from formal_llm.automata.models.written import notation_of
from formal_llm.errors import NotationError

#: What a file holds, by its ending.
_KINDS: dict[str, type[Rules]] = {
    ".cfg": CFG, ".pda": PDA, ".mmd": Flowchart, ".mermaid": Flowchart, ".agent": Behaviour,
    ".bpmn": Flowchart, ".scxml": PDA, ".xstate": PDA,
}  # fmt: skip
#: The endings of files with rules.
ENDINGS = tuple(_KINDS)


class RulesReader(Protocol):
    """Reads rules. Packages offer theirs in the group ``formal_llm.notations``, by the ending without its dot."""

    def __call__(self, text: str, file: str | None, /) -> Rules:
        """The rules in a text; ``file`` names where it is from, for errors and for paths in it.

        Raises:
            NotationError: it cannot be read.
        """
        ...


#: The notations of other packages.
PLUGINS: Plugins[Rules] = Plugins(
    "formal_llm.notations", "notation", ("text", "file"), "rules: a CFG, PDA, Flowchart or Behaviour",
    lambda _, made: isinstance(made, Rules), lambda: [ending[1:] for ending in ENDINGS],
)  # fmt: skip


def endings() -> tuple[str, ...]:
    """The endings of files with rules, those of other packages as well."""
    return (*ENDINGS, *(f".{name}" for name in PLUGINS.names()))


def read_rules_text(text: str, path: str | Path) -> Rules:
    """The rules in the text of a file that may not be saved yet; paths in it are relative to it.

    Raises:
        NotationError: the text cannot be read, or the ending of the file names no notation.
        PluginError: another package reads this ending, and cannot be used.
    """
    ending = Path(path).suffix
    if ending in _KINDS:
        notation = notation_of(_KINDS[ending])
        return notation.others.get(ending[1:], notation.read)(text, str(path))
    rules = PLUGINS.make(ending[1:], text, str(path))
    if rules is None:
        raise NotationError(f"the ending names no notation of rules; there are: {', '.join(endings())}", file=str(path))
    return rules


def read_rules(path: str | Path) -> Rules:
    """The rules in a file, as what they are.

    :func:`~formal_llm.automata.models.rules.automaton_of` makes an automaton of them.

    Raises:
        NotationError: the file cannot be read, or its ending names no notation.
        PluginError: another package reads this ending, and cannot be used.
    """
    path = Path(path)
    ending = path.suffix
    if ending in _KINDS or not ending:
        return _KINDS.get(ending, CFG).from_file(path)
    if PLUGINS.find(ending[1:]) is not None:
        return read_rules_text(read_text(path), path)
    if not path.is_file():
        raise NotationError(
            f"the ending {ending} names no notation of rules; there are: {', '.join(endings())}", file=str(path)
        )
    return CFG.from_file(path)
