"""Grammars, pushdown automata, limits and lookahead."""

from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.verdict import Verdict
from formal_llm.automata.models.automaton import EMPTY, Automaton, Configuration, Stack, Word
from formal_llm.automata.models.behaviour import Behaviour, BehaviourState
from formal_llm.automata.models.cfg import CFG, Production, Symbol, selection
from formal_llm.automata.models.flowchart import Flowchart, FlowEdge, FlowNode
from formal_llm.automata.models.formula import Formula
from formal_llm.automata.models.limits import Limits, SumLimit
from formal_llm.automata.models.pda import PDA, Transition
from formal_llm.automata.models.rules import Source
from formal_llm.automata.notation.formula import constraint

__all__ = [
    "CFG", "EMPTY", "PDA", "Automaton", "Behaviour", "BehaviourState", "Configuration", "FlowEdge", "FlowNode",
    "Flowchart", "Formula", "Limits", "Lookahead", "Production", "Source",
    "Stack", "SumLimit", "Symbol", "Transition", "Verdict", "Word", "constraint", "selection",
]  # fmt: skip
