"""Scorers of models that write: what all share, and encoder-decoders against the brute force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.scorer import tree_log_probabilities
from formal_llm.llms.local.text_scorer import Seq2SeqScorer, answered_by, text_scorer
from formal_llm.llms.question import Question
from tests import tiny_models
from tests.llms.local import token_by_token


@pytest.mark.parametrize("joined", [False, True], ids=["split", "joined"])
@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_probabilities_are_those_of_the_brute_force(
    kind: str, joined: bool, network: Callable[..., Any], spoken: Callable[..., Any]
) -> None:
    model = network(kind)
    for end_after in (True, False):
        tokenizer = spoken(joined_digits=joined, end_after=end_after)
        asked = token_by_token.batch((2, 9, 12, 110) if end_after else (2, 9, 12))
        with torch.no_grad():
            wanted = [token_by_token.seq2seq_probabilities(model, tokenizer, one) for one in asked]
            for batch, batch_tokens in ((16, 8_192), (1, 8_192), (16, 120)):
                scorer = text_scorer(model, tokenizer, batch_tokens=batch_tokens)
                for begin in range(0, 16, batch):
                    table = scorer.log_probabilities(asked[begin : begin + batch]).exp()
                    assert not table.isnan().any()
                    for row, probabilities in zip(table, wanted[begin : begin + batch], strict=True):
                        many = len(probabilities)
                        far = row[:many].double() - torch.tensor(probabilities, dtype=torch.float64)
                        assert float(far.abs().max()) < 1e-5
                        assert row[many:].sum() == 0
        assert sum(max(row) > 1.2 / len(row) for row in wanted) >= len(wanted) / 2


@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_are_those_of_the_brute_force(checkpointing: bool, spoken: Callable[..., Any]) -> None:
    model = tiny_models.seq2seq("t5")
    if checkpointing:  # which models do in training only
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            elif isinstance(getattr(module, "dropout", None), float):
                module.dropout = 0.0
        model.train()
        model.activation_checkpointing_enable(activation_checkpointing_kwargs={"use_reentrant": False})
    tokenizer = spoken(end_after=True)
    asked = [token_by_token.question(12), token_by_token.question(3, "translate")]
    table = text_scorer(model, tokenizer).log_probabilities(asked)
    found = []
    theirs = []
    for row, one in enumerate(asked):
        sums = [
            token_by_token.seq2seq_sum(model, tokenizer, one.prompt, str(n), ends=True)
            for n in range(1, len(one.options) + 1)
        ]
        theirs.append(torch.log_softmax(torch.stack(sums), dim=0)[2])
        found.append(table[row, 2])
    gradients = []
    for loss in (sum(found), sum(theirs)):
        model.zero_grad()
        loss.backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    scale = max(float(gradient.abs().max()) for gradient in gradients[1])
    assert len(gradients[0]) == len(gradients[1]) > 10
    for one_gradient, other in zip(*gradients, strict=True):
        assert float((one_gradient - other).abs().max()) <= 1e-4 * scale


def test_targets_begin_as_the_tokenizer_writes_them(network: Callable[..., Any]) -> None:
    """BART was trained on targets with a token before their text; where a tokenizer writes one, it is scored too."""
    from tokenizers import processors

    tokenizer = tiny_models.tokenizer()
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    model = network("bart")
    asked = [token_by_token.question(12), token_by_token.question(2)]
    with torch.no_grad():
        table = text_scorer(model, tokenizer).log_probabilities(asked).exp()
        for row, one in zip(table, asked, strict=True):
            wanted = token_by_token.seq2seq_probabilities(model, tokenizer, one)
            assert torch.allclose(row[: len(wanted)].double(), torch.tensor(wanted, dtype=torch.float64), atol=1e-5)


def test_questions_with_one_and_with_few_options(network: Callable[..., Any], spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(network("t5"), spoken(joined_digits=True, end_after=True))
    with torch.no_grad():
        table = scorer.log_probabilities([Question("which", ["a"]), Question("which", ["a", "b"])])
    assert table[0].tolist() == [0.0, -torch.inf]
    assert table[1].exp().sum().item() == pytest.approx(1)


def test_a_question_too_long(spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(tiny_models.seq2seq("bart"), spoken(end_after=True))
    with pytest.raises(LLMError, match="1,024"), torch.no_grad():
        scorer.log_probabilities([Question("restore " * 2_000, ["a", "b"])])


def test_a_decoder_without_a_beginning(spoken: Callable[..., Any]) -> None:
    model = tiny_models.seq2seq("t5")
    model.config.decoder_start_token_id = None
    with pytest.raises(ModelError, match="decoder_start_token_id"):
        text_scorer(model, spoken())


@pytest.mark.parametrize(("chat", "style"), [(False, "plain"), (True, "chat")])
def test_a_decoder_has_its_chat_template_where_there_is_one(chat: bool, style: str) -> None:
    network = tiny_models.causal("gpt2", tiny_models.VOCABULARY)
    made = text_scorer(network, tiny_models.tokenizer(chat=chat), cue="So:")
    assert isinstance(made, CausalScorer) and made.renderer.style == style
    assert made.renderer.longest == network.config.n_positions


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
    assert len(scorer.cache) == 0
    with torch.no_grad():
        assert torch.allclose(scorer.log_probabilities(asked), first[:16], atol=1e-5)
    assert scorer.stats["computed"] == 2 * distinct


def test_a_selection_is_not_scored_as_a_whole(llama: Any, spoken: Callable[..., Any]) -> None:
    with pytest.raises(LLMError, match="option by option"):
        text_scorer(llama, spoken()).log_probabilities([Question("which", ["a", "b"], several=True)])


def test_one_option(llama: Any, spoken: Callable[..., Any]) -> None:
    with torch.no_grad():
        table = text_scorer(llama, spoken()).log_probabilities([Question("which", ["a"])])
    assert table.tolist() == [[0.0]]


def test_the_probability_of_an_answer_is_the_product_over_its_tokens() -> None:
    tree = AnswerTree.of([[0, 3], [1, 2, 3], [1, 3]])  # inner nodes: (0), (1), (1, 2)
    logits = torch.arange(16.0).reshape(4, 4).sin()  # the end of the prompt, then the inner nodes
    share = torch.softmax(logits, dim=-1).tolist()
    products = [
        share[0][0] * share[1][3],
        share[0][1] * share[2][2] * share[3][3],
        share[0][1] * share[2][3],
    ]
    twice = tree_log_probabilities(torch.cat([logits, logits]), [tree, tree])
    for found in twice:
        assert found.exp().tolist() == pytest.approx(products)


TEXTS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 5)), max_size=30)
