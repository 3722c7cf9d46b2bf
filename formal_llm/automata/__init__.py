"""Grammars, pushdown automata, limits and lookahead.

The values know neither their notations nor their pictures; here both tables are filled.
"""

from typing import TYPE_CHECKING

from formal_llm.automata.models.written import Notation, register_notation
from formal_llm.errors import GrammarError
from formal_llm.exports import LazyFunction, export_lazily
from formal_llm.pictures.drawable import graph_of, picture_of, register_graph, register_picture

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

_CFG, _PDA = "formal_llm.automata.models.cfg:CFG", "formal_llm.automata.models.pda:PDA"
_FLOWCHART = "formal_llm.automata.models.flowchart:Flowchart"
_BEHAVIOUR = "formal_llm.automata.models.behaviour:Behaviour"

register_notation(_CFG, Notation(
    LazyFunction("formal_llm.automata.notation.cfg:read_grammar"),
    LazyFunction("formal_llm.automata.notation.cfg:write_grammar"),
    GrammarError,
    {
        "letters": LazyFunction("formal_llm.automata.notation.letters:read_letters"),
        "tools": LazyFunction("formal_llm.automata.notation.typed_tools:grammar_of_tools"),
    },
))  # fmt: skip
register_notation(_PDA, Notation(
    LazyFunction("formal_llm.automata.notation.pda:read_pda"),
    LazyFunction("formal_llm.automata.notation.pda:write_pda"),
))  # fmt: skip
register_notation(_FLOWCHART, Notation(
    LazyFunction("formal_llm.automata.notation.flowchart:read_flowchart"),
    LazyFunction("formal_llm.automata.notation.flowchart:write_flowchart"),
))  # fmt: skip
register_notation(_BEHAVIOUR, Notation(
    LazyFunction("formal_llm.automata.notation.behaviour:read_behaviour"),
    LazyFunction("formal_llm.automata.notation.behaviour:write_behaviour"),
    others={"sentences": LazyFunction("formal_llm.automata.notation.sentences:read_sentences")},
))  # fmt: skip

register_picture(_CFG, LazyFunction("formal_llm.automata.drawing.cfg:cfg_picture"))
register_picture(_PDA, LazyFunction("formal_llm.automata.drawing.pda:pda_picture"))
register_picture(_FLOWCHART, LazyFunction("formal_llm.automata.drawing.flowchart:flowchart_picture"))
register_picture("formal_llm.automata.lookahead.lookahead:Lookahead", lambda lookahead: picture_of(lookahead.source))
register_picture(_BEHAVIOUR, lambda behaviour: picture_of(behaviour.whole))
register_graph(_CFG, LazyFunction("formal_llm.automata.drawing.cfg:cfg_graph"))
register_graph(_PDA, LazyFunction("formal_llm.automata.drawing.pda:pda_graph"))
register_graph(_BEHAVIOUR, lambda behaviour: graph_of(behaviour.whole))

__all__ = [
    "CFG", "EMPTY", "PDA", "Amount", "Automaton", "Behaviour", "BehaviourState", "Clock", "Configuration", "FlowEdge",
    "FlowNode", "Flowchart", "Formula", "Gap", "Limits", "Lookahead", "Production", "Source", "Span", "Stack",
    "SumLimit", "Symbol", "Timetable", "Transition", "Verdict", "WeightedRules", "Window", "Word", "amount",
    "constraint", "intersection", "selection",
]  # fmt: skip
