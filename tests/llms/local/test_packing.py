from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.packing import PackablePrompt, PackedRow, common, sorted_rows, write_row

TREES = [
    AnswerTree.of([[4], [5]]),
    AnswerTree.of([[1, 0], [2, 0]]),
    AnswerTree.of([[1, 0], [2, 0], [1, 2, 0], [1, 1, 0], [3, 3, 3, 0]]),
]
TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=8)


@st.composite
def prompts(draw: st.DrawFn) -> list[PackablePrompt]:
    """Prompts with beginnings in common, some of each known; the slot of a token tells the beginning that it ends."""
    made = []
    for tokens in draw(st.lists(TOKENS, min_size=1, max_size=7)):
        ids = np.array(tokens, dtype=np.int64)
        known = draw(st.integers(0, len(tokens) - 1))
        slots = np.array([slot_of(tokens[: end + 1]) for end in range(known)], dtype=np.int64)
        made.append(PackablePrompt(ids, draw(st.sampled_from(TREES)), known, slots))
    return made


def slot_of(beginning: list[int]) -> int:
    number = 1
    for token in beginning:
        number = 4 * number + token
    return number


def tokens_of(slot: int) -> tuple[int, ...]:
    found = []
    while slot > 1:
        slot, token = divmod(slot, 4)
        found.append(token)
    return tuple(reversed(found))


def in_order(some: list[PackablePrompt]) -> list[PackablePrompt]:
    return sorted(some, key=lambda prompt: prompt.tokens.tolist())


def seen_by(row: PackedRow) -> list[tuple[list[tuple[int, ...]], list[int]]]:
    """For each token that is read: the slots of the past tokens that it attends to, as texts, and the places."""
    found = []
    for order in row.order:
        past = (row.past_order <= order) & (order < row.past_ends)
        new = (row.order <= order) & (order < row.ends)
        found.append(([tokens_of(slot) for slot in row.past_slots[past]], np.flatnonzero(new).tolist()))
    return found


@given(prompts())
def test_each_token_attends_to_exactly_its_own_beginning(some: list[PackablePrompt]) -> None:
    some = in_order(some)
    row = write_row(some)
    seen = seen_by(row)
    for prompt, looks in zip(some, row.looks, strict=True):
        text = prompt.tokens.tolist()
        tree = prompt.tree
        answers = [()]
        for node, parent in enumerate(tree.parents):
            answers.append((*answers[parent + 1], tree.tokens[node]))
        for place, answer in zip(looks, answers, strict=True):
            past, new = seen[place]
            # Past ones tell the beginning that they end, new ones their position: together they are the whole text.
            assert all(beginning == tuple(text[: len(beginning)]) for beginning in past)
            read = [(int(row.positions[at]), int(row.ids[at])) for at in new]
            seen_here = sorted([(len(beginning) - 1, int(beginning[-1])) for beginning in past] + read)
            assert seen_here == list(enumerate([*text, *answer]))
            assert row.positions[place] == len(text) + len(answer) - 1


@given(prompts())
def test_the_mask_is_ancestor_or_self(some: list[PackablePrompt]) -> None:
    """By the definition: whoever is on the path to the root, found through the parents alone."""
    some = in_order(some)
    row = write_row(some)
    order = np.concatenate([row.past_order, row.order])
    ends = np.concatenate([row.past_ends, row.ends])
    depth: dict[int, int] = {}
    ancestors: dict[int, set[int]] = {}
    stack: list[int] = []
    for node in sorted(range(len(order)), key=lambda node: order[node]):
        while stack and order[node] >= ends[stack[-1]]:
            stack.pop()
        ancestors[node] = {*stack, node}
        depth[node] = len(stack)
        stack.append(node)
    for node, own in ancestors.items():
        seen = np.flatnonzero((order <= order[node]) & (order[node] < ends))
        assert set(seen.tolist()) == own
    past = len(row.past_order)
    assert [depth[past + place] for place in range(len(row.ids))] == row.positions.tolist()
    assert sorted(order.tolist()) == list(range(len(order)))


@given(prompts())
def test_what_is_shared_is_read_once(some: list[PackablePrompt]) -> None:
    some = in_order(some)
    row = write_row(some)
    beginnings = {tuple(p.tokens[: end + 1].tolist()) for p in some for end in range(len(p.tokens))}
    answers = sum(len(p.tree.tokens) for p in some)
    assert len(row.ids) + len(row.past_slots) == len(beginnings) + answers
    own = np.concatenate(row.own)
    assert len(set(own.tolist())) == len(own) == len(row.ids) - answers


@given(prompts(), st.integers(1, 40))
def test_rows_hold_each_prompt_once_and_not_too_much(some: list[PackablePrompt], most: int) -> None:
    rows = sorted_rows(some, most)
    assert sorted(index for row in rows for index in row) == list(range(len(some)))
    flat = [some[index].tokens.tolist() for row in rows for index in row]
    assert flat == sorted(flat)
    for row in rows:
        members = [some[index] for index in row]
        nothing = [PackablePrompt(m.tokens, m.tree, 0, np.zeros(0, dtype=np.int64)) for m in members]
        assert len(row) == 1 or len(write_row(nothing).ids) <= most


@given(TOKENS, TOKENS)
def test_common(one: list[int], other: list[int]) -> None:
    expected = 0
    while expected < min(len(one), len(other)) and one[expected] == other[expected]:
        expected += 1
    assert common(np.array(one), np.array(other)) == expected
