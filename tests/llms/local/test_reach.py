"""How long packed prompts may be, over many families: what is read must be what each text alone gives."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.reach import declared_window, why_not_packed
from formal_llm.llms.local.rendering import Prompted
from formal_llm.llms.local.text_scorer import text_scorer
from tests import tiny_models
from tests.llms.local import families

TREE = AnswerTree.of([[5, 2], [6, 7, 2], [6, 2]])
#: In the place of a renderer: these tests make prompts by themselves.
NO_RENDERER: Any = SimpleNamespace(tokenizer=None, longest=512)


def prompts(*lengths: int) -> list[Prompted]:
    """For each length two prompts that have their first half in common, also with those of other lengths."""
    generator = torch.Generator().manual_seed(max(lengths))
    text = torch.randint(10, 190, (2 * max(lengths),), generator=generator).tolist()
    made = []
    for length in lengths:
        half = length // 2
        made += [(*text[:half], *text[start : start + length - half]) for start in (half, max(lengths) + half)]
    return [Prompted(tokens, TREE) for tokens in dict.fromkeys(made)]


def scores(model: Any, prompt: Prompted) -> torch.Tensor:
    """The log-probabilities of the answers, each text read by itself, nothing of ours in it."""
    sums = []
    for answer in ((5, 2), (6, 7, 2), (6, 2)):
        ids = [*prompt.tokens, *answer]
        logs = torch.log_softmax(model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float(), dim=-1)
        sums.append(sum(logs[place - 1, ids[place]] for place in range(len(prompt.tokens), len(ids))))
    return torch.stack(sums)  # type: ignore[arg-type]


def gradient(model: Any, values: list[torch.Tensor]) -> torch.Tensor:
    total = torch.stack([value[0] - 0.3 * value[1] for value in values]).sum()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    return torch.cat([torch.zeros(1) if one is None else one.flatten() for one in found])


def check(scorer: CausalScorer, asked: list[Prompted]) -> None:
    """What the scorer gives is what each text alone gives: without a cache, with one, and with the gradient."""
    model = scorer.model
    wanted = [scores(model, prompt) for prompt in asked]
    slope = gradient(model, wanted)
    with torch.no_grad():
        for _ in range(2):  # the second time with what the first one kept
            for found, value in zip(scorer.score(asked), wanted, strict=True):
                assert torch.allclose(found, value, atol=2e-4)
    packed = gradient(model, scorer.score(asked))
    assert float((packed - slope).norm() / slope.norm()) < 1e-4
    with scorer.keeping_graphs(1 << 40):
        with torch.no_grad():
            read = [scorer.score([prompt])[0] for prompt in asked]
        kept = [place for place, value in enumerate(read) if value.requires_grad]  # those in packed rows
        if kept:
            torch.stack([read[place][0] - 0.3 * read[place][1] for place in kept]).sum().backward()
            scorer.settle()
            if len(kept) < len(asked):
                slope = gradient(model, [scores(model, asked[place]) for place in kept])
            told = [p.grad for p in model.parameters() if p.requires_grad]
            found = torch.cat([torch.zeros(1) if one is None else one.flatten() for one in told])
            model.zero_grad()
            assert float((found - slope).norm() / slope.norm()) < 1e-4
    lengths = [len(prompt.tokens) + max(prompt.tree.depths) for prompt in asked]
    assert kept == [place for place, length in enumerate(lengths) if scorer.packs and length <= (scorer.window or 512)]


@pytest.mark.parametrize("kind", families.WINDOWED)
def test_no_text_is_longer_than_a_declared_window(kind: str) -> None:
    model = families.decoder(kind, families.WINDOWED[kind])
    scorer = CausalScorer(model, NO_RENDERER)
    assert scorer.packs
    assert scorer.window == families.WINDOW
    check(scorer, prompts(9, 20) if kind in families.BY_CONTENT else prompts(9, 20, 26, 70))


@pytest.mark.parametrize("kind", families.PLAIN)
def test_without_a_window_all_is_packed(kind: str) -> None:
    model = families.decoder(kind, families.PLAIN[kind])
    scorer = CausalScorer(model, NO_RENDERER)
    assert scorer.packs
    assert scorer.window is None
    check(scorer, prompts(9, 26, 70))


@pytest.mark.parametrize("kind", families.ALONE)
def test_what_cannot_be_packed_is_read_alone(kind: str) -> None:
    model = families.decoder(kind, families.ALONE[kind])
    with pytest.warns(UserWarning, match="reads each prompt by itself"):
        scorer = CausalScorer(model, NO_RENDERER)
    assert not scorer.packs
    check(scorer, prompts(9, 20) if kind in families.BY_CONTENT else prompts(9, 26, 70))


def test_gpt_neo_beyond_its_window_as_it_comes() -> None:
    """With the window that its checkpoints have, 256."""
    more = {"num_layers": 2, "attention_types": [[["global", "local"], 1]]}
    model = families.decoder("gpt_neo", more)
    assert declared_window(model.config) == 256
    with pytest.warns(UserWarning, match="reads each prompt by itself"):
        scorer = CausalScorer(model, NO_RENDERER)
    check(scorer, prompts(200, 300))


@pytest.mark.parametrize(
    ("told", "window"),
    [
        ({}, None),
        ({"sliding_window": None, "use_sliding_window": False, "max_window_layers": 2}, None),
        ({"num_local_experts": 8, "local_layer_ids": [1, 2], "topk_group": 4}, None),
        ({"sliding_window": 70, "attention_chunk_size": 60}, 60),
        ({"attention_window": [512, 64, 512]}, 64),
        ({"window_size": 33}, 33),
        ({"attention_window_size": 34}, 34),
        ({"local_attention": 35}, 35),
        ({"index_topk": 36}, 36),
        ({"sliding_window_size": 37}, 37),
        ({"per_layer": {0: {"sliding_window": 38}}}, 38),
        ({"audio": {"model_type": "encodec", "window_size": 3}}, None),
    ],
)
def test_the_names_of_windows(told: dict[str, Any], window: int | None) -> None:
    from transformers import LlamaConfig

    assert declared_window(LlamaConfig(**told)) == window


#: In the place of a renderer: the trial makes its prompts by itself.
NOT_LOOKED_AT: Any = SimpleNamespace(tokenizer=None)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2"])
def test_the_trial_tells_which_models_pack(kind: str, network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    assert text_scorer(network(kind), spoken()).packs


@pytest.mark.parametrize("kind", ["mamba", "bloom"])
def test_models_that_do_not_pack_are_told(kind: str, network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    with pytest.warns(UserWarning, match="reads each prompt by itself.*it takes no position_ids"):
        assert not text_scorer(network(kind), spoken()).packs
    assert not text_scorer(network(kind), spoken(), packing="off").packs  # asked for, so nothing is said


def test_the_trial_leaves_the_model_as_it_was(spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal().train()
    text_scorer(model, spoken())
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_other_logits_are_told_with_how_far_they_are_off(llama: Any) -> None:
    scorer = CausalScorer(llama, NOT_LOOKED_AT, packing="on")

    def doubled(prompts: Any, cache: Any) -> Any:
        return ((chosen, 2 * logits) for chosen, logits in scorer._score_packed(prompts, cache))

    assert why_not_packed(llama, scorer._score_packed, scorer._score_padded) == ""
    assert why_not_packed(llama, doubled, scorer._score_padded).startswith("its logits are off by")


def test_what_can_be_seen_of_a_model() -> None:
    def config(kind: str, **more: Any) -> Any:
        shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 30, "head_dim": 8}
        return AutoConfig.for_model(kind, **shape, num_key_value_heads=2, intermediate_size=64, **more)

    def why(kind: str, **more: Any) -> str:
        model = AutoModelForCausalLM.from_config(config(kind, **more)).eval()
        scorer = CausalScorer(model, NOT_LOOKED_AT, packing="on")
        return why_not_packed(model, scorer._score_packed, scorer._score_padded)

    assert why("qwen3") == ""
    linear = {"layer_types": ["linear_attention", "full_attention"], "num_experts": 0, "mlp_only_layers": [0, 1]}
    assert why("qwen3_next", **linear).startswith("its layers keep something else than keys and values")
