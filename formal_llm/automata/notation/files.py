"""Rules from a file, whatever notation it is written in.

====================  =================================================
``.cfg``              a grammar (:class:`CFG`)
``.pda``              a pushdown automaton (:class:`PDA`)
``.mmd, .mermaid``    a flowchart (:class:`Flowchart`), as its automaton
``.bpmn``             a process in BPMN 2.0, as a flowchart
``.scxml, .xstate``   a state machine in SCXML, or of XState in JSON, as its automaton
``.agent``            a behaviour (:class:`Behaviour`), as its automaton
====================  =================================================
"""

from __future__ import annotations

from pathlib import Path

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


def read_rules_text(text: str, path: str | Path) -> Rules:
    """The rules in the text of a file that may not be saved yet; paths in it are relative to it.

    Raises:
        NotationError: the text cannot be read, or the ending of the file names no notation.
    """
    kind = _KINDS.get(Path(path).suffix)
    if kind is None:
        raise NotationError(f"the ending names no notation of rules; there are: {', '.join(ENDINGS)}", file=str(path))
    return notation_of(kind).read(text, str(path))


def read_rules(path: str | Path) -> Rules:
    """The rules in a file, as what they are.

    :func:`~formal_llm.automata.models.rules.automaton_of` makes an automaton of them.

    Raises:
        NotationError: the file cannot be read, or its ending names no notation.
    """
    path = Path(path)
    if path.suffix not in _KINDS and path.suffix and not path.is_file():
        raise NotationError(
            f"the ending {path.suffix} names no notation of rules; there are: {', '.join(ENDINGS)}", file=str(path)
        )
    return _KINDS.get(path.suffix, CFG).from_file(path)
