"""Policies: only adapters are trained, the base is the reference, and adapters are those of peft."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel

from formal_llm import Question
from formal_llm.errors import ModelError, ResourceNotFound
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.rltf.policy import LoRA, Policy, base_and_adapter, default_targets
from tests import tiny_models
from tests.llms.local import families

Build = Callable[..., LocalLLM]
QUESTIONS = [
    Question(f"{'go on ' * n}which?", [f"o{i}" for i in range(k)]) for n, k in ((1, 2), (3, 5), (2, 12), (4, 3))
]


def test_the_base_of_adapters_and_of_a_model_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "a/base"}')
    for name in (str(tmp_path), f"transformers:{tmp_path}"):
        assert base_and_adapter(name) == ("transformers:a/base", str(tmp_path))
        assert base_and_adapter(f"{name}?dtype=float32") == ("transformers:a/base?dtype=float32", str(tmp_path))
    assert base_and_adapter(f"encoder:{tmp_path}") == ("encoder:a/base", str(tmp_path))
    for name in ("transformers:a/model", "a/model", "minilm", "openai:x"):
        assert base_and_adapter(name) == (name, None)


def shaken(policy: Policy, seed: int = 1) -> Policy:
    """The policy after somebody moved its adapters."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters:
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    policy.changed()
    return policy


def table(policy: Policy) -> torch.Tensor:
    with torch.no_grad():
        return policy.log_probabilities(QUESTIONS)


@pytest.mark.parametrize(
    ("kind", "targets"),
    [("llama", {"q_proj", "v_proj"}), ("gpt2", {"c_attn"}), ("t5", {"q", "v"}), ("bert", {"query", "value"})],
)
def test_adapters_go_into_queries_and_values(build: Build, kind: str, targets: set[str]) -> None:
    llm = build(kind)
    assert set(default_targets(llm.scorer.model)) == targets
    before = table(Policy(build(kind)))
    policy = Policy(llm)
    names = [name for name, parameter in policy.model.named_parameters() if parameter.requires_grad]
    assert names
    assert all("lora_" in name and any(f".{target}." in name for target in targets) for name in names)
    assert policy.trainable == sum(p.numel() for p in policy.parameters) < policy.size
    assert torch.equal(table(policy), before)  # new adapters change nothing
    moved = table(shaken(policy))
    assert not torch.allclose(moved, before)
    assert torch.allclose(moved.exp().sum(dim=1), torch.ones(len(QUESTIONS)), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "more", "targets"),
    [
        ("phi3", {}, ("qkv_proj",)),
        ("mamba2", {"num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 1}, ("in_proj",)),
        ("deepseek_v3", {"num_key_value_heads": 4}, ("q_b_proj", "kv_b_proj")),
        ("deepseek_v3", {"num_key_value_heads": 4, "q_lora_rank": None}, ("q_proj", "kv_b_proj")),
        ("gpt_neox", {}, ("query_key_value",)),
        ("openai-gpt", {}, ("c_attn",)),  # whose weights lie the other way round, as GPT-2's do
    ],
)
def test_families_that_name_their_projections_otherwise(
    kind: str, more: dict[str, object], targets: tuple[str, ...], spoken: Any
) -> None:
    model = families.decoder(kind, {"vocab_size": len(spoken), **more})
    assert default_targets(model) == targets
    llm = TransformersLLM.of(model, spoken, name=kind)
    policy = Policy(llm)
    before = table(policy)
    assert not torch.allclose(table(shaken(policy)), before, atol=1e-4)
    with torch.enable_grad(), policy.training():
        policy.log_probabilities(QUESTIONS)[:, 0].sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in policy.parameters)


def test_no_adapters_in_parts_that_see(spoken: Any) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    text = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "head_dim": 8, "vocab_size": len(spoken)}  # fmt: skip
    seen = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "image_size": 28, "patch_size": 14}  # fmt: skip
    config = AutoConfig.for_model(
        "gemma3", text_config=text, vision_config=seen, image_token_index=3, boi_token_index=4, eoi_token_index=5,
        mm_tokens_per_image=4,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config).eval()
    sees = [name for name, _ in model.named_modules() if "vision_tower" in name and name.endswith("q_proj")]
    assert sees
    llm = TransformersLLM.of(model, spoken, name="sees")
    names = [name for name, parameter in Policy(llm).model.named_parameters() if parameter.requires_grad]
    assert len(names) == 2 * 2 * 2  # two matrices for queries and values of two layers
    assert not any("vision" in name for name in names)


