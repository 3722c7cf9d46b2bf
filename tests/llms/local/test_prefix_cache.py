"""What is kept is what a model computed; what prompts share is read once, with the gradient that is without that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.prefix_cache import PrefixCache, Trunk, shared_beginnings
from formal_llm.llms.local.text_scorer import text_scorer
from tests import tiny_models
from tests.llms.local import token_by_token

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


@given(st.lists(TOKENS, min_size=1, max_size=30))
def test_with_room_everything_is_found_again(texts: list[list[int]]) -> None:
    cache = PrefixCache(1 << 20)
    for text in texts:
        assert put(cache, text)
    for text in texts:
        slots = cache.find(np.array(text, dtype=np.int64))
        assert len(slots) == len(text)
        check(cache, text, slots)
    beginnings = {tuple(text[: end + 1]) for text in texts for end in range(len(text))}
    assert len(cache) == len(beginnings)  # what is shared is kept once
    assert cache.bytes_per_token == BYTES


def test_what_was_used_last_is_kept() -> None:
    cache = PrefixCache(12 * BYTES)
    for text in ([0] * 4, [1] * 4, [2] * 4):
        assert put(cache, text)
    cache.tick()
    cache.find(np.array([0, 0, 0]))
    assert put(cache, [3] * 4)
    assert len(cache.find(np.array([0] * 4))) == 4
    assert len(cache.find(np.array([1] * 4))) == 0
    assert len(cache.find(np.array([3] * 4))) == 4


def test_a_text_longer_than_the_memory_is_not_kept() -> None:
    cache = PrefixCache(3 * BYTES)
    assert put(cache, [1, 1])
    assert not put(cache, [0, 1, 2, 0])
    assert len(cache.find(np.array([0, 1, 2, 0]))) == 0


def test_nothing_is_found_in_an_empty_cache() -> None:
    cache = PrefixCache(1_000)
    assert len(cache.find(np.array([1, 2]))) == 0
    assert cache.bytes_per_token == cache.layers == 0


TEXTS = st.lists(
    st.lists(st.integers(0, 2), min_size=1, max_size=7).map(tuple), min_size=1, max_size=12, unique=True
)  # fmt: skip


def alike(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                min(len(one), len(other)))  # fmt: skip


@given(TEXTS)
def test_each_prompt_shares_its_longest_beginning(texts: list[tuple[int, ...]]) -> None:
    shared = shared_beginnings([np.array(text, dtype=np.int64) for text in texts])
    for number, text in enumerate(texts):
        longest = max((alike(text, other) for place, other in enumerate(texts) if place != number), default=0)
        assert shared.known[number] == min(longest, len(text) - 1)
        if shared.known[number]:
            assert tuple(shared.paths[shared.of[number]][: shared.known[number]]) == text[: shared.known[number]]
    paths = [tuple(path) for path in shared.paths]
    assert paths == sorted(paths) and all(paths)
    assert not any(one == other[: len(one)] for one in paths for other in paths if one is not other)


def test_keys_and_values_come_back_by_their_slots() -> None:
    trunk = Trunk()
    first, second = (
        [(torch.randn(rows, 2, tokens, 4), torch.randn(rows, 2, tokens, 3)) for _ in range(2)]
        for rows, tokens in ((1, 5), (3, 2))
    )
    assert (trunk.add(first), trunk.add(second), trunk.layers) == (0, 5, 2)
    keys, values = trunk.gather(1, torch.tensor([[4, 5], [10, 0]]))
    assert keys.shape == (2, 2, 2, 4) and values.shape == (2, 2, 2, 3)
    assert torch.equal(keys[0, :, 0], first[1][0][0, :, 4]) and torch.equal(keys[0, :, 1], second[1][0][0, :, 0])
    assert torch.equal(values[1, :, 0], second[1][1][2, :, 1]) and torch.equal(values[1, :, 1], first[1][1][0, :, 0])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """For each pass the tokens that it reads, and whether it has a past."""
    found = []
    read = CausalScorer._read_rows

    def noted(self: CausalScorer, rows: Any, past: Any, *, keep: bool) -> Any:
        found.append((sum(len(row.ids) for row in rows), past is not None))
        return read(self, rows, past, keep=keep)

    monkeypatch.setattr(CausalScorer, "_read_rows", noted)
    return found


def chain(length: int) -> list[Any]:
    """Questions that grow from one to the next, some at each length."""
    return [
        token_by_token.question(count, "restore " + "the image " * step)
        for step in range(5, 5 + length) for count in (3, 5, 9, 12)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen3"])
@pytest.mark.parametrize("batch_tokens", [150, 100_000])
def test_gradients_with_a_trunk(
    kind: str, batch_tokens: int, spoken: Callable[..., Any], reads: list[tuple[int, bool]]
) -> None:
    model = tiny_models.causal(kind)
    asked = chain(4)
    torch.manual_seed(0)
    weights = [torch.randn(len(question.options)) for question in asked]

    def gradients(**settings: Any) -> tuple[Any, dict[str, Any]]:
        model.zero_grad()
        scorer = text_scorer(model, spoken(), packing="on", **settings)
        reads.clear()
        table = scorer.log_probabilities(asked)
        sum((table[row, : len(own)] * own).sum() for row, own in enumerate(weights)).backward()
        return table.detach(), {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}

    # One row for everything has every token once, so there is nothing to save.
    plain_table, plain = gradients(row_tokens=100_000, batch_tokens=100_000)
    assert [past for _, past in reads] == [False]
    table, found = gradients(row_tokens=60, batch_tokens=batch_tokens)
    assert not reads[0][1] and reads[-1][1]
    tokens = sum(count for count, _ in reads)
    with torch.no_grad():
        alone = sum(len(text_scorer(model, spoken()).renderer.prompt(question).tokens) for question in asked)
    assert tokens < 0.7 * alone
    legal = plain_table > -torch.inf
    assert (table - plain_table)[legal].abs().max() < 1e-5
    scale = max(float(gradient.abs().max()) for gradient in plain.values())
    assert plain.keys() == found.keys()
    for name, gradient in plain.items():
        assert float((found[name] - gradient).abs().max()) <= 1e-4 * scale, name


def test_no_trunk_where_activations_are_computed_twice(
    spoken: Callable[..., Any], reads: list[tuple[int, bool]]
) -> None:
    model = tiny_models.causal()
    model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    scorer = text_scorer(model, spoken(), packing="on", row_tokens=60)
    scorer.log_probabilities(chain(3))
    assert not any(past for _, past in reads)


def test_without_a_gradient_there_is_the_cache_alone(spoken: Callable[..., Any], reads: list[tuple[int, bool]]) -> None:
    scorer = text_scorer(tiny_models.causal(), spoken(), packing="on", row_tokens=60, cache_bytes=0)
    with torch.no_grad():
        scorer.log_probabilities(chain(3))
    assert not any(past for _, past in reads)
