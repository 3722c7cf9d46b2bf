"""The probabilities of decoders are those of the brute force, in whichever way they are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.text_scorer import text_scorer
from formal_llm.llms.question import Message, Question
from tests import tiny_models
from tests.llms.local import token_by_token

#: Kinds of models, tokenizers and styles. All pairs of them would take long; each is there with each other one once.
CASES = [
    ("llama", "split", "plain"),
    ("llama", "split", "chat"),
    ("llama", "joined", "plain"),
    ("llama", "joined", "chat"),
    ("qwen3", "split", "chat"),
    ("qwen3", "joined", "plain"),
    ("gpt2", "split", "plain"),
    ("gpt2", "joined", "chat"),
    ("bloom", "split", "plain"),
    ("bloom", "joined", "chat"),
    ("mamba", "split", "chat"),
    ("mamba", "joined", "plain"),
]
LONG = {
    ("llama", "split", "plain"),
    ("llama", "joined", "chat"),
    ("qwen3", "split", "chat"),
    ("gpt2", "joined", "chat"),
    ("bloom", "split", "plain"),
    ("mamba", "split", "chat"),
}
#: Ways of computing; ``batch`` is how many questions are asked at once, ``rounds`` how often all of them.
WAYS: list[dict[str, Any]] = [
    {"batch": 16},
    {"batch": 1},
    {"batch": 16, "rounds": 2},
    {"batch": 1, "rounds": 2},
    {"batch": 16, "rounds": 2, "cache_bytes": 0},
    {"batch": 1, "rounds": 2, "cache_bytes": 40_000},
    {"batch": 5, "rounds": 2, "cache_bytes": 100_000},
    {"batch": 16, "rounds": 2, "row_tokens": 1},
    {"batch": 16, "rounds": 2, "row_tokens": 5_000},
    {"batch": 16, "rounds": 2, "batch_tokens": 150},
    {"batch": 16, "packing": "off"},
    {"batch": 1, "packing": "off"},
    {"batch": 16, "packing": "off", "batch_tokens": 150},
]
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def expected(network: Callable[..., Any], spoken: Callable[..., Any]) -> Callable[..., Any]:
    """The questions of a case with their brute-force probabilities, computed once."""
    known: dict[Any, Any] = {}

    def get(kind: str, digits: str, style: str) -> Any:
        key = (kind, digits, style)
        if key not in known:
            tokenizer = spoken(chat=style == "chat", joined_digits=digits == "joined")
            model = network(kind)
            # Reading a hundred answers one by one takes long; each kind of model and each way of writing has them once.
            many = (110,) if (kind, digits, style) in LONG else ()
            asked = token_by_token.batch((2, 9, 12, *many))
            with torch.no_grad():
                wanted = [token_by_token.causal_probabilities(model, tokenizer, one, style) for one in asked]
            known[key] = model, tokenizer, asked, wanted
        return known[key]

    return get


def largest_error(scorer: CausalScorer, asked: list[Question], wanted: list[list[float]], batch: int) -> float:
    """How far the farthest probability is off."""
    worst = 0.0
    with torch.no_grad():
        for begin in range(0, len(asked), batch):
            table = scorer.log_probabilities(asked[begin : begin + batch]).exp()
            for row, probabilities in zip(table, wanted[begin : begin + batch], strict=True):
                many = len(probabilities)
                assert row[many:].sum() == 0
                worst = max(worst, float((row[:many].double() - torch.tensor(probabilities)).abs().max()))
    return worst


@pytest.mark.filterwarnings("ignore:.*reads each prompt by itself")
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow if case in LONG else ()) for case in CASES], ids="-".join
)
def test_probabilities_are_those_of_the_brute_force(case: tuple[str, str, str], expected: Callable[..., Any]) -> None:
    model, tokenizer, asked, wanted = expected(*case)
    for way in WAYS if case[0] not in ("mamba", "bloom") else [WAYS[0], WAYS[1], WAYS[-1]]:
        settings = {key: value for key, value in way.items() if key not in ("batch", "rounds")}
        scorer = text_scorer(model, tokenizer, style=case[2], **settings)
        for _ in range(way.get("rounds", 1)):
            assert largest_error(scorer, asked, wanted, way["batch"]) < TOLERANCE, way
            scorer._remembered.clear()  # so that it computes them again, with what is in the cache


def test_what_is_forgotten_is_computed_with_the_new_weights(spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal()
    scorer = text_scorer(model, spoken())
    asked = [token_by_token.question(9)]
    with torch.no_grad():
        before = scorer.log_probabilities(asked)
        for parameter in model.parameters():
            parameter.mul_(1.1)
        scorer.forget()
        after = scorer.log_probabilities(asked)
        wanted = token_by_token.causal_probabilities(model, spoken(), asked[0], "plain")
    assert not torch.allclose(before, after, atol=1e-3)
    assert torch.allclose(after.exp()[0].double(), torch.tensor(wanted, dtype=torch.float64), atol=TOLERANCE)


# -- gradients -------------------------------------------------------------------------------------------------------


def gradients(model: Any, loss: Any) -> dict[str, Any]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_same_gradients(model: Any, ours: Any, theirs: Any) -> None:
    one, other = gradients(model, ours), gradients(model, theirs)
    assert one.keys() == other.keys() and len(one) > 3
    scale = max(float(gradient.abs().max()) for gradient in other.values())
    for name, gradient in other.items():
        assert torch.isfinite(one[name]).all()
        assert float((one[name] - gradient).abs().max()) <= 1e-4 * scale, name


@pytest.mark.parametrize("packing", ["on", "off"])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_gradients_are_those_of_the_brute_force(kind: str, packing: str, spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal(kind)
    scorer = text_scorer(model, spoken(), packing=packing)
    asked = [token_by_token.question(12), token_by_token.question(12, "translate"), token_by_token.question(3)]
    chosen = [10, 0, 2]
    with torch.no_grad():
        scorer.log_probabilities(asked)  # what is remembered must not take the place of what has a gradient
    table = scorer.log_probabilities(asked)
    assert table.requires_grad
    ours = sum(table[row, number] for row, number in enumerate(chosen))
    theirs = sum(
        token_by_token.causal_sums(model, spoken(), one, "plain")[number]
        for one, number in zip(asked, chosen, strict=True)
    )
    assert float(ours.detach() - theirs.detach()) == pytest.approx(0, abs=1e-4)
    assert_same_gradients(model, ours, theirs)


def test_gradients_of_adapters(spoken: Callable[..., Any]) -> None:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    model = get_peft_model(
        tiny_models.causal(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    )
    model.eval()
    scorer = text_scorer(model.get_base_model(), spoken(), packing="on")
    asked = [token_by_token.question(12), token_by_token.question(9, "translate")]
    table = scorer.log_probabilities(asked)
    ours = table[0, 11] - table[1, 3]
    sums = [token_by_token.causal_sums(model, spoken(), one, "plain") for one in asked]
    assert_same_gradients(model, ours, sums[0][11] - sums[1][3])


# -- odd models, numbers and questions -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_numbers(dtype: Any, spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal().to(dtype)
    asked = token_by_token.batch((2, 9, 12))
    scorer = text_scorer(model, spoken())
    assert scorer.packs
    with torch.no_grad():
        table = scorer.log_probabilities(asked)
        wanted = [token_by_token.causal_probabilities(model, spoken(), one, "plain") for one in asked]
    assert table.dtype == torch.float32
    assert not table.isnan().any()
    for row, probabilities in zip(table.exp(), wanted, strict=True):
        far = (row[: len(probabilities)].double() - torch.tensor(probabilities, dtype=torch.float64)).abs().max()
        assert far < (0.1 if dtype == torch.bfloat16 else 1e-6)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_ways_of_attention(attention: str, spoken: Callable[..., Any]) -> None:
    """Padding attends to something and nothing attends to it: no NaN, whichever way attention is computed."""
    model = tiny_models.causal()
    model.set_attn_implementation(attention)
    asked = token_by_token.batch((2, 9, 12))
    with torch.no_grad():
        wanted = [token_by_token.causal_probabilities(model, spoken(), one, "plain") for one in asked]
    scorer = text_scorer(model, spoken(), row_tokens=60)
    for _ in range(2):
        assert largest_error(scorer, asked, wanted, 16) < TOLERANCE
        scorer._remembered.clear()


_SHAPE = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8,
    "num_key_value_heads": 2, "vocab_size": tiny_models.VOCABULARY, "bos_token_id": 1, "eos_token_id": 2,
    "pad_token_id": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("mistral", {"sliding_window": 40}),  # shorter than some prompts and longer than others
        ("gemma3_text", {"sliding_window": 40}),
        ("gemma2", {"sliding_window": 2_000, "final_logit_softcapping": 3.0}),
        ("cohere", {"logit_scale": 0.25}),
        ("granite", {"logits_scaling": 4.0}),
        ("gpt_neox", {}),
    ],
)
def test_models_that_see_a_part_or_change_their_logits(
    kind: str, more: dict[str, Any], spoken: Callable[..., Any]
) -> None:
    torch.manual_seed(1)
    shape = {key: value for key, value in _SHAPE.items() if key != "head_dim" or kind.startswith("gemma")}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **shape, **more)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(3)
    asked = [*token_by_token.batch((2, 9, 12)), Question("hi", ["a", "b"])]
    with torch.no_grad():
        wanted = [token_by_token.causal_probabilities(model, spoken(), one, "plain") for one in asked]
    scorer = text_scorer(model, spoken())
    assert scorer.packs
    for _ in range(2):
        assert largest_error(scorer, asked, wanted, 17) < TOLERANCE
        scorer._remembered.clear()


def test_a_question_too_long(spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal("gpt2")
    scorer = text_scorer(model, spoken())
    long = Question("restore " * 3_000, ["a", "b"])
    with pytest.raises(LLMError, match=r"2,048.*shorten the wording"), torch.no_grad():
        scorer.log_probabilities([token_by_token.question(2), long])


def test_a_tokenizer_of_another_model(spoken: Callable[..., Any]) -> None:
    with pytest.raises(ModelError, match="tokenizer of another model"):
        text_scorer(tiny_models.causal(vocabulary=100), spoken())


def test_a_long_chat_is_read_once(llama: Any, spoken: Callable[..., Any]) -> None:
    """The questions of one conversation, each with all that came before."""
    scorer = text_scorer(llama, spoken(chat=True))
    before: list[Message] = []
    for step in range(4):
        asked = Question(f"Step {step}? " + "restore the image " * 5, ["a", "b", "c"], messages=tuple(before))
        with torch.no_grad():
            row = scorer.log_probabilities([asked]).exp()[0]
            wanted = token_by_token.causal_probabilities(llama, spoken(chat=True), asked, "chat")
        assert torch.allclose(row.double(), torch.tensor(wanted, dtype=torch.float64), atol=TOLERANCE)
        before += [asked.messages[-1], Message("assistant", "2")]
