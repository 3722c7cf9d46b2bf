"""Training of the head that reads from a sentence which steps a plan needs.

The head is a :class:`~formal_llm.llms.local.step_head.StepHead`. The encoder is frozen, so each sentence is encoded
once and training takes seconds on a CPU. The loss is the binary cross-entropy of each step, with labels smoothed by
:data:`SMOOTHING`; the optimiser is AdamW with the one-cycle schedule (Smith and Topin 2018, arXiv 1708.07120). If there
are sentences for validation, the seed is kept with which most of their plans have exactly the right steps.

Two other objectives can be maximised instead:

- The likelihood of plans under the rules (a conditional random field over the grammar, by the exact sums of
  :class:`~formal_llm.WeightedRules`, in double precision: its gradient by the scores are the marginals, and the
  gradient of a combination of marginals is a covariance, so it can be differentiated twice). It is not the default,
  since it was worse on 120 sentences (78 exact plans rather than 84): steps can be taken in many orders, the
  likelihood is that of all of them together, but the best plan is a single one.
- The mean reward of plans drawn from the rules with the head's scores (RLTF; the policy is the exact distribution over
  valid plans). A draw costs no pass of a model. The estimator is REINFORCE with the mean of the other draws as the
  baseline (leave-one-out: Kool et al. 2019). The gradient of a plan's log-probability by the scores is what it uses
  less the marginals, and the marginals cancel, since the advantages add up to 0.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from formal_llm.automata import WeightedRules, Word
from formal_llm.llms.local.encoders import BiEncoderScorer
from formal_llm.llms.local.step_head import StepHead
from formal_llm.planning import Planner, Task
from formal_llm.planning.drivers.exact import weigh_steps
from formal_llm.planning.rewordings import LabelledTask
from formal_llm.rltf.reference_tools import compute_f1

#: The width of the inner layer, and the hardness of the maximum over tokens.
HIDDEN, HEAT = 96, 4.0
#: Labels are this, and one minus this, instead of 0 and 1.
SMOOTHING = 0.025
#: The share of inputs that are left out at random.
DROPOUT = 0.2
#: The highest learning rate, the decay of weights, and the number of sentences of an update.
RATE, DECAY, BATCH = 3e-3, 0.01, 32
#: What is maximised: the likelihood of each step by itself, that of plans under the rules, or the mean reward.
Maximised = Literal["steps", "plans", "rewards"]
#: The reward of a plan for a sentence.
HeadReward = Callable[[LabelledTask, Word], float]


class TrainedHead(NamedTuple):
    """A head, the seed that it was trained with, and on how many sentences for validation its plans are exact."""

    head: StepHead
    seed: int
    exact: int


class HeadSettings(NamedTuple):
    """How a head is trained.

    Attributes:
        epochs: how often each sentence is read.
        maximise: see :data:`Maximised`.
        samples: for rewards, how many plans are drawn for a sentence in an update, two at least.
        reward: for rewards; by default F1 of the plan's steps and those that the sentence calls for.
        start: the head to start from, with the same steps; by default one at random.
    """

    epochs: int = 15
    seeds: Sequence[int] = (0, 1, 2)
    maximise: Maximised = "steps"
    samples: int = 64
    reward: HeadReward | None = None
    start: StepHead | None = None


def train_head(
    planner: Planner,
    encoder: BiEncoderScorer,
    sentences: Sequence[LabelledTask],
    validation: Sequence[LabelledTask] = (),
    settings: HeadSettings | None = None,
    *,
    neutral: Sequence[str] = (),
    on_epoch: Callable[[int, int], None] | None = None,
    on_update: Callable[[int, float], None] | None = None,
) -> TrainedHead:
    """Train a head, and return the best one by validation; the first one without sentences for validation.

    Args:
        planner: the rules; its LLM is not used.
        encoder: gives the states of tokens.
        sentences: the sentences to train on.
        validation: the sentences by which the seed is chosen.
        settings: how it is trained.
        neutral: names of the rules that no sentence decides, such as inputs.
        on_epoch: called after each epoch with the seed and the epoch, from 1.
        on_update: called after each update with its number, from 1, and what is maximised, as it was before.

    Raises:
        ValueError: there are no sentences, or less than two samples.
    """
    settings = settings or HeadSettings()
    if not sentences:
        raise ValueError("there are no sentences to train on")
    if settings.samples < 2:
        raise ValueError(f"the other draws are the baseline, so there are two samples at least, not {settings.samples}")
    steps = [name for name in planner.table().vocabulary.terminals if name not in neutral]
    trainer = _HeadTrainer(planner, encoder, sentences, steps, tuple(neutral))
    read = [states.numpy() for states in encode_sentences(encoder, [task for task, _ in validation])]
    best: TrainedHead | None = None
    for seed in settings.seeds:
        head = trainer.train(seed, settings, on_epoch, on_update)
        exact = 0
        for states, (task, wanted) in zip(read, validation, strict=True):
            exact += plan_steps(planner, head.score(states), task) - {*neutral} == wanted
        if best is None or exact > best.exact:
            best = TrainedHead(head, seed, exact)
    assert best is not None
    return best


def encode_sentences(encoder: BiEncoderScorer, tasks: Sequence[Task]) -> list[torch.Tensor]:
    """Return the states of the tokens of each task's sentence."""
    with torch.no_grad():
        return [states.cpu() for states in encoder.token_states([task.description for task in tasks])] if tasks else []


