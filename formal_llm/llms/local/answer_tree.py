"""The prefix tree of the answers to a question, as tokens.

A model writes each of the answers ``1``, ``2`` ... ``12`` as one or more tokens, followed by the token that ends it.
Prefixes that answers share only need to be evaluated once; this is the tree of these prefixes. The probability of an
answer is the product of the probabilities of its tokens, each given those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

#: The node at the end of the prompt, before any token of an answer.
ROOT = -1


@dataclass(frozen=True)
class AnswerTree:
    """Answers as paths in a tree of tokens.

    The inner nodes are the proper prefixes of answers, numbered in depth-first order, so that the nodes below node
    ``i`` are those from ``i + 1`` up to, but without, ``ends[i]``.

    Attributes:
        tokens: the last token of each inner node.
        parents: the node before each inner node; :data:`ROOT` at the end of the prompt.
        depths: the number of an answer's tokens up to each inner node; 1 for the first.
        ends: for each inner node the number after its last descendant.
        paths: for each answer its steps: the node (or :data:`ROOT`) whose logits are read, and the token.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    ends: tuple[int, ...]
    paths: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, answers: Sequence[Sequence[int]]) -> AnswerTree:
        """Create the tree of some answers.

        Args:
            answers: the tokens of each answer, including those that end it.

        Raises:
            ValueError: an answer has no token, occurs twice, or is a prefix of another one.
        """
        leaves = {tuple(answer) for answer in answers}
        if len(leaves) < len(answers):
            raise ValueError("two answers have the same tokens")
        inner = {answer[:length] for answer in leaves for length in range(1, len(answer))}
        if () in leaves or inner & leaves:
            raise ValueError("an answer is empty, or the beginning of another one")
        order = sorted(inner)  # a prefix sorts before its continuations, which is depth-first order
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
        """The longest prefixes, as nodes: they contain every inner node, for models that read rows of tokens."""
        starts = set(self.parents)
        found = []
        for node in range(len(self.tokens)):
            if node not in starts:
                row = [node]
                while (parent := self.parents[row[-1]]) != ROOT:
                    row.append(parent)
                found.append(tuple(reversed(row)))
        return tuple(found)
