"""Grammars, pushdown automata, limits and lookahead.

The values know neither their notations nor their pictures; here both tables are filled.
"""

from formal_llm.automata.drawing.cfg import cfg_graph, cfg_picture
from formal_llm.automata.drawing.flowchart import flowchart_picture
from formal_llm.automata.drawing.pda import pda_graph, pda_picture
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.lookahead.verdicts import Verdict
from formal_llm.automata.models.automaton import EMPTY, Automaton, Configuration, Stack, Word
from formal_llm.automata.models.behaviour import Behaviour, BehaviourState
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.flowgraph import FlowEdge, FlowNode
from formal_llm.automata.models.formula import Formula
from formal_llm.automata.models.limits import Limits, SumLimit
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.product import intersection  # says what & means
from formal_llm.automata.models.quantities import Amount, amount
from formal_llm.automata.models.rules import Source
from formal_llm.automata.models.symbols import Production, Symbol, selection
from formal_llm.automata.models.timetable import Clock, Gap, Span, Timetable, Window
from formal_llm.automata.models.transition import Transition
from formal_llm.automata.models.written import Notation, register
from formal_llm.automata.notation.behaviour import read_behaviour, write_behaviour
from formal_llm.automata.notation.bpmn import read_bpmn
from formal_llm.automata.notation.cfg import read_grammar
from formal_llm.automata.notation.cfg_writing import write_grammar
from formal_llm.automata.notation.flowchart import read_flowchart, write_flowchart
from formal_llm.automata.notation.formula import constraint
from formal_llm.automata.notation.letters import read_letters
from formal_llm.automata.notation.pda import read_pda
from formal_llm.automata.notation.pda_writing import write_pda
from formal_llm.automata.notation.scxml import read_scxml
from formal_llm.automata.notation.state_diagram import read_state_diagram
from formal_llm.automata.notation.typed_tools import grammar_of_tools
from formal_llm.automata.notation.xstate import read_xstate
from formal_llm.errors import GrammarError
from formal_llm.pictures.drawable import graph_of, picture_of

register(CFG, Notation(read_grammar, write_grammar, GrammarError, {"letters": read_letters, "tools": grammar_of_tools}))
register(PDA, Notation(read_pda, write_pda, others={
    "scxml": read_scxml, "xml": read_scxml, "xstate": read_xstate, "json": read_xstate,
    "mmd": read_state_diagram, "mermaid": read_state_diagram,
}))  # fmt: skip
register(Flowchart, Notation(read_flowchart, write_flowchart, others={"bpmn": read_bpmn, "xml": read_bpmn}))
register(Behaviour, Notation(read_behaviour, write_behaviour))

picture_of.register(CFG, cfg_picture)
picture_of.register(PDA, pda_picture)
picture_of.register(Flowchart, flowchart_picture)
picture_of.register(Lookahead, lambda lookahead: picture_of(lookahead.source))
picture_of.register(Behaviour, lambda behaviour: pda_picture(behaviour.pda))
graph_of.register(CFG, cfg_graph)
graph_of.register(PDA, pda_graph)
graph_of.register(Behaviour, lambda behaviour: pda_graph(behaviour.pda))

__all__ = [
    "CFG", "EMPTY", "PDA", "Amount", "Automaton", "Behaviour", "BehaviourState", "Clock", "Configuration", "FlowEdge",
    "FlowNode", "Flowchart", "Formula", "Gap", "Limits", "Lookahead", "Production", "Source", "Span",
    "Stack", "SumLimit", "Symbol", "Timetable", "Transition", "Verdict", "Window", "Word", "amount", "constraint",
    "intersection", "selection",
]  # fmt: skip
