"""Grammars, pushdown automata, limits and lookahead."""

from formal_llm.automata.automaton import EMPTY, Automaton, Configuration, Stack
from formal_llm.automata.behaviour import Behaviour, BehaviourState
from formal_llm.automata.cfg import CFG, Production, Symbol, selection
from formal_llm.automata.flowchart import Flowchart, FlowEdge, FlowNode
from formal_llm.automata.formula import Formula
from formal_llm.automata.formula_notation import constraint
from formal_llm.automata.limited import LimitedAutomaton, LimitedConfiguration
from formal_llm.automata.limits import Limits, SumLimit
from formal_llm.automata.lookahead import Lookahead, Verdict
from formal_llm.automata.pda import PDA, Transition

__all__ = [
    "CFG", "EMPTY", "PDA", "Automaton", "Behaviour", "BehaviourState", "Configuration", "FlowEdge", "FlowNode",
    "Flowchart", "Formula", "LimitedAutomaton", "LimitedConfiguration", "Limits", "Lookahead", "Production", "Stack",
    "SumLimit", "Symbol", "Transition", "Verdict", "constraint", "selection",
]  # fmt: skip
