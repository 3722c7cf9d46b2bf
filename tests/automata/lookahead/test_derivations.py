"""The graph of all derivations: how large it is, what its classes are, and that words come back in their order."""

from __future__ import annotations

import pytest

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata.lookahead.derivations import ClassSlot, DerivationGraph, DerivationStates
from formal_llm.errors import Undecided
from tests.automata.lookahead.test_weighted import OPENAGI


def graph_of(text: str, *, moves: bool = False, max_states: int = 10_000) -> DerivationGraph:
    lookahead = Lookahead(CFG.from_string(text))
    assert lookahead.pda is not None
    derivations = DerivationStates(lookahead.pda, lookahead.bounds, lambda move: move.production if moves else None)
    return derivations.build(max_states)


def count(graph: DerivationGraph) -> int:
    """The derivations, with whole numbers: a slot with u members left can be filled in u ways."""
    ways = [1] + [0] * (graph.node_count - 1)
    left = {one.first + used: used + 1 for one in graph.classes.values() for used in range(len(one.members))}
    for edge, node in enumerate(graph.parents.tolist()):
        product = graph.rewritings[edge].times
        for feature in graph.edge_features[edge].tolist():
            product *= left.get(feature, 1)
        for child in graph.children[edge].tolist():
            product *= ways[child]
        ways[node] += product
    return 0 if graph.root is None else ways[graph.root]


@pytest.mark.parametrize("moves", [False, True])
def test_tools_of_a_type_are_a_class_and_keep_the_graph_small(moves: bool) -> None:
    graph = graph_of(OPENAGI, moves=moves)
    assert sorted(one.members for one in graph.classes.values()) == [
        ("a1", "a2", "a3", "a4"), ("b1", "b2", "b3"), ("d1", "d2", "d3", "d4", "d5"),
    ]  # fmt: skip
    assert graph.node_count < 3_000
    assert count(graph) == Lookahead(CFG.from_string(OPENAGI)).count()


def test_members_with_moves_of_their_own_in_several_places_are_no_class() -> None:
    text = "%limit 1\nS -> X Y\nX -> a | b\nY -> a | b"
    assert [one.members for one in graph_of(text).classes.values()] == [("a", "b")]
    graph = graph_of(text, moves=True)
    assert not graph.classes and count(graph) == 2
    (one,) = graph_of("%limit 1\nS -> X X\nX -> a | b", moves=True).classes.values()
    assert [len(features) for features in one.features] == [2, 2]


def test_symbols_without_limits_are_nodes_beside_the_path() -> None:
    """Forty free choices are forty nodes, not the product of their states."""
    choices = " ".join(f"C{n}" for n in range(40))
    rules = "\n".join(f"C{n} -> a{n} | b{n}" for n in range(40))
    graph = graph_of(f"%limit 1 t\nS -> {choices} t\n{rules}")
    assert graph.node_count < 50
    assert count(graph) == 2**40


def test_words_are_written_in_the_order_of_the_rules() -> None:
    graph = graph_of("%limit 1\nS -> A x A y\nA -> a | b")
    path = list(range(len(graph.parents)))
    (field,) = graph.classes
    assert graph.slot_counts(path) == {field: 2}
    assert ClassSlot(field) in graph.rewritings[path[-1]].items
    assert graph.build_word(path, {field: ("b", "a")}) == ("b", "x", "a", "y")


def test_there_is_a_bound_of_states() -> None:
    with pytest.raises(Undecided, match="raise max_states"):
        graph_of(OPENAGI, max_states=100)


def test_a_step_that_reads_a_class_twice_takes_two_members() -> None:
    graph = graph_of("%limit 1\nS -> A A | A x A A\nA -> a | b | c")
    (one,) = graph.classes.values()
    assert one.members == ("a", "b", "c")
    assert count(graph) == 3 * 2 + 3 * 2 * 1
    assert max(len(rewriting.items) for rewriting in graph.rewritings) == 4  # no symbol for A is left


def test_states_from_which_nothing_is_affordable_are_left_out() -> None:
    """Each P takes a, of which there are two: plans with three P are dead before they are written out."""
    graph = graph_of("%limit 2 a\n%limit 1 b c d\nS -> P P P Q | P P Q | Q\nP -> a | a b\nQ -> c Q | d Q | e")
    assert count(graph) == 3 * 5 + 5  # a a, ab a, a ab; five words of Q
    assert len(graph.rewritings) < 40


def test_stacks_that_may_end_early() -> None:
    """An automaton accepts by its state, whatever is left on its stack."""
    moves = [("q", "a", "X", "q"), ("q", "b", "X", "q", ("X",)), ("q", None, "X", "p")]
    pda = PDA(moves, start="q", stack=("X", "X"), accepting={"q", "p"}).with_limits(Limits({"b": 1}))
    counted = Lookahead(pda)
    graph = DerivationStates(counted.pda, counted.bounds, lambda move: None).build(1_000)  # type: ignore[arg-type]
    assert count(graph) == counted.count(of="derivations")
