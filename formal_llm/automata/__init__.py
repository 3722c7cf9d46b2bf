"""Grammars, pushdown automata, limits and lookahead."""

from typing import TYPE_CHECKING

from formal_llm.exports import export_lazily

if TYPE_CHECKING:
    from formal_llm.automata.lookahead.lookahead import Lookahead
    from formal_llm.automata.lookahead.verdicts import Verdict
    from formal_llm.automata.lookahead.weighted import WeightedRules
    from formal_llm.automata.models.automaton import EMPTY, Automaton, Configuration, Stack, Word
    from formal_llm.automata.models.behaviour import Behaviour, BehaviourState
    from formal_llm.automata.models.cfg import CFG
    from formal_llm.automata.models.flowchart import Flowchart
    from formal_llm.automata.models.flowgraph import FlowEdge, FlowNode
    from formal_llm.automata.models.formula import Formula
    from formal_llm.automata.models.limits import Limits, SumLimit
    from formal_llm.automata.models.pda import PDA
    from formal_llm.automata.models.product import intersection
    from formal_llm.automata.models.quantities import Amount, amount
    from formal_llm.automata.models.rules import Source
    from formal_llm.automata.models.symbols import Production, Symbol, selection
    from formal_llm.automata.models.timetable import Clock, Gap, Span, Timetable, Window
    from formal_llm.automata.models.transition import Transition
    from formal_llm.automata.notation.formula import constraint

#: For each module the names that it defines.
_HOMES = {
    "lookahead.lookahead": "Lookahead",
    "lookahead.verdicts": "Verdict",
    "lookahead.weighted": "WeightedRules",
    "models.automaton": "EMPTY Automaton Configuration Stack Word",
    "models.behaviour": "Behaviour BehaviourState",
    "models.cfg": "CFG",
    "models.flowchart": "Flowchart",
    "models.flowgraph": "FlowEdge FlowNode",
    "models.formula": "Formula",
    "models.limits": "Limits SumLimit",
    "models.pda": "PDA",
    "models.product": "intersection",
    "models.quantities": "Amount amount",
    "models.rules": "Source",
    "models.symbols": "Production Symbol selection",
    "models.timetable": "Clock Gap Span Timetable Window",
    "models.transition": "Transition",
    "notation.formula": "constraint",
}

__getattr__ = export_lazily(__name__, _HOMES)

__all__ = [
    "CFG", "EMPTY", "PDA", "Amount", "Automaton", "Behaviour", "BehaviourState", "Clock", "Configuration", "FlowEdge",
    "FlowNode", "Flowchart", "Formula", "Gap", "Limits", "Lookahead", "Production", "Source", "Span", "Stack",
    "SumLimit", "Symbol", "Timetable", "Transition", "Verdict", "WeightedRules", "Window", "Word", "amount",
    "constraint", "intersection", "selection",
]  # fmt: skip
