"""What all scorers share: each question once, remembered until the weights change; and batches of texts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import LLMError
from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.scorer import batches, by_length, checkpoints, fitting_tokens, tree_log_probabilities
from formal_llm.llms.local.text_scorer import text_scorer
from formal_llm.llms.question import Question
from tests import tiny_models
from tests.llms.local import token_by_token


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


def test_checkpointing_counts_only_in_training() -> None:
    model = tiny_models.causal()
    model.activation_checkpointing_enable()
    assert not checkpoints(model.eval())
    assert checkpoints(model.train())


TEXTS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 5)), max_size=30)


@given(TEXTS, st.integers(1, 200), st.randoms())
def test_batches_hold_each_text_once_in_order_and_not_too_much(
    texts: list[tuple[int, int]], most: int, random: Any
) -> None:
    lengths, rows = [length for length, _ in texts], [many for _, many in texts]
    order = list(range(len(texts)))
    random.shuffle(order)
    found = list(batches(order, lengths, most, rows))
    assert [index for batch in found for index in batch] == order
    for batch in found:
        taken = max(lengths[i] for i in batch) * sum(rows[i] for i in batch)
        assert taken <= most or len(batch) == 1


@given(TEXTS, st.integers(1, 200))
def test_a_batch_ends_only_where_the_next_text_would_be_too_much(texts: list[tuple[int, int]], most: int) -> None:
    lengths = [length for length, _ in texts]
    found = list(batches(by_length(lengths), lengths, most))
    for batch, after in pairwise(found):
        assert max(lengths[i] for i in [*batch, after[0]]) * (len(batch) + 1) > most


def test_the_shortest_come_first_and_equals_stay() -> None:
    assert by_length([3, 1, 3, 2]) == [1, 3, 0, 2]


@pytest.mark.parametrize(("device", "tokens"), [("cpu", 7), ("meta", 8_192)])
def test_few_tokens_on_a_cpu(device: str, tokens: int) -> None:
    class Network:
        def get_input_embeddings(self) -> Any:
            return torch.nn.Embedding(3, 2, device=device)

    assert fitting_tokens(Network(), 7) == tokens  # type: ignore[arg-type]  # all that is looked at
