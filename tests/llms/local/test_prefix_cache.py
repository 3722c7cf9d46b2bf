"""What is kept is what a model computed; what prompts share is read once, with the gradient that is without that."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from formal_llm.llms.local.prefix_cache import PrefixCache

#: Keys of two layers, one head of three numbers, and values of two: five numbers of four bytes for each layer.
BYTES = 2 * (3 + 2) * 4
TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=7)


def worth(beginning: tuple[int, ...], layer: int, size: int) -> list[float]:
    """What a model would compute for the last token of a text: it depends on the whole text and on nothing else."""
    return [float(hash((*beginning, layer, place)) % 10_007) for place in range(size)]


def tensors(texts: list[list[tuple[int, ...]]]) -> list[tuple[Any, Any]]:
    """For each layer keys and values ``[rows, heads, tokens, size]`` for rows of beginnings."""
    return [
        tuple(
            torch.tensor([[[worth(one, layer, size) for one in row]] for row in texts]).reshape(len(texts), 1, -1, size)
            for size in (3, 2)
        )
        for layer in range(2)
    ]


def put(cache: PrefixCache, tokens: list[int]) -> bool:
    """Do as a scorer does with one prompt: look up, make room, compute the rest, keep it; whether it was kept."""
    ids = np.array(tokens, dtype=np.int64)
    cache.tick()
    cache.make_room(len(ids))
    known = cache.find(ids)
    new = [tuple(tokens[: end + 1]) for end in range(len(known), len(tokens))]
    layers = tensors([new])
    slots = cache.take(len(new), layers)
    if slots is None:
        return False
    for layer, (keys, values) in enumerate(layers):
        cache.fill(layer, torch.from_numpy(slots), keys[0].transpose(0, 1), values[0].transpose(0, 1))
    cache.add(ids, np.concatenate([known, slots]))
    return True


def check(cache: PrefixCache, tokens: list[int], slots: Any) -> None:
    """The slots hold what was computed for these beginnings."""
    for layer in range(cache.layers):
        keys, values = cache.gather(layer, torch.from_numpy(slots)[None])
        for end in range(len(slots)):
            beginning = tuple(tokens[: end + 1])
            assert keys[0, 0, end].tolist() == worth(beginning, layer, 3)
            assert values[0, 0, end].tolist() == worth(beginning, layer, 2)


def longest(known: set[tuple[int, ...]], tokens: list[int]) -> int:
    """The length of the longest beginning that one of the known texts has too: by looking at all of them."""
    best = 0
    for text in known:
        length = 0
        while length < min(len(text), len(tokens)) and text[length] == tokens[length]:
            length += 1
        best = max(best, length)
    return best


class Caching(RuleBasedStateMachine):
    """Many texts put in and looked up, with little memory."""

    @initialize(tokens=st.integers(4, 40))
    def start(self, tokens: int) -> None:
        self.most = tokens
        self.cache = PrefixCache(tokens * BYTES)
        self.known: set[tuple[int, ...]] = set()

    @rule(tokens=TOKENS)
    def put(self, tokens: list[int]) -> None:
        kept = put(self.cache, tokens)
        remembered = {tuple(np.frombuffer(text, dtype=">i8").tolist()) for text in self.cache._texts}
        assert remembered <= self.known | {tuple(tokens)}
        assert kept is (len(tokens) <= self.most or tuple(tokens) in remembered)
        assert not kept or tuple(tokens) in remembered
        self.known = remembered

    @rule(tokens=TOKENS)
    def find(self, tokens: list[int]) -> None:
        slots = self.cache.find(np.array(tokens, dtype=np.int64))
        assert len(slots) == longest(self.known, tokens)
        check(self.cache, tokens, slots)

    @rule()
    def forget(self) -> None:
        self.cache.clear()
        self.known = set()
        assert len(self.cache) == 0

    @invariant()
    def bounded(self) -> None:
        if hasattr(self, "cache"):
            held = sum(table.numel() * 4 for pair in self.cache._tables for table in pair)
            assert held <= self.cache.max_bytes
            assert len(self.cache) <= self.most


TestCaching = Caching.TestCase