def plan_steps(planner: Planner, scores: dict[str, float], task: Task) -> set[str]:
    """Return the steps of the best plan for a task by scores of steps."""
    rules = weigh_steps(planner.table(task))
    best = rules.with_scores({name: score for name, score in scores.items() if name in rules.scores}).best()
    return set() if best is None else set(best.word)


class _HeadTrainer:
    def __init__(
        self,
        planner: Planner,
        encoder: BiEncoderScorer,
        sentences: Sequence[LabelledTask],
        steps: Sequence[str],
        neutral: tuple[str, ...],
    ) -> None:
        self._planner, self._steps, self._neutral = planner, steps, neutral
        self._sentences = sentences
        self._states = encode_sentences(encoder, [task for task, _ in sentences])
        self._wanted = torch.tensor([[float(step in wanted) for step in steps] for _, wanted in sentences])

    def train(
        self,
        seed: int,
        settings: HeadSettings,
        on_epoch: Callable[[int, int], None] | None,
        on_update: Callable[[int, float], None] | None,
    ) -> StepHead:
        """Train a head with one seed."""
        generator = torch.Generator().manual_seed(seed)
        rng = random.Random(seed)
        network = _make_network(self._states[0].shape[1], len(self._steps), generator, settings.start)
        optimizer = torch.optim.AdamW(network.values(), lr=RATE, weight_decay=DECAY)
        batches = -(-len(self._sentences) // BATCH)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=settings.epochs * batches)
        update = 0
        for epoch in range(settings.epochs):
            order = rng.sample(range(len(self._sentences)), len(self._sentences))
            for begin in range(0, len(order), BATCH):
                batch = order[begin : begin + BATCH]
                scores = _score_batch(network, [self._states[place] for place in batch], generator)
                if settings.maximise == "rewards":
                    value, loss = self._follow_rewards(scores, batch, settings, rng)
                else:
                    loss = self._compute_loss(scores, batch, settings.maximise)
                    value = -loss.item()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
                update += 1
                if on_update is not None:
                    on_update(update, value)
            if on_epoch is not None:
                on_epoch(seed, epoch + 1)
        arrays = {name: weights.detach().numpy().astype(np.float32) for name, weights in network.items()}
        return StepHead(tuple(self._steps), self._neutral, HEAT, **arrays)

    def _compute_loss(self, scores: torch.Tensor, batch: Sequence[int], maximise: Maximised) -> torch.Tensor:
        """The negative log-likelihood of the steps, or of the plans."""
        wanted = self._wanted[batch]
        if maximise == "plans":
            rules = [self._rules_of(self._sentences[place].task) for place in batch]
            return (log_partitions(rules, self._steps, scores) - (scores * wanted).sum(dim=1)).mean()
        smooth = wanted * (1 - 2 * SMOOTHING) + SMOOTHING
        losses = torch.nn.functional.binary_cross_entropy_with_logits(scores, smooth, reduction="none")
        return losses.sum(dim=1).mean()

    def _follow_rewards(
        self, scores: torch.Tensor, batch: Sequence[int], settings: HeadSettings, rng: random.Random
    ) -> tuple[float, torch.Tensor]:
        """The mean reward of drawn plans, and a loss with its gradient."""
        reward = settings.reward or self._compute_f1
        values, slopes = [], []
        for place, row in zip(batch, scores.detach().double().tolist(), strict=True):
            sentence = self._sentences[place]
            rules = self._rules_of(sentence.task)
            words = weigh_row(rules, self._steps, row).sample(rng, settings.samples)
            rewards = np.array([reward(sentence, word) for word in words])
            advantages = (rewards - rewards.mean()) * len(words) / (len(words) - 1)  # less the mean of the others
            counts = np.array([[word.count(name) for name in self._steps] for word in words])
            values.append(rewards.mean())
            slopes.append(advantages @ counts / len(words))
        gradient = torch.tensor(np.array(slopes), dtype=scores.dtype)
        return float(np.mean(values)), -(scores * gradient).sum(dim=1).mean()

    def _compute_f1(self, sentence: LabelledTask, word: Word) -> float:
        return compute_f1(sentence.steps, {*word} - {*self._neutral})

    def _rules_of(self, task: Task) -> WeightedRules:
        return weigh_steps(self._planner.table(task))


def _make_network(
    width: int, count: int, generator: torch.Generator, start: StepHead | None
) -> dict[str, torch.Tensor]:
    """The weights of :class:`StepHead`: those of a head, or at random as in ``torch.nn.Linear``."""
    if start is not None:
        return {name: torch.tensor(array, requires_grad=True) for name, array in start.arrays.items()}

    def uniform(*shape: int, inputs: int) -> torch.Tensor:
        bound = inputs**-0.5
        return ((torch.rand(shape, generator=generator) * 2 - 1) * bound).requires_grad_()

    return {
        "inner": uniform(HIDDEN, width, inputs=width),
        "inner_bias": uniform(HIDDEN, inputs=width),
        "outer": uniform(count, HIDDEN, inputs=HIDDEN),
        "mean": uniform(count, width, inputs=width),
        "bias": uniform(count, inputs=width),
    }


def _score_batch(
    network: dict[str, torch.Tensor], states: Sequence[torch.Tensor], generator: torch.Generator
) -> torch.Tensor:
    """The scores ``[sentences, steps]``, as :meth:`StepHead.score`, with inputs left out at random."""

    def drop(values: torch.Tensor) -> torch.Tensor:
        kept = torch.rand(values.shape, generator=generator) >= DROPOUT
        return values * kept / (1 - DROPOUT)

    padded = torch.nn.utils.rnn.pad_sequence(list(states), batch_first=True)
    inside = torch.arange(padded.shape[1]) < torch.tensor([len(one) for one in states])[:, None]
    hidden = torch.tanh(drop(padded) @ network["inner"].T + network["inner_bias"])
    heated = (HEAT * (drop(hidden) @ network["outer"].T)).masked_fill(~inside[..., None], -torch.inf)
    means = padded.sum(dim=1) / inside.sum(dim=1, keepdim=True)
    return torch.logsumexp(heated, dim=1) / HEAT + drop(means) @ network["mean"].T + network["bias"]


def log_partitions(rules: Sequence[WeightedRules], names: Sequence[str], scores: torch.Tensor) -> torch.Tensor:
    """Return for each row of scores the logarithm of the sum of the weights of all plans.

    With it the log-likelihood of a plan is the sum of its scores minus this, and the mean reward of a policy over plans
    is a derivative of it.

    Args:
        rules: the rules of each row.
        names: the terminal of each column; those that the rules of a row do not have do not matter there.
        scores: ``[rows, names]``.

    Returns:
        A tensor ``[rows]``; differentiable twice.
    """
    found: torch.Tensor = _LogPartitions.apply(scores, tuple(rules), tuple(names))
    return found


def weigh_row(rules: WeightedRules, names: Sequence[str], row: Sequence[float]) -> WeightedRules:
    """Return rules with the scores of a row; names that they do not have are left out."""
    known = rules.scores
    return rules.with_scores({name: score for name, score in zip(names, row, strict=True) if name in known})


class _LogPartitions(torch.autograd.Function):  # type: ignore[misc]  # torch is typed in part
    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, rules: Sequence[WeightedRules], names: Sequence[str]) -> torch.Tensor:
        ctx.rules, ctx.names = rules, names
        ctx.save_for_backward(scores)
        rows = scores.detach().double().tolist()
        values = [weigh_row(one, names, row).log_partition() for one, row in zip(rules, rows, strict=True)]
        return torch.tensor(values, dtype=scores.dtype, device=scores.device)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (scores,) = ctx.saved_tensors
        marginals: torch.Tensor = _Marginals.apply(scores, ctx.rules, ctx.names)
        return gradients[0][:, None] * marginals, None, None


class _Marginals(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, rules: Sequence[WeightedRules], names: Sequence[str]) -> torch.Tensor:
        ctx.weighted = [
            weigh_row(one, names, row) for one, row in zip(rules, scores.detach().double().tolist(), strict=True)
        ]
        ctx.names = names
        found = [one.marginals() for one in ctx.weighted]
        table = [[marginals.get(name, 0.0) for name in names] for marginals in found]
        return torch.tensor(table, dtype=scores.dtype, device=scores.device)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (gradient,) = gradients
        rows = []
        for one, row in zip(ctx.weighted, gradient.double().tolist(), strict=True):
            known = one.scores
            values = {name: value for name, value in zip(ctx.names, row, strict=True) if name in known}
            slopes = one.expectation(values).gradient
            rows.append([slopes.get(name, 0.0) for name in ctx.names])
        return torch.tensor(rows, dtype=gradient.dtype, device=gradient.device), None, None
