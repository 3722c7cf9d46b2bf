"""What can be planned with: the forms in which rules are written, and the automaton that each of them is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from formal_llm.automata.models.automaton import Automaton
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.pda import PDA

#: What files with rules hold.
Rules = CFG | PDA | Flowchart | Behaviour
#: What a planner takes: rules, or an automaton of one's own, whatever its configurations and moves are.
Source = Rules | Automaton[Any, Any]


def automaton_of(rules: Rules, facts: Mapping[str, object] | None = None) -> CFG | PDA:
    """What a planner walks: a grammar or an automaton, the placeholders of a flowchart filled with ``facts``.

    Raises:
        AutomatonError: a placeholder that ``facts`` does not have.
    """
    if isinstance(rules, Flowchart):
        return rules.fill(facts or {}).pda()
    return rules.pda if isinstance(rules, Behaviour) else rules
