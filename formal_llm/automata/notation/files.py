"""Rules from files in any notation.

====================  =================================================
``.cfg``              a grammar (:class:`CFG`)
``.pda``              a pushdown automaton (:class:`PDA`)
``.mmd, .mermaid``    a flowchart (:class:`Flowchart`)
``.agent``            a behaviour (:class:`Behaviour`)
``.rules``            sentences about steps (a :class:`Behaviour`)
====================  =================================================

Other packages can provide readers for additional endings.
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
from formal_llm.automata.notation.sentences import read_sentences
from formal_llm.errors import NotationError

#: The class of rules by the ending of the file.
_KINDS: dict[str, type[Rules]] = {
    ".cfg": CFG, ".pda": PDA, ".mmd": Flowchart, ".mermaid": Flowchart, ".agent": Behaviour,
}  # fmt: skip
#: The ending of files of sentences.
SENTENCES = ".rules"
#: The endings of files with rules.
ENDINGS = (*_KINDS, SENTENCES)


class RulesReader(Protocol):
    """Reads rules. Packages provide theirs in the group ``formal_llm.notations``, by the ending without its dot."""

    def __call__(self, text: str, file: str | None, /) -> Rules:
        """Return the rules in a text; ``file`` names its origin, for errors.

        Raises:
            NotationError: the text cannot be read.
        """
        ...


#: The notations of other packages.
PLUGINS: Plugins[Rules] = Plugins(
    "formal_llm.notations", "notation", "rules: a CFG, PDA, Flowchart or Behaviour",
    lambda _, made: isinstance(made, Rules), lambda: [ending[1:] for ending in ENDINGS],
)  # fmt: skip


def endings() -> tuple[str, ...]:
    """Return the endings of files with rules, including those of other packages."""
    return (*ENDINGS, *(f".{name}" for name in PLUGINS.names()))


def read_rules_text(text: str, path: str | Path) -> Rules:
    """Read the rules in the text of a file, which may be unsaved, in the notation that its ending names.

    Raises:
        NotationError: the text cannot be read, or the ending of the file names no notation.
        PluginError: another package reads this ending, and cannot be used.
    """
    path = Path(path)
    if path.suffix == SENTENCES:
        return read_sentences(text, str(path))
    kind = _KINDS.get(path.suffix)
    if kind is not None:
        return kind.from_string(text, file=str(path))
    rules = PLUGINS.make(path.suffix[1:], text, str(path))
    if rules is None:
        raise _name_no_notation(path)
    return rules


def read_rules(path: str | Path) -> Rules:
    """Read the rules in a file as values of their own class.

    :func:`~formal_llm.automata.models.rules.automaton_of` converts them into an automaton.

    Raises:
        NotationError: the file cannot be read, or its ending names no notation.
        PluginError: another package reads this ending, and cannot be used.
    """
    path = Path(path)
    if path.suffix in ENDINGS or PLUGINS.find(path.suffix[1:]) is not None:
        return read_rules_text(read_text(path, _KINDS.get(path.suffix, CFG).notation_error), path)
    if path.suffix and not path.is_file():
        raise _name_no_notation(path)
    return CFG.from_file(path)


def _name_no_notation(path: Path) -> NotationError:
    problem = f"the ending {path.suffix} names no notation of rules; there are: {', '.join(endings())}"
    return NotationError(problem, file=str(path))
