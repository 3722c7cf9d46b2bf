"""Conversion of rules to the grammar or automaton to plan with, and advice about what is not a set of rules."""

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
    ".rules": "Behaviour.from_file",
}


def source_of(source: object, taker: str = "Planner") -> Source:
    """Return the automaton of a flowchart or a behaviour; a grammar or an automaton as it is.

    Args:
        source: the argument given as rules.
        taker: the name of the callee, for the message.

    Raises:
        TypeError: it is none of these; the message suggests what to write instead.
        AutomatonError: a flowchart has unfilled placeholders.
    """
    if isinstance(source, CFG | PDA | Flowchart | Behaviour):
        return automaton_of(source)
    if isinstance(source, Automaton) and not isinstance(source, type):
        return source
    raise TypeError(f"{taker} takes a grammar{_suggest_instead(source, taker)}")


def _suggest_instead(source: object, taker: str) -> str:
    """Describe what was given in place of rules, and what to write instead."""
    from formal_llm.automata.notation.files import endings  # loads all notations, for this message only

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
