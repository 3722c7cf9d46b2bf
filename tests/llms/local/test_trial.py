"""Which models can be read in packed rows, found out by a trial."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.text_scorer import text_scorer
from formal_llm.llms.local.trial import why_not_packed
from tests import tiny_models

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


def refusing(error: Exception) -> Any:
    model = tiny_models.causal()

    def forward(
        *_: object, attention_mask: Any, position_ids: Any = None, past_key_values: Any = None, **__: Any
    ) -> Any:
        raise error

    model.base_model.forward = forward
    return model


def alone(model: Any) -> Any:
    """Reads nothing, so that all is left to the packed reading."""
    return lambda prompts: iter([(list(range(len(prompts))), torch.zeros(4 * len(prompts), 7))])


def test_what_a_model_refuses_is_told() -> None:
    model = refusing(ValueError("no such mask"))
    packed = CausalScorer(model, NOT_LOOKED_AT, packing="on")._packed
    assert why_not_packed(model, packed, alone(model)) == "it refuses to (no such mask)"


@pytest.mark.parametrize("kind", [AttributeError, TypeError, RuntimeError, IndexError])
def test_a_fault_is_not_taken_for_a_model_that_cannot(kind: type[Exception]) -> None:
    model = refusing(kind("a fault"))
    packed = CausalScorer(model, NOT_LOOKED_AT, packing="on")._packed
    with pytest.raises(kind, match="a fault"):
        why_not_packed(model, packed, alone(model))
    assert not model.training


def test_other_logits_are_told_with_how_far_they_are_off(llama: Any) -> None:
    scorer = CausalScorer(llama, NOT_LOOKED_AT, packing="on")

    def doubled(prompts: Any, cache: Any) -> Any:
        return ((chosen, 2 * logits) for chosen, logits in scorer._packed(prompts, cache))

    assert why_not_packed(llama, scorer._packed, scorer._padded) == ""
    assert why_not_packed(llama, doubled, scorer._padded).startswith("its logits are off by")


def test_what_can_be_seen_of_a_model() -> None:
    def config(kind: str, **more: Any) -> Any:
        shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 30, "head_dim": 8}
        return AutoConfig.for_model(kind, **shape, num_key_value_heads=2, intermediate_size=64, **more)

    def why(kind: str, **more: Any) -> str:
        model = AutoModelForCausalLM.from_config(config(kind, **more)).eval()
        scorer = CausalScorer(model, NOT_LOOKED_AT, packing="on")
        return why_not_packed(model, scorer._packed, scorer._padded)

    assert why("qwen3") == ""
    linear = {"layer_types": ["linear_attention", "full_attention"], "num_experts": 0, "mlp_only_layers": [0, 1]}
    assert why("qwen3_next", **linear).startswith("its layers keep something else than keys and values")
