"""Training of heads on a tiny encoder: what they learn, by both likelihoods, and without sentences."""

from __future__ import annotations

import importlib.util

import pytest

if not all(importlib.util.find_spec(name) for name in ("torch", "transformers")):
    pytest.skip("torch and transformers are not installed", allow_module_level=True)

import numpy as np
import torch

from formal_llm import CFG, Planner, RandomLLM, WeightedRules
from formal_llm.llms.local.encoders import BiEncoderScorer
from formal_llm.planning import Task
from formal_llm.planning.rewordings import LabelledTask
from formal_llm.rltf.head_training import (
    HeadSettings,
    Maximised,
    log_partitions,
    plan_steps,
    train_head,
)
from tests import tiny_models

RULES = CFG.from_string(
    '%limit 1\nFood -> wash Food | cut Food | Base\nBase -> beef | tofu\nwash "Wash" "under the tap"\ncut "Cut"'
)
PLANNER = Planner(RULES, RandomLLM(0))
WORDS = {"wash": "clean", "cut": "small", "beef": "cow", "tofu": "bean"}


def make_sentences() -> list[LabelledTask]:
    found = []
    for base in ("beef", "tofu"):
        for more in ((), ("wash",), ("cut",), ("wash", "cut")):
            names = (*more, base)
            found.append(LabelledTask(Task(" ".join(WORDS[name] for name in names)), frozenset(names)))
    return found


@pytest.fixture(scope="module")
def encoder() -> BiEncoderScorer:
    return BiEncoderScorer(tiny_models.encoder(), tiny_models.tokenizer())


@pytest.mark.parametrize(
    ("maximise", "count"), [("steps", 60), ("plans", 40), pytest.param("rewards", 60, marks=pytest.mark.slow)]
)
def test_a_head_learns_which_words_call_for_which_steps(
    encoder: BiEncoderScorer, maximise: Maximised, count: int
) -> None:
    sentences = make_sentences()
    epochs: list[tuple[int, int]] = []
    values: list[float] = []
    trained = train_head(
        PLANNER, encoder, sentences * 8, sentences, HeadSettings(count, (0,), maximise, samples=16),
        on_epoch=lambda seed, epoch: epochs.append((seed, epoch)), on_update=lambda _, value: values.append(value),
    )  # fmt: skip
    assert trained.exact == len(sentences)
    assert epochs == [(0, epoch) for epoch in range(1, count + 1)]
    assert values[-1] > values[0] + 0.2
    assert trained.head.steps == ("wash", "cut", "beef", "tofu")
    for task, steps in sentences:
        (states,) = encoder.token_states([task.description])
        assert plan_steps(PLANNER, trained.head.score(states.detach().numpy()), task) == steps


def test_rewards_of_ones_own_from_a_head_on(encoder: BiEncoderScorer) -> None:
    """A trained head unlearns tofu where only plans with beef are worth anything."""
    sentences = make_sentences()
    first = train_head(PLANNER, encoder, sentences * 8, (), HeadSettings(30, (0,))).head
    settings = HeadSettings(
        30, (0,), "rewards", samples=16, reward=lambda sentence, word: float("beef" in word), start=first
    )
    head = train_head(PLANNER, encoder, sentences * 8, (), settings).head
    for task, _ in sentences:
        (states,) = encoder.token_states([task.description])
        assert "beef" in plan_steps(PLANNER, head.score(states.detach().numpy()), task)
    with pytest.raises(ValueError, match="two samples at least"):
        train_head(PLANNER, encoder, sentences, (), HeadSettings(1, (0,), "rewards", samples=1))


def test_the_same_seed_gives_the_same_head(encoder: BiEncoderScorer) -> None:
    heads = [train_head(PLANNER, encoder, make_sentences(), (), HeadSettings(2, (2, 3))).head for _ in range(2)]
    assert all(np.array_equal(heads[0].arrays[name], heads[1].arrays[name]) for name in heads[0].arrays)


def test_names_that_no_sentence_decides(encoder: BiEncoderScorer) -> None:
    head = train_head(PLANNER, encoder, make_sentences(), (), HeadSettings(1, (0,)), neutral=["beef", "tofu"]).head
    assert (head.steps, head.neutral) == (("wash", "cut"), ("beef", "tofu"))


WEIGHTED_LOSS_RULES = [
    WeightedRules(CFG.from_string("%limit 1\nS -> a S | b S | c")),
    WeightedRules(CFG.from_string("S -> a b | b c | c")),
]
NAMES = ("a", "b", "c", "d")
SCORES = torch.tensor([[0.3, -1.0, 0.5, 7.0], [1.2, 0.4, -0.7, 0.0]], dtype=torch.float64)


def test_the_sum_is_that_of_all_plans() -> None:
    a, b, c = SCORES[0, :3].exp().tolist()
    first = c * (1 + a + b + 2 * a * b)
    a, b, c = SCORES[1, :3].exp().tolist()
    expected = torch.tensor([first, a * b + b * c + c], dtype=torch.float64).log()
    torch.testing.assert_close(log_partitions(WEIGHTED_LOSS_RULES, NAMES, SCORES), expected)


def test_it_can_be_differentiated_twice() -> None:
    scores = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda given: log_partitions(WEIGHTED_LOSS_RULES, NAMES, given), (scores,))
    assert torch.autograd.gradgradcheck(lambda given: log_partitions(WEIGHTED_LOSS_RULES, NAMES, given), (scores,))


def test_the_kind_of_number_is_kept_and_what_rules_do_not_have_gets_no_gradient() -> None:
    scores = SCORES.float().requires_grad_()
    sums = log_partitions(WEIGHTED_LOSS_RULES, NAMES, scores)
    assert sums.dtype == torch.float32
    sums.sum().backward()
    assert scores.grad is not None
    assert scores.grad[:, 3].tolist() == [0, 0]
    assert scores.grad[0, 2] == pytest.approx(1)  # each plan of the first rules has c once


def test_the_mean_reward_of_a_policy_rises_along_its_gradient() -> None:
    """The mean of an additive reward is a derivative of the sum, so no plan has to be drawn."""
    values = torch.tensor([[1.0, -1.0, 0.0, 0.0]], dtype=torch.float64)
    scores = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    means = []
    for _ in range(30):
        (counts,) = torch.autograd.grad(
            log_partitions(WEIGHTED_LOSS_RULES[:1], NAMES, scores).sum(), scores, create_graph=True
        )
        mean = (counts * values).sum()
        means.append(mean.item())
        (step,) = torch.autograd.grad(mean, scores)
        scores = (scores + 5 * step).detach().requires_grad_()
    assert means[0] == pytest.approx(0, abs=1e-9)
    assert means[-1] > 0.9
    assert means == sorted(means)
