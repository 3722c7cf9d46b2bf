"""Rules from files in any notation.

====================  =================================================
``.cfg``              a grammar (:class:`CFG`)
``.pda``              a pushdown automaton (:class:`PDA`)
``.mmd, .mermaid``    a flowchart (:class:`Flowchart`), or a state diagram as its automaton
``.bpmn``             a process in BPMN 2.0, as a flowchart
``.scxml, .xstate``   a state machine in SCXML, or of XState in JSON, as its automaton
``.json``             the same as ``.xstate``
``.xml``              BPMN or SCXML, depending on its first element
``.agent``            a behaviour (:class:`Behaviour`), as its automaton
====================  =================================================

Other packages can provide readers for additional endings.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
from formal_llm.automata.notation.state_diagram import is_state_diagram
from formal_llm.errors import InputError, NotationError

#: The class of rules by the ending of the file; for state diagrams and XML the text decides.
_KINDS: dict[str, type[Rules]] = {
    ".cfg": CFG, ".pda": PDA, ".mmd": Flowchart, ".mermaid": Flowchart, ".agent": Behaviour,
    ".bpmn": Flowchart, ".scxml": PDA, ".xstate": PDA, ".json": PDA, ".xml": Flowchart,
}  # fmt: skip
_ROOT = re.compile(r"\ufeff?(?>\s|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>)*+<(?:[\w.-]+:)?([\w.-]+)", re.DOTALL)
#: The endings of files with rules.
ENDINGS = tuple(_KINDS)
#: Those of files that may hold a flowchart.
DIAGRAMS = tuple(ending for ending, kind in _KINDS.items() if kind is Flowchart)


class RulesReader(Protocol):
    """Reads rules. Packages provide theirs in the group ``formal_llm.notations``, by the ending without its dot."""

    def __call__(self, text: str, file: str | None, /) -> Rules:
        """Return the rules in a text; ``file`` names its origin, for errors and for relative paths.

        Raises:
            NotationError: the text cannot be read.
        """
        ...


#: The notations of other packages.
PLUGINS: Plugins[Rules] = Plugins(
    "formal_llm.notations", "notation", ("text", "file"), "rules: a CFG, PDA, Flowchart or Behaviour",
    lambda _, made: isinstance(made, Rules), lambda: [ending[1:] for ending in ENDINGS],
)  # fmt: skip


def endings() -> tuple[str, ...]:
    """Return the endings of files with rules, including those of other packages."""
    return (*ENDINGS, *(f".{name}" for name in PLUGINS.names()))


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """The options of readers for other standards.

    Attributes:
        process: the name or id of the process of a BPMN file; required if it has several.
        final: the states of a state machine in which plans end; by default its own final states.
        world_after_service_tasks: whether the world decides at exclusive gateways that follow service tasks (BPMN).
    """

    process: str | None = None
    final: tuple[str, ...] = ()
    world_after_service_tasks: bool = False

    def options_for(self, kind: type[Rules], path: Path) -> dict[str, object]:
        """Return the options that are set, for the reader of a file.

        Raises:
            InputError: the file is of another kind.
        """
        bpmn = kind is Flowchart and path.suffix in (".bpmn", ".xml")
        if self.world_after_service_tasks and not bpmn:
            raise InputError(f"world_after_service_tasks is for a process in BPMN, which {path} is not")
        for name, value, fits, whose in (
            ("process", self.process, bpmn, "a process in BPMN"),
            ("final", self.final, kind is PDA and path.suffix != ".pda", "a state machine (SCXML, XState, Mermaid)"),
        ):
            if value and not fits:
                raise InputError(f"{name} ({value if isinstance(value, str) else ', '.join(value)}) is for {whose}, "
                                 f"which {path} is not")  # fmt: skip
        options = {
            "process": self.process, "final": self.final, "world_after_service_tasks": self.world_after_service_tasks
        }  # fmt: skip
        return {name: value for name, value in options.items() if value}


def read_rules_text(
    text: str,
    path: str | Path,
    *,
    final: Sequence[str] = (),
    process: str | None = None,
    world_after_service_tasks: bool = False,
) -> Rules:
    """Read the rules in the text of a file, which may be unsaved; paths in it are relative to the file.

    Args:
        text: the rules.
        path: the file; the text decides what its ending leaves open.
        final: the states of a state machine in which plans end, instead of its own final states.
        process: the name or id of the process to read from a BPMN file.
        world_after_service_tasks: whether the world decides at exclusive gateways that follow service tasks (BPMN).

    Raises:
        NotationError: the text cannot be read, or the ending of the file names no notation.
        InputError: ``final`` or ``process`` is given for a file of another kind.
        ResourceNotFound: there is no such state or process.
        PluginError: another package reads this ending, and cannot be used.
    """
    path = Path(path)
    ending = path.suffix
    kind = _kind_of(text, path)
    options = ReaderOptions(process, tuple(final), world_after_service_tasks).options_for(kind or CFG, path)
    if kind is not None:
        notation = notation_of(kind)
        other = ending[1:] if kind is PDA or ending not in (".mmd", ".mermaid") else ""
        return notation.get_reader(other)(text, str(path), **options)
    rules = PLUGINS.make(ending[1:], text, str(path))
    if rules is None:
        raise NotationError(f"the ending names no notation of rules; there are: {', '.join(endings())}", file=str(path))
    return rules


def _kind_of(text: str, path: Path) -> type[Rules] | None:
    """Return the class of rules in a file with this text; None if its ending is not one of ours."""
    if path.suffix in (".mmd", ".mermaid") and is_state_diagram(text):
        return PDA
    if path.suffix != ".xml":
        return _KINDS.get(path.suffix)
    root = _ROOT.match(text)
    name = root[1] if root else ""
    if name not in ("scxml", "definitions", "process"):
        raise NotationError(
            f"this XML is no rules: it begins with <{name}>" if root else "this is no XML", file=str(path),
            expected=("<definitions> of BPMN 2.0", "<scxml>"),
        )  # fmt: skip
    return PDA if name == "scxml" else Flowchart


def read_rules(
    path: str | Path,
    *,
    final: Sequence[str] = (),
    process: str | None = None,
    world_after_service_tasks: bool = False,
) -> Rules:
    """Read the rules in a file as values of their own class; see :func:`read_rules_text` for the arguments.

    :func:`~formal_llm.automata.models.rules.automaton_of` converts them into an automaton.

    Raises:
        NotationError: the file cannot be read, or its ending names no notation.
        InputError: ``final`` or ``process`` is given for a file of another kind.
        ResourceNotFound: there is no such state or process.
        PluginError: another package reads this ending, and cannot be used.
    """
    path = Path(path)
    if path.suffix in _KINDS or PLUGINS.find(path.suffix[1:]) is not None:
        text = read_text(path, notation_of(_KINDS.get(path.suffix, CFG)).error)
        return read_rules_text(
            text, path, final=final, process=process, world_after_service_tasks=world_after_service_tasks
        )
    if path.suffix and not path.is_file():
        raise NotationError(
            f"the ending {path.suffix} names no notation of rules; there are: {', '.join(endings())}", file=str(path)
        )
    ReaderOptions(process, tuple(final), world_after_service_tasks).options_for(CFG, path)
    return CFG.from_file(path)
