from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.local.answer_tree import ROOT, AnswerTree

#: Answers with a token at their end that is nowhere else, so that none is the beginning of another one.
ANSWERS = st.lists(
    st.lists(st.integers(0, 2), max_size=4).map(tuple), min_size=1, max_size=12, unique=True
).map(lambda bodies: [(*body, 9) for body in bodies])  # fmt: skip


def spelled(tree: AnswerTree, node: int) -> tuple[int, ...]:
    """The tokens from the root to a node."""
    return () if node == ROOT else (*spelled(tree, tree.parents[node]), tree.tokens[node])


@given(ANSWERS)
def test_paths_spell_the_answers(answers: list[tuple[int, ...]]) -> None:
    tree = AnswerTree.of(answers)
    assert [tuple(token for _, token in path) for path in tree.paths] == answers
    for answer, path in zip(answers, tree.paths, strict=True):
        # At each step the model is looked at where exactly the tokens before have been read.
        assert [spelled(tree, node) for node, _ in path] == [answer[:place] for place in range(len(answer))]


@given(ANSWERS)
def test_the_nodes_are_the_beginnings_of_answers_each_once(answers: list[tuple[int, ...]]) -> None:
    tree = AnswerTree.of(answers)
    beginnings = {answer[:length] for answer in answers for length in range(1, len(answer))}
    nodes = range(len(tree.tokens))
    assert sorted(spelled(tree, node) for node in nodes) == sorted(beginnings)
    assert [len(spelled(tree, node)) for node in nodes] == list(tree.depths)


@given(ANSWERS)
def test_what_is_below_a_node_is_numbered_from_it_to_its_end(answers: list[tuple[int, ...]]) -> None:
    tree = AnswerTree.of(answers)
    for node, end in enumerate(tree.ends):
        own = spelled(tree, node)
        below = {other for other in range(len(tree.tokens)) if spelled(tree, other)[: len(own)] == own}
        assert below == set(range(node, end))


@given(ANSWERS)
def test_rows_are_paths_and_cover_all_nodes(answers: list[tuple[int, ...]]) -> None:
    tree = AnswerTree.of(answers)
    for row in tree.rows:
        assert [tree.parents[node] for node in row] == [ROOT, *row[:-1]]
    assert {node for row in tree.rows for node in row} == set(range(len(tree.tokens)))
    assert len({row[-1] for row in tree.rows}) == len(tree.rows)


def test_one_token_each() -> None:
    tree = AnswerTree.of([[4], [7]])
    assert (tree.tokens, tree.rows, tree.paths) == ((), (), (((ROOT, 4),), ((ROOT, 7),)))


def test_one_and_twelve_share_their_beginning() -> None:
    tree = AnswerTree.of([[1, 0], [2, 0], [1, 2, 0]])
    assert tree.tokens == (1, 2, 2)  # 1, 12, 2
    assert tree.parents == (ROOT, 0, ROOT)
    assert tree.ends == (2, 2, 3)
    assert tree.rows == ((0, 1), (2,))


@pytest.mark.parametrize("answers", [[[1], [1]], [[]], [[1], [1, 2]], [[1, 2], [1]]])
def test_answers_that_cannot_be_told_apart(answers: list[list[int]]) -> None:
    with pytest.raises(ValueError):
        AnswerTree.of(answers)
