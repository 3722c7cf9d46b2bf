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

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formal_llm.llms.local.answer_tree import AnswerTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]

NO_IDS: Ids = np.zeros(0, dtype=np.int64)


class PackablePrompt(NamedTuple):
    """A prompt before it is packed into a row."""

    tokens: Ids
    tree: AnswerTree


class PackedRow(NamedTuple):
    """Some prompts as one row, without a beginning that all of them share.

    Attributes:
        ids: the tokens, in depth-first order.
        positions: the depth of each token in its prompt.
        ends: for each token the index after its last descendant.
        looks: the indices whose logits are needed: for each prompt its last token, then its inner answer nodes.
    """

    ids: Ids
    positions: Ids
    ends: Ids
    looks: Ids


def count_common(one: Ids, other: Ids) -> int:
    """Return the length of the longest common prefix."""
    length = min(len(one), len(other))
    differ = one[:length] != other[:length]
    return int(differ.argmax()) if differ.any() else length


def sort_into_rows(prompts: Sequence[PackablePrompt], begin: int, row_tokens: int) -> list[list[int]]:
    """Distribute prompts over rows: neighbours in sorted order, with at most ``row_tokens`` tokens in a row.

    The first ``begin`` tokens, which all prompts share, do not count. A longer prompt gets a row of its own.
    """
    by_text = sorted(range(len(prompts)), key=lambda index: prompts[index].tokens.astype(">i8").tobytes())
    rows: list[list[int]] = []
    taken = 0
    for index in by_text:
        tokens, tree = prompts[index]
        shared = count_common(prompts[rows[-1][-1]].tokens, tokens) if rows else begin
        if rows and taken + len(tokens) - shared + len(tree.tokens) <= row_tokens:
            rows[-1].append(index)
        else:
            rows.append([index])
            taken, shared = 0, begin
        taken += len(tokens) - shared + len(tree.tokens)
    return rows


def write_row(prompts: Sequence[PackablePrompt], begin: int = 0) -> PackedRow:
    """Create the row of some prompts, which are sorted by their tokens, without their first ``begin`` tokens.

    All prompts share these tokens, and none consists of them.
    """
    ends = np.zeros(sum(len(tokens) - begin + len(tree.tokens) for tokens, tree in prompts), dtype=np.int64)
    ids: list[Ids] = []
    positions: list[Ids] = []
    looks: list[Ids] = []
    before, path, count = NO_IDS, NO_IDS, 0  # path: the indices of the tokens of the prompt before, from begin on
    for tokens, tree in prompts:
        shared = max(count_common(before, tokens), begin)
        ends[path[shared - begin :]] = count  # nodes that are not on the path of this prompt are complete
        end = count + len(tokens) - shared
        nodes = np.arange(end, end + len(tree.tokens))
        ends[nodes] = end + np.asarray(tree.ends, dtype=np.int64)
        ids += [tokens[shared:], np.asarray(tree.tokens, dtype=np.int64)]
        positions += [np.arange(shared, len(tokens)), len(tokens) - 1 + np.asarray(tree.depths, dtype=np.int64)]
        path = np.concatenate([path[: shared - begin], np.arange(count, end)])
        looks += [path[-1:], nodes]
        before, count = tokens, end + len(nodes)
    ends[path] = count
    return PackedRow(np.concatenate(ids), np.concatenate(positions), ends[:count], np.concatenate(looks))
