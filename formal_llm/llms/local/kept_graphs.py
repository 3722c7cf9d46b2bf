"""The graphs of passes that were run while plans were made, kept so that the gradient needs no second pass.

A rollout reads questions pass by pass, and each pass attends to keys and values of earlier ones. These enter a pass as
constants, so that its graph ends there. The gradient is computed by going through the passes backwards: when a pass is
reached, all later ones have added their gradients of its keys and values, and its graph can be freed. The sum is that
of one graph through all passes (reverse accumulation), and only one pass is computed at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from formal_llm.llms.local.prefix_cache import PrefixCache

if TYPE_CHECKING:
    import torch

    from formal_llm.llms.local.packing import PackablePrompt, PackedRow
    from formal_llm.llms.local.prefix_cache import Kept, Layers


@dataclass(eq=False)
class _Pass:
    """A pass that was read.

    Attributes:
        past: keys and values that it attended to, as constants: the layer, their slots ``[rows, tokens]``, and both.
        layers, kept: its own keys and values, and where they are stored.
        values: the log-probabilities of answers, with the graph.
        leaves: the same as constants, which collect gradients.
    """

    past: list[tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]] = field(default_factory=list)
    layers: Layers = ()
    kept: Kept | None = None
    values: Sequence[torch.Tensor] = ()
    leaves: Sequence[torch.Tensor] = ()


class KeptGraphs(PrefixCache):
    """Passes with their graphs, and their keys and values.

    Args:
        most: the maximum size of the graphs in bytes, which is counted, not estimated.
        parameters: the weights, to which graphs only refer.

    Attributes:
        graph_bytes: the size of the graphs in bytes.
        known: the values that were read, by the reader's keys; each is a leaf.
    """

    def __init__(self, most: int, parameters: Sequence[torch.Tensor]) -> None:
        super().__init__(sys.maxsize)
        self.most = most
        self.graph_bytes = 0
        self.known: dict[Hashable, torch.Tensor] = {}
        self._passes: list[_Pass] = []
        self._seen: set[int] = set()  # memory that has been counted for the pass
        self._weights = {weight.untyped_storage().data_ptr() for weight in parameters}

    @property
    def leaves(self) -> list[torch.Tensor]:
        """The log-probabilities of all answers that were read, as constants that collect gradients."""
        return [leaf for one in self._passes for leaf in one.leaves]

    def begin(self, tokens: int) -> bool:
        """Begin a pass; return False if its tokens would not fit, judging by the size of the earlier ones."""
        if len(self) and self.graph_bytes * (1 + tokens / len(self)) > self.most:
            return False
        self._passes.append(_Pass())
        self._seen = set(self._weights)
        return True

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Record the graph of the pass that is read in the block, and count its bytes."""
        import torch

        def count(saved: torch.Tensor) -> torch.Tensor:
            storage = saved.untyped_storage()
            if storage.data_ptr() not in self._seen:
                self._seen.add(storage.data_ptr())
                self.graph_bytes += storage.nbytes()
            return saved.detach()

        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(count, lambda kept: kept):
            yield

    def gather(self, layer: int, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Like the cache's method, but as constants that collect gradients."""
        keys, values = (part.detach().requires_grad_() for part in super().gather(layer, slots))
        self._passes[-1].past.append((layer, slots, keys, values))
        self.graph_bytes += keys.nbytes + values.nbytes
        return keys, values

    def keep(
        self, rows: Sequence[PackedRow], prompts: Sequence[Sequence[PackablePrompt]], layers: Layers
    ) -> Kept | None:
        """Like the cache's method; the graph of the pass is kept as well."""
        one = self._passes[-1]
        one.layers, one.kept = layers, super().keep(rows, prompts, layers)
        return one.kept

    def answered(self, values: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Record the log-probabilities of the pass; return them as leaves that collect gradients."""
        one = self._passes[-1]
        one.values, one.leaves = values, [value.detach().requires_grad_() for value in values]
        return list(one.leaves)

    def make_room(self, many: int) -> None:
        """Do nothing, since graphs refer to everything that is kept."""

    def backward(self) -> None:
        """Add the gradients of all leaves to those of the weights; afterwards graphs and leaves are unusable."""
        import torch

        wanted = [(torch.zeros_like(keys), torch.zeros_like(values)) for keys, values in self._tables]
        touched = np.zeros(len(self), dtype=np.bool_)
        while self._passes:
            one = self._passes.pop()
            asked = [place for place, leaf in enumerate(one.leaves) if leaf.grad is not None]
            roots, gradients = [one.values[place] for place in asked], [one.leaves[place].grad for place in asked]
            if one.kept is not None and touched[one.kept.slots].any():
                for pair, tables in zip(one.layers, wanted, strict=True):
                    for tensor, table in zip(pair, tables, strict=True):
                        if tensor.requires_grad:  # false for the keys of the first layer if no adapter changes them
                            roots.append(tensor)
                            gradients.append(one.kept.spread(table, tensor))
            if not roots:
                continue
            torch.autograd.backward(roots, gradients)
            for layer, slots, *read in one.past:
                places = slots.flatten().to(read[0].device)
                touched[slots.flatten().cpu().numpy()] = True
                for tensor, table in zip(read, wanted[layer], strict=True):
                    if tensor.grad is not None:
                        table.index_add_(0, places, tensor.grad.transpose(1, 2).flatten(0, 1).to(table.dtype))
        self.clear()

    def clear(self) -> None:
        """Forget everything; leaves are unusable afterwards."""
        super().clear()
        self.known.clear()
        self._passes.clear()
        self.graph_bytes = 0
