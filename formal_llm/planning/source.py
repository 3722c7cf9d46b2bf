"""Conversion of rules to the grammar or automaton to plan with, and advice about what is not a set of rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from formal_llm.automata import CFG, PDA, Automaton, Behaviour, Flowchart, Limits, Source, SumLimit
from formal_llm.automata.models.quantities import Number
from formal_llm.automata.models.rules import automaton_of
from formal_llm.errors import AutomatonError, unknown
from formal_llm.llms.llm import LLM
from formal_llm.planning.plans.vocabulary import Vocabulary

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


def limits_of(limits: Limits | Mapping[str, Number] | None, source: Source) -> Limits:
    """Return limits as they are, or those of a mapping: the most uses of steps, the most that quantities may sum to.

    Raises:
        AutomatonError: a name is neither a step nor a quantity of the rules; with the nearest name.
        TypeError: it is something else.
    """
    if limits is None or isinstance(limits, Limits):
        return limits or Limits()
    if not isinstance(limits, Mapping):
        raise TypeError(f'limits are Limits, or a mapping such as {{"scan": 1}}, not {type(limits).__name__}')
    words = Vocabulary(source)
    steps = dict.fromkeys(words.terminals)
    quantities = {quantity for symbol in words.symbols.values() for quantity in symbol.numbers}
    for name in limits:
        if name not in steps and name not in quantities:
            raise AutomatonError(f"limits: {unknown('step or quantity', name, [*steps, *quantities])}")
    most = {name: bound for name, bound in limits.items() if name in steps}
    for name, bound in most.items():
        if not isinstance(bound, int):
            raise TypeError(f"limits: {name} is used so many times, a whole number, not {bound!r}")
    sums = tuple(SumLimit(name, at_most=bound) for name, bound in limits.items() if name not in steps)
    return Limits({name: int(bound) for name, bound in most.items()}, sums=sums)


def with_rules(source: object, rules: Sequence[str]) -> object:
    """Return rules under more rules about order: sentences (``"backup before migrate"``) or formulas.

    Raises:
        NotationError: a text is neither, or names what is no step.
        TypeError: the automaton is not one of this library, or one text was given instead of several.
    """
    if isinstance(rules, str):
        raise TypeError(f"rules are a list of sentences: rules=[{rules!r}]")
    if not rules:
        return source
    if not isinstance(source, CFG | PDA | Flowchart | Behaviour):
        raise TypeError(
            f"rules about order are for grammars, flowcharts, behaviours and PDAs, not {type(source).__name__}"
        )
    return source.with_rules(*rules)


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
