"""Scorers: models that give each option of a question a probability.

A scorer is a function from questions to log-probabilities. In PyTorch's gradient mode it is differentiable, so the same
function answers questions and is trained.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from formal_llm.errors import LLMError
from formal_llm.llms.question import Question

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: The maximum number of answers that are remembered.
REMEMBERED = 50_000


class Scorer(ABC):
    """A model that scores the options of questions.

    Equal questions in one call are computed once. Without gradients, computed values are remembered until
    :meth:`forget` is called, which is required after each change of the weights.

    Attributes:
        model: the network, a ``torch.nn.Module``.
        stats: the number of questions, and of those that were computed.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase

    def __init__(self) -> None:
        self._remembered: OrderedDict[Hashable, torch.Tensor] = OrderedDict()
        self.stats = {"questions": 0, "computed": 0}

    def log_probabilities(self, questions: Sequence[Question]) -> torch.Tensor:
        """Return the natural logarithms of the options' probabilities.

        Args:
            questions: questions of exactly one option each, at least one question.

        Returns:
            A float32 tensor ``[questions, most options]``; ``-inf`` where a question has fewer options. Each row is
            normalised over the question's options.

        Raises:
            LLMError: a question is too long for the model, or asks for several options.
        """
        import torch

        for question in questions:
            if question.several:
                raise LLMError("a selection is asked for option by option; see formal_llm.llms.local.selections")
        keys = [self.key(question) for question in questions]
        distinct: dict[Hashable, Question] = dict(zip(keys, questions, strict=True))
        self.stats["questions"] += len(questions)
        with_gradient = torch.is_grad_enabled()
        known = {} if with_gradient else self._remembered
        new = {key: question for key, question in distinct.items() if key not in known}
        if new:
            values = self._compute(list(new.values()))
            known.update(zip(new, values if with_gradient else [value.cpu() for value in values], strict=True))
            self.stats["computed"] += len(new)
        rows = [known[key] for key in keys]
        while len(self._remembered) > REMEMBERED:
            self._remembered.popitem(last=False)
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)

    def forget(self) -> None:
        """Forget all computed values, since the weights have changed."""
        self._remembered.clear()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Allow other weights within the block: computed values are forgotten before and after."""
        self.forget()
        try:
            yield
        finally:
            self.forget()

    def weigh_selection(self, question: Question) -> list[float] | None:  # noqa: ARG002
        """Return the log odds of each option of a selection to belong to it; None if it is asked option by option."""
        return None

    @abstractmethod
    def key(self, question: Question) -> Hashable:
        """Return what the model sees of a question: questions with equal keys get equal probabilities."""

    @abstractmethod
    def _compute(self, questions: Sequence[Question]) -> list[torch.Tensor]:
        """Compute for each question a float32 tensor ``[options]`` of normalised log-probabilities."""


# -- passes ------------------------------------------------------------------------------------------------------------


def fitting_tokens(model: PreTrainedModel, on_cpu: int) -> int:
    """Return the best number of tokens in one pass: on a CPU a small one, so that activations stay in its caches."""
    return on_cpu if model.get_input_embeddings().weight.device.type == "cpu" else 8_192


def batches(lengths: Sequence[int], most: int, rows: Sequence[int] | None = None) -> Iterator[list[int]]:
    """Split texts into batches of at most ``most`` tokens, including padding; a single text may have more.

    The shortest texts come first, since texts of similar length need little padding together.

    Args:
        lengths: the number of tokens of each text.
        most: the maximum number of tokens of a batch.
        rows: how often each text is read; once by default.

    Returns:
        For each batch the indices of its texts.
    """
    batch: list[int] = []
    width = height = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        width, more = max(width, lengths[index]), 1 if rows is None else rows[index]
        if batch and width * (height + more) > most:
            yield batch
            batch, width, height = [], lengths[index], 0
        batch.append(index)
        height += more
    if batch:
        yield batch
