"""What prompts have in common, read once, with its gradient.

Rows are short, so that attention stays cheap, and the prompts of many rows begin alike. Without a gradient the cache of
beginnings (:mod:`~formal_llm.llms.local.prefix_cache`) sees to that, from pass to pass. With one, the keys and values
belong to one graph: so what at least two prompts share, the trunk, is read first, and then each prompt only from where
it leaves the trunk. The gradient flows back through the keys and values that its tokens attended to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from formal_llm.llms.local.packing import common, sortable

if TYPE_CHECKING:
    import torch

    from formal_llm.llms.local.packing import Ids
    from formal_llm.llms.local.prefix_cache import Layers


@dataclass(frozen=True, eq=False)
class SharedBeginnings:
    """The beginnings that prompts share.

    Attributes:
        paths: the longest of them, sorted; each other one is the beginning of one of these.
        of: for each prompt the path that its shared beginning lies on; 0 where it shares nothing.
        known: for each prompt the length of its shared beginning.
    """

    paths: tuple[Ids, ...]
    of: tuple[int, ...]
    known: tuple[int, ...]


def shared_beginnings(prompts: Sequence[Ids]) -> SharedBeginnings:
    """What each prompt shares with any other one: with a neighbour, when they are sorted.

    A prompt's last token never counts, since the model is looked at there.

    Args:
        prompts: the tokens of distinct prompts, at least one each.
    """
    order = sorted(range(len(prompts)), key=lambda index: sortable(prompts[index]))
    alike = [0, *(common(prompts[a], prompts[b]) for a, b in pairwise(order)), 0]
    paths: list[Ids] = []
    of, known = [0] * len(prompts), [0] * len(prompts)
    for place, index in enumerate(order):
        tokens = prompts[index]
        known[index] = min(max(alike[place], alike[place + 1]), len(tokens) - 1)
        path = tokens[: known[index]]
        both = common(paths[-1], path) if paths else 0
        if paths and both == len(paths[-1]):
            paths[-1] = path  # goes on from the one before
        elif both < len(path):
            paths.append(path)
        of[index] = max(len(paths) - 1, 0)
    return SharedBeginnings(tuple(paths), tuple(of), tuple(known))


class Trunk:
    """Keys and values of tokens that were read with a gradient, by slot."""

    def __init__(self) -> None:
        self._parts: list[list[tuple[torch.Tensor, torch.Tensor]]] = []  # by layer
        self._tables: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._taken = 0

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len(self._parts)

    def add(self, layers: Layers) -> int:
        """Take what a pass has read.

        Args:
            layers: for each layer keys and values ``[rows, heads, tokens, size]``.

        Returns:
            The first slot; token ``t`` of row ``r`` has the slot ``first + r * tokens + t``.
        """
        first = self._taken
        if not self._parts:
            self._parts = [[] for _ in layers]
        for parts, (keys, values) in zip(self._parts, layers, strict=True):
            parts.append((keys.transpose(1, 2).flatten(0, 1), values.transpose(1, 2).flatten(0, 1)))
        self._taken += layers[0][0].shape[0] * layers[0][0].shape[2]
        self._tables = []
        return first

    def gather(self, layer: int, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values ``[rows, heads, tokens, size]`` at slots ``[rows, tokens]``."""
        import torch

        if not self._tables:
            self._tables = [
                (torch.cat([keys for keys, _ in parts]), torch.cat([values for _, values in parts]))
                for parts in self._parts
            ]
        keys, values = self._tables[layer]
        flat = slots.flatten().to(keys.device)

        def at(table: torch.Tensor) -> torch.Tensor:
            return table.index_select(0, flat).unflatten(0, slots.shape).transpose(1, 2)

        return at(keys), at(values)
