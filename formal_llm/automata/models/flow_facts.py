"""Decisions of a flowchart that facts decide.

The texts of their arrows are conditions; or their own text is one, and the arrows are labelled yes and no.
"""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.automata.models.conditions import (
    Condition,
    ElseCondition,
    JoinedConditions,
    holds,
    list_fact_names,
    read_condition,
)
from formal_llm.automata.models.flowgraph import FlowEdge, FlowGraph, one_line
from formal_llm.errors import AutomatonError

_ANSWERS = {"yes": True, "true": True, "y": True, "no": False, "false": False, "n": False}


def read_answer_conditions(graph: FlowGraph, name: str) -> dict[FlowEdge, Condition]:
    """The conditions of the arrows out of a decision; empty where one of them has another text.

    A text that begins with a sign, as in ``> 10000``, compares the fact that is called as the node is. Where the text
    of the decision is a condition, as in ``amount > 10000?``, its arrows are labelled yes and no.
    """
    if graph.kind(name) != "decision" or graph.is_selection(name):
        return {}
    edges = graph.answer_edges(name)
    whole = read_condition(one_line(graph.node[name].text).rstrip("? "))
    told = [_ANSWERS.get(one_line(edge.text).casefold()) for edge in edges]
    if whole is not None and not isinstance(whole, ElseCondition) and sorted(map(str, told)) == ["False", "True"]:
        return {
            edge: whole if yes else JoinedConditions("not", (whole,)) for edge, yes in zip(edges, told, strict=True)
        }
    found: dict[FlowEdge, Condition] = {}
    for edge in edges:
        text = one_line(edge.text)
        condition = read_condition(text) or read_condition(f"{name} {text}")
        if condition is None:
            return {}
        found[edge] = condition
    return {} if all(isinstance(one, ElseCondition) for one in found.values()) else found


def facts_of(graph: FlowGraph) -> tuple[str, ...]:
    """The facts that decide decisions of a chart, in order of appearance."""
    told = [list_fact_names(one) for node in graph.nodes for one in read_answer_conditions(graph, node.id).values()]
    return tuple(dict.fromkeys(name for group in told for name in group))


def ruled_out(graph: FlowGraph, facts: Mapping[str, object]) -> list[str]:
    """The answers, by their names, whose conditions do not hold.

    None of a decision for which a fact is missing that one of its conditions is about: it is asked.

    Raises:
        AutomatonError: no condition of a decision holds, or one compares a number and a text.
    """
    found: list[str] = []
    for node in graph.nodes:
        conditions = read_answer_conditions(graph, node.id)
        needed = {name for one in conditions.values() for name in list_fact_names(one)}
        if not conditions or not facts.keys() >= needed:
            continue
        place = f"the decision {node.id} ({one_line(node.text)!r})"
        try:
            true = [edge for edge, condition in conditions.items() if holds(condition, facts)]
        except ValueError as error:
            raise AutomatonError(f"in {place}: {error}") from None
        true = true or [edge for edge, condition in conditions.items() if isinstance(condition, ElseCondition)]
        if not true:
            given = ", ".join(f"{name}={facts[name]}" for name in sorted(needed))
            raise AutomatonError(f"no answer of {place} holds for {given}; draw an arrow with the text 'else'")
        found += [name for name, edge in graph.answers(node.id).items() if edge not in true]
    return found
