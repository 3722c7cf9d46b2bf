"""Keys and values of prompts that were read before, for those that begin alike.

What a decoder computes for a token depends on the tokens before it alone, so what was computed for a beginning holds
for every prompt with that beginning (Kwon et al. 2023, arXiv 2309.06180, share it by pages; Zheng et al. 2023, arXiv
2312.07104, by a radix tree). Here the prompts lie sorted, so the longest known beginning of a new one is shared with
one of its two neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from formal_llm.llms.local.packing import common, sortable

if TYPE_CHECKING:
    import torch

    from formal_llm.llms.local.packing import Ids

    #: For each layer keys and values.
    Layers: TypeAlias = Sequence[tuple[torch.Tensor, torch.Tensor]]

_FIRST = 1_024


class PrefixCache:
    """Keys and values by token, in one growing table for each layer.

    Args:
        max_bytes: what the tables may take. Where they would take more, the prompts that were not used for the longest
            time are forgotten.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._tables: list[tuple[torch.Tensor, torch.Tensor]] = []  # each [slots, heads, size of a head]
        self._texts: list[bytes] = []
        self._slots: dict[bytes, Ids] = {}
        self._used: dict[bytes, int] = {}
        self._taken = 0
        self._time = 0

    def __len__(self) -> int:
        """How many tokens are kept."""
        return self._taken

    @property
    def bytes_per_token(self) -> int:
        """What one token takes; 0 before the first is kept."""
        return sum(t.element_size() * t.shape[1] * t.shape[2] for pair in self._tables for t in pair)

    def clear(self) -> None:
        """Forget everything: the weights have changed."""
        self._tables.clear()
        self._texts.clear()
        self._slots.clear()
        self._used.clear()
        self._taken = 0

    def tick(self) -> None:
        """A new batch begins; what it uses counts as used now."""
        self._time += 1

    def find(self, tokens: Ids) -> Ids:
        """The slots of the longest beginning of ``tokens`` that is kept."""
        text = sortable(tokens)
        place = bisect_left(self._texts, text)
        best, found = 0, None
        for neighbour in self._texts[max(place - 1, 0) : place + 1]:
            slots = self._slots[neighbour]
            length = common(np.frombuffer(neighbour, dtype=">i8"), tokens)
            if length > best:
                best, found = length, neighbour
                kept = slots[:length]
        if found is None:
            return np.zeros(0, dtype=np.int64)
        self._used[found] = self._time
        return kept

    def gather(self, layer: int, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values ``[rows, heads, tokens, size]`` at slots ``[rows, tokens]``."""
        keys, values = self._tables[layer]
        slots = slots.to(keys.device)
        return keys[slots].transpose(1, 2), values[slots].transpose(1, 2)

    @property
    def layers(self) -> int:
        """How many layers there are tables for."""
        return len(self._tables)

    def make_room(self, many: int) -> None:
        """Forget prompts, if that is what it takes to keep ``many`` more tokens. Slots found before are void then."""
        most = self._most
        if self._taken + many > most:
            self._forget(min(most // 2, most - many))

    def take(self, many: int, layers: Layers) -> Ids | None:
        """Slots for new tokens; None where they do not fit.

        Args:
            many: how many.
            layers: keys and values of the shape ``[rows, heads, tokens, size]``, to make tables like.
        """
        if not self._tables:
            self._tables = [
                (k.new_empty(0, k.shape[1], k.shape[3]), v.new_empty(0, v.shape[1], v.shape[3])) for k, v in layers
            ]
        if self._taken + many > self._most:
            return None
        size = len(self._tables[0][0])
        if self._taken + many > size:
            larger = max(min(max(2 * size, _FIRST), self._most), self._taken + many)
            self._tables = [
                (_enlarged(keys, larger, self._taken), _enlarged(values, larger, self._taken))
                for keys, values in self._tables
            ]
        slots = np.arange(self._taken, self._taken + many)
        self._taken += many
        return slots

    @property
    def _most(self) -> int:
        """How many tokens may be kept."""
        return self.max_bytes // self.bytes_per_token if self._tables else self.max_bytes

    def fill(self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Keep keys and values ``[tokens, heads, size]`` at their slots."""
        table = self._tables[layer]
        place = slots.to(table[0].device)
        table[0][place] = keys
        table[1][place] = values

    def add(self, tokens: Ids, slots: Ids) -> None:
        """Remember a prompt whose tokens all have their slots."""
        text = sortable(tokens)
        if text not in self._slots:
            insort(self._texts, text)
        self._slots[text] = slots
        self._used[text] = self._time

    def _forget(self, keep: int) -> None:
        """Keep the prompts used last, as many as have at most ``keep`` tokens together."""
        import torch

        kept: list[bytes] = []
        marked = np.zeros(self._taken, dtype=np.bool_)
        count = 0
        for text in sorted(self._texts, key=lambda text: -self._used[text]):
            own = self._slots[text]
            count += int((~marked[own]).sum())
            if count > keep:
                break
            marked[own] = True
            kept.append(text)
        slots = np.flatnonzero(marked)
        moved = np.zeros(len(marked), dtype=np.int64)
        moved[slots] = np.arange(len(slots))
        old = torch.from_numpy(slots)
        self._tables = [(_compacted(keys, old), _compacted(values, old)) for keys, values in self._tables]
        self._texts = sorted(kept)
        self._slots = {text: moved[self._slots[text]] for text in kept}
        self._used = {text: self._used[text] for text in kept}
        self._taken = len(slots)


def _enlarged(table: torch.Tensor, size: int, taken: int) -> torch.Tensor:
    """A larger table with what is taken of a smaller one; memory that is not used yet is not touched."""
    larger = table.new_empty(size, *table.shape[1:])
    larger[:taken] = table[:taken]
    return larger


def _compacted(table: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    table[: len(slots)] = table[slots.to(table.device)]
    return table
