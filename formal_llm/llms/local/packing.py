"""Packing of many prompts into few rows, so that their common prefixes are read once.

Prompts of plans begin alike: the questions of one walk extend each other, and walks for one task ask similar questions.
If the prompts are sorted, each shares its longest prefix with a neighbour, so a row of neighbours is a prefix tree in
depth-first order. The model reads the row at once; a token attends to those on its own path from the root, and its
position is its depth. So the model computes the same as for each prompt alone. The answers follow the ends of their
prompts in the same row.

In a tree in depth-first order, node ``a`` lies on the path to ``b`` exactly if ``a <= b < end(a)``, with ``end(a)`` the
number after the last descendant of ``a``: so the attention mask takes two comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from formal_llm.llms.local.answer_tree import AnswerTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

NO_IDS: Ids = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PackablePrompt:
    """A prompt before it is packed into a row.

    Attributes:
        known: the number of its first tokens whose keys and values are in a cache.
        slots: the slots of these tokens.
    """

    tokens: Ids
    tree: AnswerTree
    known: int = 0
    slots: Ids = field(default_factory=lambda: NO_IDS)


@dataclass(frozen=True, eq=False)
class PackedRow:
    """Some prompts as one row. Past tokens are those in the cache; the model reads the others.

    Attributes:
        ids: the tokens that are read.
        order, ends: their depth-first number, and the number after their last descendant.
        past_slots: the slots of the past tokens in the cache.
        past_order, past_ends: the same numbers for the past tokens.
        looks: for each prompt the indices in ``ids`` of its last token and of its inner answer nodes.
        own: for each prompt the indices in ``ids`` of its tokens that no earlier prompt of the row contains.
    """

    ids: Ids
    positions: Ids
    order: Ids
    ends: Ids
    past_slots: Ids
    past_order: Ids
    past_ends: Ids
    looks: tuple[Ids, ...]
    own: tuple[Ids, ...]


def common(one: Ids, other: Ids) -> int:
    """Return the length of the longest common prefix."""
    length = min(len(one), len(other))
    differ = one[:length] != other[:length]
    return int(differ.argmax()) if differ.any() else length


def sortable(tokens: Ids) -> bytes:
    """Return bytes that sort like the tokens."""
    return tokens.astype(">i8").tobytes()


def sorted_rows(prompts: Sequence[PackablePrompt], row_tokens: int) -> list[list[int]]:
    """Distribute prompts over rows: neighbours in sorted order, with at most ``row_tokens`` tokens in a row.

    A longer prompt gets a row of its own. Cached tokens count too, since they are attended to.
    """
    by_text = sorted(range(len(prompts)), key=lambda index: sortable(prompts[index].tokens))
    rows: list[list[int]] = []
    taken = 0
    for index in by_text:
        prompt = prompts[index]
        answers = len(prompt.tree.tokens)
        shared = common(prompts[rows[-1][-1]].tokens, prompt.tokens) if rows else 0
        needed = len(prompt.tokens) - shared + answers
        if rows and taken + needed <= row_tokens:
            rows[-1].append(index)
            taken += needed
        else:
            rows.append([index])
            taken = len(prompt.tokens) + answers
    return rows


def slots_along(prompts: Sequence[PackablePrompt], fresh: Sequence[Ids]) -> Iterator[Ids]:
    """Yield for each prompt of a row the slots of all its tokens.

    Args:
        prompts: the prompts of one row, in its order.
        fresh: for each prompt the slots of the tokens that no earlier prompt contains (:attr:`PackedRow.own`).
    """
    path = before = NO_IDS
    for prompt, own in zip(prompts, fresh, strict=True):
        shared = common(before, prompt.tokens)
        known = max(prompt.known, shared)
        path = np.concatenate([path[:shared], prompt.slots[shared:known], own])
        before = prompt.tokens
        yield path


def write_row(prompts: Sequence[PackablePrompt]) -> PackedRow:
    """Create the row of some prompts, which are sorted by their tokens."""
    ends = np.zeros(sum(len(p.tokens) + len(p.tree.tokens) for p in prompts), dtype=np.int64)
    ids, positions, orders, past_orders, past_slots, looks, own = [], [], [], [], [], [], []
    count = read = 0  # the number of nodes so far, including past ones; the number of tokens that are read
    path_order = path_place = NO_IDS  # the depth-first number and the index of each node on the current path
    before = NO_IDS
    for prompt in prompts:
        shared, length, tree = common(before, prompt.tokens), len(prompt.tokens), prompt.tree
        ends[path_order[shared:]] = count  # nodes that are not on the path of this prompt are complete
        past = max(prompt.known - shared, 0)
        new, inner = length - shared - past, len(tree.tokens)
        order, nodes = np.split(np.arange(count, count + past + new + inner), [past + new])
        places, answers = np.split(np.arange(read, read + new + inner), [new])
        ends[nodes] = count + past + new + np.asarray(tree.ends, dtype=np.int64)
        count, read = count + past + new + inner, read + new + inner
        past_orders.append(order[:past])
        past_slots.append(prompt.slots[shared : shared + past])
        ids += [prompt.tokens[shared + past :], np.asarray(tree.tokens, dtype=np.int64)]
        positions += [np.arange(shared + past, length), length - 1 + np.asarray(tree.depths, dtype=np.int64)]
        orders += [order[past:], nodes]
        path_order = np.concatenate([path_order[:shared], order])
        path_place = np.concatenate([path_place[:shared], np.full(past, -1), places])
        looks.append(np.concatenate([path_place[-1:], answers]))
        own.append(places)
        before = prompt.tokens
    ends[path_order] = count
    order, past_order = np.concatenate(orders), np.concatenate(past_orders)
    return PackedRow(
        ids=np.concatenate(ids),
        positions=np.concatenate(positions),
        order=order,
        ends=ends[order],
        past_slots=np.concatenate(past_slots),
        past_order=past_order,
        past_ends=ends[past_order],
        looks=tuple(looks),
        own=tuple(own),
    )