def test_the_base_model_is_the_reference(build: Build) -> None:
    before = table(Policy(build()))
    policy = shaken(Policy(build()))
    moved = table(policy)
    assert torch.equal(policy.reference(QUESTIONS), before)
    assert torch.allclose(policy.reference(QUESTIONS[::-1]), before.flip(0), atol=1e-5)
    assert torch.equal(table(policy), moved)
    with torch.no_grad(), policy.without_adapters():
        assert torch.equal(policy.log_probabilities(QUESTIONS), before)


def test_temperature_flattens(build: Build) -> None:
    cold, warm = table(Policy(build())), table(Policy(build(), temperature=3.0))
    for one, other, question in zip(cold, warm, QUESTIONS, strict=True):
        count = len(question.options)
        expected = torch.log_softmax(one[:count] / 3, dim=0)
        assert torch.allclose(other[:count], expected, atol=1e-6)
    with pytest.raises(ValueError, match="above 0"):
        Policy(build(), temperature=0)


def test_saved_adapters_load_with_plain_peft(build: Build, tmp_path: Path) -> None:
    policy = shaken(Policy(build()))
    policy.save(tmp_path / "adapter")
    base = build()
    assert isinstance(base, TransformersLLM)
    peft = PeftModel.from_pretrained(base.scorer.model, str(tmp_path / "adapter"))
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        assert torch.equal(peft(input_ids=ids).logits, policy.model(input_ids=ids).logits)
    again = Policy(build(), adapter=tmp_path / "adapter")
    assert torch.equal(table(again), table(policy))
    third = Policy(build())
    third.load(tmp_path / "adapter")
    assert torch.equal(table(third), table(policy))
    assert all(parameter.requires_grad for parameter in again.parameters)
    assert len(again.parameters) == len(policy.parameters)


def test_adapters_that_are_not_there_or_do_not_fit(build: Build, tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match=r"adapter_model.safetensors"):
        Policy(build(), adapter=tmp_path)
    policy = Policy(build())
    with pytest.raises(ResourceNotFound, match=r"adapter_model.safetensors"):
        policy.load(tmp_path / "nowhere")
    Policy(build(), LoRA(rank=4)).save(tmp_path / "small")
    before = table(policy)
    with pytest.raises(ModelError, match="do not fit"):
        policy.load(tmp_path / "small")
    Policy(build("gpt2")).save(tmp_path / "gpt2")
    with pytest.raises(ModelError, match="do not fit"):
        policy.load(tmp_path / "gpt2")
    (tmp_path / "small" / "adapter_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="cannot be read"):
        policy.load(tmp_path / "small")
    assert torch.equal(table(policy), before)


def test_what_cannot_be_trained() -> None:
    with pytest.raises(ModelError, match="a model that runs here"):
        Policy("test:first")
    with pytest.raises(ValueError, match="rank"):
        LoRA(rank=0)


def test_modules_that_are_not_there(build: Build) -> None:
    with pytest.raises(ModelError, match="cannot be put into"):
        Policy(build(), LoRA(targets=("no_such_module",)))


def test_the_tokenizer_of_another_model() -> None:
    spoken = tiny_models.tokenizer()
    with pytest.raises(ModelError, match="tokenizer of another model"):
        TransformersLLM.of(tiny_models.causal("llama", len(spoken) - 5), spoken)


def test_the_seed_makes_the_adapters(build: Build) -> None:
    one, same, other = (Policy(build(), seed=seed) for seed in (1, 1, 2))
    firsts = [policy.parameters[0] for policy in (one, same, other)]
    assert torch.equal(firsts[0], firsts[1])
    assert not torch.equal(firsts[0], firsts[2])


@pytest.mark.parametrize("kind", ["llama", "t5", "bert"])
def test_checkpointing_saves_memory_and_changes_no_gradient(build: Build, kind: str) -> None:
    gradients = []
    for checkpointing in (False, True):
        policy = shaken(Policy(build(kind), gradient_checkpointing=checkpointing))
        with policy.training():
            legal = [
                row[: len(q.options)] for row, q in zip(policy.log_probabilities(QUESTIONS), QUESTIONS, strict=True)
            ]
            sum(row[0] + 2 * row[1] for row in legal).backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in policy.parameters]))
        assert not policy.model.training
    assert torch.allclose(*gradients, rtol=1e-3, atol=1e-5 * float(gradients[0].abs().max()))
    assert gradients[0].abs().max() > 0


def test_mixed_precision_is_near(build: Build) -> None:
    plain = shaken(Policy(build()))
    mixed = shaken(Policy(build(), autocast="bfloat16"))
    one, other = table(plain), table(mixed)
    legal = one.isfinite()
    assert not torch.equal(one, other)
    assert (one.exp() - other.exp())[legal].abs().max() < 0.1
    with mixed.training():
        mixed.log_probabilities(QUESTIONS)[:, 0].sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in mixed.parameters)
