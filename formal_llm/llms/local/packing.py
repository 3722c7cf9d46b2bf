"""Many prompts in few rows: what they share is read once.

Prompts of plans begin alike: the questions of one walk grow from one to the next, and walks for one task ask similar
questions. Sorted, each prompt shares its longest beginning with its neighbour, so a row of neighbours is a prefix tree
written out in depth-first order. The model reads the row at once; a token attends to those that lie on its own path
from the root, and its position is its depth. So the model computes what it would have computed for each prompt alone.
The answers hang at the ends of their prompts in the same row.

Of a tree in depth-first order, node ``a`` lies on the path to ``b`` exactly when ``a <= b < end(a)``, with ``end(a)``
the number after the last descendant of ``a``: that makes the attention mask two comparisons.
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
    """A prompt on its way into a row.

    Attributes:
        tokens: its tokens.
        tree: its answers.
        known: how many of its first tokens have their keys and values in a cache; at most all.
        slots: where, for those.
    """

    tokens: Ids
    tree: AnswerTree
    known: int = 0
    slots: Ids = field(default_factory=lambda: NO_IDS)


@dataclass(frozen=True, eq=False)
class PackedRow:
    """Some prompts as one row. Past tokens are those that are in the cache; the others are read by the model.

    Attributes:
        ids: the tokens that are read.
        positions: their positions.
        order, ends: their depth-first number, and the number after their last descendant.
        past_slots: where the past tokens lie in the cache.
        past_order, past_ends: as for the tokens that are read.
        looks: for each prompt the places in ``ids`` of its last token and of its inner answer nodes.
        own: for each prompt the places in ``ids`` of those of its tokens that no earlier prompt of the row has read.
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
    """The length of the longest common beginning."""
    length = min(len(one), len(other))
    differ = one[:length] != other[:length]
    return int(differ.argmax()) if differ.any() else length


def sortable(tokens: Ids) -> bytes:
    """Bytes that sort as the tokens do."""
    return tokens.astype(">i8").tobytes()


def sorted_rows(prompts: Sequence[PackablePrompt], row_tokens: int) -> list[list[int]]:
    """Which prompts go into which row: neighbours in their order, as long as a row has at most ``row_tokens`` tokens.

    A prompt that alone has more gets a row of its own. What is in the cache counts too, since it is attended to.
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


def packed_tokens(prompts: Sequence[PackablePrompt], row_tokens: int) -> int:
    """How many tokens the rows of some prompts have, answers and past ones included."""
    count = 0
    for row in sorted_rows(prompts, row_tokens):
        before = NO_IDS
        for prompt in (prompts[index] for index in row):
            count += len(prompt.tokens) - common(before, prompt.tokens) + len(prompt.tree.tokens)
            before = prompt.tokens
    return count


def slots_along(prompts: Sequence[PackablePrompt], fresh: Sequence[Ids]) -> Iterator[Ids]:
    """For each prompt of a row the slots of all its tokens.

    Args:
        prompts: of one row, sorted as it is.
        fresh: for each the slots of those of its tokens that it was the first to read (:attr:`PackedRow.own`).
    """
    path = before = NO_IDS
    for prompt, own in zip(prompts, fresh, strict=True):
        shared = common(before, prompt.tokens)
        known = max(prompt.known, shared)
        path = np.concatenate([path[:shared], prompt.slots[shared:known], own])
        before = prompt.tokens
        yield path


def write_row(prompts: Sequence[PackablePrompt]) -> PackedRow:
    """The row of some prompts, which come sorted by their tokens."""
    ends = np.zeros(sum(len(p.tokens) + len(p.tree.tokens) for p in prompts), dtype=np.int64)
    ids, positions, orders, past_orders, past_slots, looks, own = [], [], [], [], [], [], []
    count = read = 0  # nodes numbered so far, past ones included; tokens that are read
    path_order = path_place = NO_IDS  # the depth-first number and the place of each node on the current path
    before = NO_IDS
    for prompt in prompts:
        shared, length, tree = common(before, prompt.tokens), len(prompt.tokens), prompt.tree
        ends[path_order[shared:]] = count  # nodes that this prompt does not go through are complete
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
