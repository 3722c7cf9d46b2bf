"""The prefix tree of the answers to a question, as tokens.

The answers ``1``, ``2`` ... ``12`` are written by a model as one or more tokens each, and then as what ends an answer.
What answers have in common at their beginning has to be looked at once: this is the tree of those beginnings. The
probability of an answer is the product of the probabilities of its tokens, each given those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

#: The place at the end of the prompt, before any token of an answer.
ROOT = -1


@dataclass(frozen=True)
class AnswerTree:
    """Answers as paths in a tree of tokens.

    Inner nodes are the beginnings of answers that continue; they are numbered in depth-first order, so that the nodes
    below node ``i`` are those from ``i + 1`` up to ``ends[i]``, which is not one of them.

    Attributes:
        tokens: the last token of each inner node.
        parents: the node before each inner node; :data:`ROOT` at the end of the prompt.
        depths: how many tokens of an answer each inner node has; 1 for the first.
        ends: for each inner node the number after its last descendant.
        paths: for each answer its steps: the node (or :data:`ROOT`) at which the model is looked at, and the token.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    ends: tuple[int, ...]
    paths: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, answers: Sequence[Sequence[int]]) -> AnswerTree:
        """The tree of some answers.

        Args:
            answers: for each its tokens, with those that end it.

        Raises:
            ValueError: an answer has no token, is given twice, or is the beginning of another one.
        """
        leaves = {tuple(answer) for answer in answers}
        if len(leaves) < len(answers):
            raise ValueError("two answers have the same tokens")
        inner = {answer[:length] for answer in leaves for length in range(1, len(answer))}
        if () in leaves or inner & leaves:
            raise ValueError("an answer is empty, or the beginning of another one")
        order = sorted(inner)  # a beginning sorts before what continues it: depth first
        number = {prefix: index for index, prefix in enumerate(order)}
        number[()] = ROOT
        ends = list(range(1, len(order) + 1))
        for index in range(len(order) - 1, -1, -1):
            parent = number[order[index][:-1]]
            if parent != ROOT:
                ends[parent] = max(ends[parent], ends[index])
        return cls(
            tokens=tuple(prefix[-1] for prefix in order),
            parents=tuple(number[prefix[:-1]] for prefix in order),
            depths=tuple(len(prefix) for prefix in order),
            ends=tuple(ends),
            paths=tuple(
                tuple((number[tuple(answer[:place])], answer[place]) for place in range(len(answer)))
                for answer in answers
            ),
        )

    @cached_property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """The longest beginnings, as nodes: every inner node is in one of them, for models that read rows of tokens."""
        starts = set(self.parents)
        found = []
        for node in range(len(self.tokens)):
            if node not in starts:
                row = [node]
                while (parent := self.parents[row[-1]]) != ROOT:
                    row.append(parent)
                found.append(tuple(reversed(row)))
        return tuple(found)
