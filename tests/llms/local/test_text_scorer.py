"""The probabilities of options are those of reading each text alone, however they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.rendering import Prompted
from formal_llm.llms.local.scorer import batches
from formal_llm.llms.local.text_scorer import (
    PACKABLE,
    CausalScorer,
    Seq2SeqScorer,
    answered_by,
    text_scorer,
    tree_log_probabilities,
)
from formal_llm.llms.question import Message, Question
from tests import tiny_models
from tests.llms.local import families, token_by_token
from tests.strategies import examples

#: How far a probability may be off.
TOLERANCE = 5e-6
ANSWERS = ((5, 2), (6, 7, 2), (6, 2))
TREE = AnswerTree.of(ANSWERS)
#: In the place of a renderer: some tests make prompts by themselves.
NO_RENDERER: Any = SimpleNamespace(tokenizer=None, longest=512)


# -- each text alone, nothing of ours in it ----------------------------------------------------------------------------


def read_alone(model: Any, tokens: Sequence[int]) -> torch.Tensor:
    """The log-probabilities of the answers to a prompt."""
    sums = []
    for answer in ANSWERS:
        ids = [*tokens, *answer]
        logs = torch.log_softmax(model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float(), dim=-1)
        sums.append(sum(logs[place - 1, ids[place]] for place in range(len(tokens), len(ids))))
    return torch.stack(sums)  # type: ignore[arg-type]


def difference(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((torch.softmax(found.double(), 0) - torch.softmax(wanted.double(), 0)).abs().max())


def gradient(model: Any, values: Sequence[torch.Tensor]) -> torch.Tensor:
    total = torch.stack([value[0] - 0.3 * value[1] for value in values]).sum()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    found = torch.autograd.grad(total, parameters, allow_unused=True)
    return torch.cat([torch.zeros(1) if one is None else one.flatten() for one in found])


def prompts(*lengths: int) -> list[Prompted]:
    """For each length two prompts that have their first half in common, also with those of other lengths."""
    generator = torch.Generator().manual_seed(max(lengths))
    text = torch.randint(10, 190, (2 * max(lengths),), generator=generator).tolist()
    made = []
    for length in lengths:
        half = length // 2
        made += [(*text[:half], *text[start : start + length - half]) for start in (half, max(lengths) + half)]
    return [Prompted(tokens, TREE) for tokens in dict.fromkeys(made)]


def test_all_packed_families_are_tried() -> None:
    assert set(families.PACKED) == PACKABLE


@pytest.mark.parametrize(
    ("kind", "packs"), [*((kind, True) for kind in families.PACKED), *((kind, False) for kind in families.ALONE)]
)
def test_a_family_gives_what_each_text_alone_gives(kind: str, packs: bool) -> None:
    more = (families.PACKED if packs else families.ALONE)[kind]
    model = families.decoder(kind, more)
    scorer = CausalScorer(model, NO_RENDERER, batch_tokens=300)
    scorer.row_tokens = 64
    assert scorer.packs == packs and (not packs or scorer.window == more.get("sliding_window"))
    asked = prompts(9, 20, 26, 70)
    wanted = [read_alone(model, prompt.tokens) for prompt in asked]
    with torch.no_grad():
        for part in (asked, asked[1:], asked[:1]):  # the later ones with what was kept before
            for found, prompt in zip(scorer.score(part), part, strict=True):
                assert difference(found, wanted[asked.index(prompt)]) < TOLERANCE
    slope = gradient(model, wanted)
    assert float((gradient(model, scorer.score(asked)) - slope).norm() / slope.norm()) < 1e-4


def test_positions_that_are_scaled_beyond_a_length() -> None:
    """Phi 3 with 128k tokens: a long prompt changes the positions of all that is read with it."""
    rope = {"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [4.0] * 4, "rope_theta": 10_000.0}
    size = {"original_max_position_embeddings": families.WINDOW}
    model = families.decoder("phi3", {"rope_parameters": {**rope, **size}, **size})
    scorer = CausalScorer(model, NO_RENDERER)
    assert scorer.window == families.WINDOW
    asked = prompts(9, 20, 26, 70)
    with torch.no_grad():
        for found, prompt in zip(scorer.score(asked), asked, strict=True):
            assert difference(found, read_alone(model, prompt.tokens)) < TOLERANCE


@cache
def decoder(kind: str) -> tuple[Any, Callable[[tuple[int, ...]], torch.Tensor]]:
    model = families.decoder(kind, families.PACKED[kind])
    return model, cache(lambda tokens: read_alone(model, tokens))


@pytest.mark.parametrize("kind", ["llama", "mistral", "gpt2"])
@given(data=st.data())
@examples(30)
def test_whatever_was_read_before(kind: str, data: st.DataObject) -> None:
    model, alone = decoder(kind)
    scorer = CausalScorer(model, NO_RENDERER, batch_tokens=data.draw(st.sampled_from([10, 60, 2_000])))
    scorer.row_tokens = data.draw(st.sampled_from([1, 12, 60, 2_000]))
    start = tuple(range(10, 10 + data.draw(st.sampled_from([0, 3, 20]))))
    texts = st.lists(st.sampled_from([8, 9]), min_size=1, max_size=6).map(lambda rest: (*start, *rest))
    with torch.no_grad():
        for _ in range(3):
            asked = data.draw(st.lists(texts, min_size=1, max_size=6, unique=True))
            for found, tokens in zip(scorer.score([Prompted(one, TREE) for one in asked]), asked, strict=True):
                assert difference(found, alone(tokens)) < TOLERANCE


def test_a_common_beginning_is_read_once() -> None:
    model = decoder("llama")[0]
    scorer = CausalScorer(model, NO_RENDERER)
    begin = tuple(range(10, 190)) * 2
    with torch.no_grad():
        scorer.score([Prompted((*begin, n, *range(3, 100)), TREE) for n in range(20, 30)])
        read = scorer.tokens_read
        assert len(begin) + 980 <= read < len(begin) + 1_100
        scorer.score([Prompted((*begin, 7, 8), TREE)])
    assert scorer.tokens_read - read < 10


# -- questions, in all ways of writing them ----------------------------------------------------------------------------


def check_questions(scorer: Any, asked: list[Question], wanted: list[list[float]], far: float = TOLERANCE) -> None:
    with torch.no_grad():
        table = scorer.log_probabilities(asked).exp()
    assert table.dtype == torch.float32 and not table.isnan().any()
    for row, probabilities in zip(table, wanted, strict=True):
        many = len(probabilities)
        assert row[many:].sum() == 0
        assert float((row[:many].double() - torch.tensor(probabilities, dtype=torch.float64)).abs().max()) < far


@pytest.mark.parametrize(
    ("kind", "joined", "style"),
    [
        ("llama", False, "plain"),
        ("llama", True, "chat"),
        ("qwen3", True, "plain"),
        ("gpt2", False, "chat"),
        ("bloom", True, "plain"),
        ("mamba", False, "chat"),
    ],
)
def test_questions_of_decoders(
    kind: str, joined: bool, style: Any, network: Callable[..., Any], spoken: Callable[..., Any]
) -> None:
    model, tokenizer = network(kind), spoken(chat=style == "chat", joined_digits=joined)
    asked = token_by_token.batch((2, 9, 12))
    with torch.no_grad():
        wanted = [token_by_token.causal_probabilities(model, tokenizer, one, style) for one in asked]
    scorer = text_scorer(model, tokenizer, style=style)
    check_questions(scorer, asked, wanted)
    for one, probabilities in zip(asked, wanted, strict=True):
        check_questions(text_scorer(model, tokenizer, style=style), [one], [probabilities])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "mamba"])
def test_questions_of_many_options(kind: str, network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    asked = token_by_token.batch((2, 110))
    with torch.no_grad():
        wanted = [token_by_token.causal_probabilities(network(kind), spoken(), one, "plain") for one in asked]
    check_questions(text_scorer(network(kind), spoken()), asked, wanted)


@pytest.mark.parametrize("joined", [False, True], ids=["split", "joined"])
@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_questions_of_encoder_decoders(
    kind: str, joined: bool, network: Callable[..., Any], spoken: Callable[..., Any]
) -> None:
    for end_after in (True, False):
        tokenizer = spoken(joined_digits=joined, end_after=end_after)
        asked = token_by_token.batch((2, 9, 12))
        with torch.no_grad():
            wanted = [token_by_token.seq2seq_probabilities(network(kind), tokenizer, one) for one in asked]
        for batch_tokens in (8_192, 120):
            check_questions(text_scorer(network(kind), tokenizer, batch_tokens=batch_tokens), asked, wanted)
        assert sum(max(row) > 1.2 / len(row) for row in wanted) >= len(wanted) / 2


def test_targets_begin_as_the_tokenizer_writes_them(network: Callable[..., Any]) -> None:
    """BART was trained on targets with a token before their text; where a tokenizer writes one, it is scored too."""
    from tokenizers import processors

    tokenizer = tiny_models.tokenizer()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    asked = [token_by_token.question(12), token_by_token.question(2)]
    with torch.no_grad():
        wanted = [token_by_token.seq2seq_probabilities(network("bart"), tokenizer, one) for one in asked]
    check_questions(text_scorer(network("bart"), tokenizer), asked, wanted)


@pytest.mark.parametrize(("dtype", "far"), [(torch.bfloat16, 0.1), (torch.float64, 1e-6)])
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_numbers_and_ways_of_attention(dtype: Any, far: float, attention: str, spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal().to(dtype)
    model.set_attn_implementation(attention)
    asked = token_by_token.batch((2, 9, 12))
    with torch.no_grad():
        wanted = [token_by_token.causal_probabilities(model, spoken(), one, "plain") for one in asked]
    check_questions(text_scorer(model, spoken()), asked, wanted, far)


def test_a_way_of_attention_without_masks_is_not_packed(spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal()
    model.config._attn_implementation = "flash_attention_2"
    assert not text_scorer(model, spoken()).packs  # type: ignore[union-attr]


def test_a_long_chat_is_read_once(llama: Any, spoken: Callable[..., Any]) -> None:
    """The questions of one conversation, each with all that came before."""
    scorer = text_scorer(llama, spoken(chat=True))
    before: list[Message] = []
    for step in range(4):
        asked = Question(f"Step {step}? " + "restore the image " * 5, ["a", "b", "c"], messages=tuple(before))
        with torch.no_grad():
            wanted = token_by_token.causal_probabilities(llama, spoken(chat=True), asked, "chat")
        check_questions(scorer, [asked], [wanted])
        before += [asked.messages[-1], Message("assistant", "2")]
    assert scorer.tokens_read < 1.3 * len(scorer.renderer.prompt(asked).tokens)


def test_what_is_forgotten_is_computed_with_the_new_weights(spoken: Callable[..., Any]) -> None:
    model = tiny_models.causal()
    scorer = text_scorer(model, spoken())
    asked = token_by_token.question(9)
    with torch.no_grad():
        before = scorer.log_probabilities([asked])
        for parameter in model.parameters():
            parameter.mul_(1.1)
        scorer.forget()
        assert not torch.allclose(before, scorer.log_probabilities([asked]), atol=1e-3)
        wanted = token_by_token.causal_probabilities(model, spoken(), asked, "plain")
    check_questions(scorer, [asked], [wanted])


# -- gradients ---------------------------------------------------------------------------------------------------------


def assert_same_gradients(model: Any, ours: Any, theirs: Any) -> None:
    found = []
    for loss in (ours, theirs):
        model.zero_grad()
        loss.backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    one, other = found
    assert one.keys() == other.keys() and len(one) > 3
    scale = max(float(slope.abs().max()) for slope in other.values())
    for name, slope in other.items():
        assert float((one[name] - slope).abs().max()) <= 1e-4 * scale, name


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_gradients_of_questions(kind: str, checkpointing: bool, spoken: Callable[..., Any]) -> None:
    model = tiny_models.seq2seq(kind) if kind == "t5" else tiny_models.causal(kind)
    if checkpointing:  # which models do in training only
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            elif isinstance(getattr(module, "dropout", None), float):
                module.dropout = 0.0
        model.train()
        model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    tokenizer = spoken(end_after=kind == "t5")
    scorer = text_scorer(model, tokenizer)
    asked = [token_by_token.question(12), token_by_token.question(3, "translate")]
    with torch.no_grad():
        scorer.log_probabilities(asked)  # what is remembered must not take the place of what has a gradient
    table = scorer.log_probabilities(asked)
    theirs = []
    for one in asked:
        if kind == "t5":
            numbers = range(1, len(one.options) + 1)
            sums = [token_by_token.seq2seq_sum(model, tokenizer, one.prompt, str(n), ends=True) for n in numbers]
            theirs.append(torch.log_softmax(torch.stack(sums), dim=0)[2])
        else:
            theirs.append(token_by_token.causal_sums(model, tokenizer, one, "plain")[2])
    assert_same_gradients(model, table[0, 2] - table[1, 2], theirs[0] - theirs[1])


def test_gradients_of_adapters(spoken: Callable[..., Any]) -> None:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(3)
    adapters = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
    model = get_peft_model(tiny_models.causal(), adapters).eval()
    asked = [token_by_token.question(12), token_by_token.question(9, "translate")]
    table = text_scorer(model.get_base_model(), spoken()).log_probabilities(asked)
    sums = [token_by_token.causal_sums(model, spoken(), one, "plain") for one in asked]
    assert_same_gradients(model, table[0, 11] - table[1, 3], sums[0][11] - sums[1][3])


# -- odd models, numbers and questions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gpt2", "bart"])
def test_a_question_too_long(kind: str, network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(network(kind), spoken(end_after=kind == "bart"))
    long = Question("restore " * 3_000, ["a", "b"])
    match = {"gpt2": "2,048.*shorten the wording", "bart": "1,024"}[kind]
    with pytest.raises(LLMError, match=match), torch.no_grad():
        scorer.log_probabilities([token_by_token.question(2), long])


def test_a_tokenizer_of_another_model(spoken: Callable[..., Any]) -> None:
    with pytest.raises(ModelError, match="tokenizer of another model"):
        text_scorer(tiny_models.causal(vocabulary=100), spoken())


def test_a_decoder_without_a_beginning(spoken: Callable[..., Any]) -> None:
    model = tiny_models.seq2seq("t5")
    model.config.decoder_start_token_id = None
    with pytest.raises(ModelError, match="decoder_start_token_id"):
        text_scorer(model, spoken())


@pytest.mark.parametrize(("chat", "style"), [(False, "plain"), (True, "chat")])
def test_a_decoder_has_its_chat_template_where_there_is_one(
    chat: bool, style: str, network: Callable[..., Any], spoken: Callable[..., Any]
) -> None:
    made = text_scorer(network("gpt2"), spoken(chat=chat), cue="So:")
    assert isinstance(made, CausalScorer) and made.renderer.style == style
    assert made.renderer.longest == network("gpt2").config.n_positions


def test_an_encoder_decoder_has_two_parts() -> None:
    made = text_scorer(tiny_models.seq2seq(), tiny_models.sentence_pieces())
    assert isinstance(made, Seq2SeqScorer) and made.renderer.style == "seq2seq"


def test_what_answers_depend_on(llama: Any, spoken: Callable[..., Any]) -> None:
    plain = answered_by(text_scorer(llama, spoken()))
    assert plain == {"dtype": "torch.float32", "style": "plain", "cue": "Answer:"}
    assert answered_by(text_scorer(llama, spoken(), scoring="text")) == {**plain, "scoring": "text"}
    with pytest.raises(ValueError, match="did you mean text"):
        text_scorer(llama, spoken(), scoring="texts")


@pytest.mark.parametrize(
    ("limit", "positions", "longest"),
    [(7, 48, 7), (0, 48, 48), (10**9, 48, 48), (10**9 - 1, 0, 10**9 - 1), (10**30, 0, None), (1, 0, 1)],
)
def test_how_many_tokens_can_be_read(limit: int, positions: int, longest: int | None) -> None:
    """The least of what the network and the tokenizer declare; a number that only means "any" does not count."""
    network, tokenizer = tiny_models.causal("gpt2", tiny_models.VOCABULARY), tiny_models.tokenizer()
    network.config.n_positions, tokenizer.model_max_length = positions, limit
    assert text_scorer(network, tokenizer).renderer.longest == longest


def test_a_scorer_counts_and_remembers(llama: Any, spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(llama, spoken())
    asked = token_by_token.batch((2, 9, 12))
    with torch.no_grad():
        first = scorer.log_probabilities([*asked, *asked])
        again = scorer.log_probabilities(asked)
    distinct = len({(one.messages, len(one.options)) for one in asked})
    assert scorer.stats == {"questions": 48, "computed": distinct}
    assert torch.equal(first[:16], first[16:]) and torch.equal(first[:16], again)
    scorer.forget()
    with torch.no_grad():
        assert torch.allclose(scorer.log_probabilities(asked), first[:16], atol=1e-5)
    assert scorer.stats["computed"] == 2 * distinct


@pytest.mark.parametrize("kind", ["llama", "t5"])
def test_questions_with_few_options(kind: str, network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(network(kind), spoken(joined_digits=True, end_after=kind == "t5"))
    with torch.no_grad():
        table = scorer.log_probabilities([Question("which", ["a"]), Question("which", ["a", "b"])])
    assert table[0].tolist() == [0.0, -torch.inf] and table[1].exp().sum().item() == pytest.approx(1)
    with pytest.raises(LLMError, match="option by option"):
        scorer.log_probabilities([Question("which", ["a", "b"], several=True)])


def test_the_probability_of_an_answer_is_the_product_over_its_tokens() -> None:
    tree = AnswerTree.of([[0, 3], [1, 2, 3], [1, 3]])  # inner nodes: (0), (1), (1, 2)
    logits = torch.arange(16.0).reshape(4, 4).sin()  # the end of the prompt, then the inner nodes
    share = torch.softmax(logits, dim=-1).tolist()
    products = [share[0][0] * share[1][3], share[0][1] * share[2][2] * share[3][3], share[0][1] * share[2][3]]
    for found in tree_log_probabilities(torch.cat([logits, logits]), [tree, tree]):
        assert found.exp().tolist() == pytest.approx(products)


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 5)), max_size=30), st.integers(1, 200))
def test_batches_keep_to_their_size(texts: list[tuple[int, int]], most: int) -> None:
    lengths, heights = [length for length, _ in texts], [height for _, height in texts]
    found = list(batches(lengths, most, heights))
    assert sorted(index for batch in found for index in batch) == list(range(len(texts)))
    for batch in found:
        size = max(lengths[index] for index in batch) * sum(heights[index] for index in batch)
        assert size <= most or len(batch) == 1
