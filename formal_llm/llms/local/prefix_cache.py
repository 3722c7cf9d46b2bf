"""A cache of the keys and values of common prefixes, which are read once.

What a decoder computes for a token depends only on the tokens before it, so the values of a prefix are valid for all
prompts with that prefix (Kwon et al. 2023, arXiv 2309.06180, share them by pages; Zheng et al. 2023, arXiv 2312.07104,
by a radix tree). Here the prompts are sorted, so the longest known prefix of a new one is shared with one of its two
neighbours.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from formal_llm.llms.local.packing import NO_IDS, common, slots_along, sortable

if TYPE_CHECKING:
    import torch

    from formal_llm.llms.local.packing import Ids, PackablePrompt, PackedRow

    #: For each layer keys and values ``[rows, heads, tokens, size]``.
    Layers: TypeAlias = Sequence[tuple[torch.Tensor, torch.Tensor]]

_FIRST = 1_024


@dataclass(frozen=True, eq=False)
class Kept:
    """The storage of what a pass has read: token ``columns[i]`` of row ``lines[i]`` has the slot ``slots[i]``."""

    slots: Ids
    lines: Ids
    columns: Ids

    def of(self, read: torch.Tensor) -> torch.Tensor:
        """Select the stored part ``[slots, heads, size]`` of ``read``, ``[rows, heads, tokens, size]``."""
        import torch

        return read[torch.from_numpy(self.lines).to(read.device), :, torch.from_numpy(self.columns).to(read.device)]

    def spread(self, table: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """Return a table's values at the slots, in a tensor like ``like``; 0 in places that were not stored."""
        import torch

        found = torch.zeros_like(like)
        lines, columns = (torch.from_numpy(part).to(like.device) for part in (self.lines, self.columns))
        found[lines, :, columns] = table[torch.from_numpy(self.slots).to(table.device)].to(like.dtype)
        return found


class PrefixCache:
    """Keys and values by token, in one growing table for each layer.

    Args:
        max_bytes: the maximum size of the tables. If they would exceed it, the least recently used prompts are
            forgotten.
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
        """Return the number of tokens that are kept."""
        return self._taken

    @property
    def bytes_per_token(self) -> int:
        """The size of one token in bytes; 0 before the first one is kept."""
        return sum(t.element_size() * t.shape[1] * t.shape[2] for pair in self._tables for t in pair)

    def clear(self) -> None:
        """Forget everything, since the weights have changed."""
        self._tables.clear()
        self._texts.clear()
        self._slots.clear()
        self._used.clear()
        self._taken = 0

    def tick(self) -> None:
        """Begin a new batch, whose prompts count as the most recently used ones."""
        self._time += 1

    def find(self, tokens: Ids) -> Ids:
        """Return the slots of the longest known prefix of ``tokens``."""
        place = bisect_left(self._texts, sortable(tokens))
        best, found = 0, b""
        for neighbour in self._texts[max(place - 1, 0) : place + 1]:
            length = common(np.frombuffer(neighbour, dtype=">i8"), tokens)
            if length > best:
                best, found = length, neighbour
        if not found:
            return NO_IDS
        self._used[found] = self._time
        return self._slots[found][:best]

    def gather(self, layer: int, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values ``[rows, heads, tokens, size]`` at slots ``[rows, tokens]``."""
        keys, values = self._tables[layer]
        slots = slots.to(keys.device)
        return keys[slots].transpose(1, 2), values[slots].transpose(1, 2)

    @property
    def layers(self) -> int:
        """The number of layers with tables."""
        return len(self._tables)

    def make_room(self, many: int) -> None:
        """Forget prompts if necessary to keep ``many`` more tokens, which makes slots found earlier invalid."""
        most = self._most
        if self._taken + many > most:
            self._forget_others(min(most // 2, most - many))

    def keep(
        self, rows: Sequence[PackedRow], prompts: Sequence[Sequence[PackablePrompt]], layers: Layers
    ) -> Kept | None:
        """Keep what a pass has read of the prompts in its rows; return None if it does not fit.

        Args:
            rows: the rows that were read.
            prompts: the prompts of each row.
            layers: the keys and values of each layer; the first tables are created like them.
        """
        import torch

        counts = [sum(len(own) for own in row.own) for row in rows]
        slots = self.take(sum(counts), layers)
        if slots is None:
            return None
        columns = np.concatenate([own for row in rows for own in row.own])
        kept = Kept(slots, np.repeat(np.arange(len(rows)), counts), columns)
        with torch.no_grad():
            for layer, (keys, values) in enumerate(layers):
                self.fill(layer, torch.from_numpy(slots), kept.of(keys), kept.of(values))
        begin = 0
        for row, members, count in zip(rows, prompts, counts, strict=True):
            own = np.cumsum([len(own) for own in row.own])[:-1]
            fresh = np.split(slots[begin : begin + count], own)
            for member, path in zip(members, slots_along(members, fresh), strict=True):
                self.add(member.tokens, path)
            begin += count
        return kept

    def take(self, many: int, layers: Layers) -> Ids | None:
        """Return slots for ``many`` new tokens, or None if they do not fit; the first tables are like ``layers``."""
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
                (_enlarge_table(k, larger, self._taken), _enlarge_table(v, larger, self._taken))
                for k, v in self._tables
            ]
        slots = np.arange(self._taken, self._taken + many)
        self._taken += many
        return slots

    @property
    def _most(self) -> int:
        """The maximum number of tokens."""
        return self.max_bytes // self.bytes_per_token if self._tables else self.max_bytes

    def fill(self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Store keys and values ``[tokens, heads, size]`` at their slots."""
        table = self._tables[layer]
        place = slots.to(table[0].device)
        table[0][place] = keys
        table[1][place] = values

    def add(self, tokens: Ids, slots: Ids) -> None:
        """Remember a prompt whose tokens all have slots."""
        text = sortable(tokens)
        if text not in self._slots:
            insort(self._texts, text)
        self._slots[text] = slots
        self._used[text] = self._time

    def _forget_others(self, keep: int) -> None:
        """Keep only the most recently used prompts that have at most ``keep`` tokens together."""
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
        self._tables = [(_compact_table(keys, old), _compact_table(values, old)) for keys, values in self._tables]
        self._texts = sorted(kept)
        self._slots = {text: moved[self._slots[text]] for text in kept}
        self._used = {text: self._used[text] for text in kept}
        self._taken = len(slots)


def _enlarge_table(table: torch.Tensor, size: int, taken: int) -> torch.Tensor:
    """Create a larger table with the used part of a smaller one, without touching unused memory."""
    larger = table.new_empty(size, *table.shape[1:])
    larger[:taken] = table[:taken]
    return larger


def _compact_table(table: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
    table[: len(slots)] = table[slots.to(table.device)]
    return table
