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

#: For each name the module that defines it.
_HOMES = {
    "CFG": "models.cfg",
    "EMPTY": "models.automaton",
    "PDA": "models.pda",
    "Amount": "models.quantities",
    "Automaton": "models.automaton",
    "Behaviour": "models.behaviour",
    "BehaviourState": "models.behaviour",
    "Clock": "models.timetable",
    "Configuration": "models.automaton",
    "FlowEdge": "models.flowgraph",
    "FlowNode": "models.flowgraph",
    "Flowchart": "models.flowchart",
    "Formula": "models.formula",
    "Gap": "models.timetable",
    "Limits": "models.limits",
    "Lookahead": "lookahead.lookahead",
    "Production": "models.symbols",
    "Source": "models.rules",
    "Span": "models.timetable",
    "Stack": "models.automaton",
    "SumLimit": "models.limits",
    "Symbol": "models.symbols",
    "Timetable": "models.timetable",
    "Transition": "models.transition",
    "Verdict": "lookahead.verdicts",
    "Window": "models.timetable",
    "WeightedRules": "lookahead.weighted",
    "Word": "models.automaton",
    "amount": "models.quantities",
    "constraint": "notation.formula",
    "intersection": "models.product",
    "selection": "models.symbols",
}

__getattr__ = export_lazily(__name__, _HOMES)

__all__ = [
    "CFG", "EMPTY", "PDA", "Amount", "Automaton", "Behaviour", "BehaviourState", "Clock", "Configuration", "FlowEdge",
    "FlowNode", "Flowchart", "Formula", "Gap", "Limits", "Lookahead", "Production", "Source", "Span", "Stack",
    "SumLimit", "Symbol", "Timetable", "Transition", "Verdict", "WeightedRules", "Window", "Word", "amount",
    "constraint", "intersection", "selection",
]  # fmt: skip
