"""What can be planned with: rules as they are written, and the words for what is no rules."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from formal_llm.automata import CFG, PDA, Automaton, Behaviour, Flowchart, Source
from formal_llm.automata.models.rules import automaton_of
from formal_llm.llms.llm import LLM

_READERS = {
    ".cfg": "CFG.from_file",
    ".pda": "PDA.from_file",
    ".mmd": "Flowchart.from_file",
    ".mermaid": "Flowchart.from_file",
    ".agent": "Behaviour.from_file",
    ".bpmn": "Flowchart.from_file",
    ".scxml": "PDA.from_file",
    ".xstate": "PDA.from_file",
}


def source_of(source: object, taker: str = "Planner") -> Source:
    """A grammar or an automaton as it is; of a flowchart and of a behaviour its automaton.

    Args:
        source: what was given as rules.
        taker: who takes it, for the message.

    Raises:
        TypeError: it is none of these; the message shows what to write instead.
        AutomatonError: a flowchart with placeholders that are not filled.
    """
    if isinstance(source, CFG | PDA | Flowchart | Behaviour):
        return automaton_of(source)
    if isinstance(source, Automaton) and not isinstance(source, type):
        return source
    raise TypeError(f"{taker} takes a grammar{_suggest_instead(source, taker)}")


def _suggest_instead(source: object, taker: str) -> str:
    """What was given in place of rules, and what to write."""
    from formal_llm.automata.notation.files import endings  # all notations, for this message only

    if isinstance(source, PathLike) or (isinstance(source, str) and source.endswith(endings())):
        path = Path(source)
        other = "read_rules" if path.suffix in endings() else "CFG.from_file"
        reader = _READERS.get(path.suffix, other)
        return f", not the name of a file: {taker}({reader}({str(path)!r}))"
    if isinstance(source, str):
        return f", not text: {taker}(CFG.from_string(text))"
    if isinstance(source, LLM) or (callable(source) and not isinstance(source, type)):
        return f" first, and who answers after it: {taker}(cfg, llm)"
    given = f"the class {source.__name__}" if isinstance(source, type) else type(source).__name__
    return f", a flowchart, a behaviour or an automaton, not {given}"
