"""Subgraphs and groups of nodes as nodes and arrows; what they mean as plans is tested in ``test_flow_moves``."""

from formal_llm.automata.notation.mermaid_groups import meaning
from tests.automata.drawings import read


def arrows(body: str) -> list[tuple[str, str, str]]:
    drawing = read(body)
    made = meaning(drawing.vertices, drawing.links, drawing.groups)
    assert set(made.node_places) == {node.id for node in made.nodes}
    assert len(made.edge_places) == len(made.edges)
    return [(edge.source, edge.text, edge.target) for edge in made.edges]


def test_a_group_behind_an_arrow_is_a_fork_of_its_own() -> None:
    assert arrows("a & b -->|x| c & d") == [
        ("a", "x", "a_all"), ("a_all", "", "c"), ("a_all", "", "d"), ("b", "x", "a_all"),
    ]  # fmt: skip
    assert arrows("a_all --> a --> b & c")[-1] == ("a_all_2", "", "c")
    assert arrows("f@{ shape: fork } --> a & b") == [("f", "", "a"), ("f", "", "b")]


def test_one_answer_and_then_where_a_subgraph_begins() -> None:
    body = "subgraph s\na\nb\nend\nq{?} -->|yes| s\nq -->|no| c"
    assert arrows(body) == [("q", "yes", "s_begin"), ("s_begin", "", "a"), ("s_begin", "", "b"), ("q", "no", "c")]
    assert ("x_all", "", "s_begin") in arrows("subgraph s\na\nb\nend\nx --> s & c")


def test_a_node_lies_in_the_subgraph_that_closes_first() -> None:
    body = "subgraph one\na\nsubgraph two\nb --> c\nend\nb\nend\nX --> two\nX --> one"
    assert [arrow for arrow in arrows(body) if arrow[0] == "X"] == [("X", "", "b"), ("X", "", "a")]


def test_comments_are_left_out() -> None:
    assert arrows('a --> b\nn@{ shape: braces, label: "A note" } --- b\nn --- a') == [("a", "", "b")]
