"""Scorers: models that give each option of a question a probability.

A scorer is a function from questions to log-probabilities. In PyTorch's gradient mode it is differentiable, so the same
function answers questions and is trained.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from formal_llm.errors import LLMError
from formal_llm.llms.local.answer_tree import AnswerTree
from formal_llm.llms.local.rendering import Prompted, Renderer
from formal_llm.llms.question import Question
from formal_llm.llms.scoring import Reading, is_selected_at_once, readings, weigh_options

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from formal_llm.llms.local.kept_graphs import KeptGraphs

#: The maximum number of answers that are remembered.
_REMEMBERED = 50_000


class Scorer(ABC):
    """A model that scores the options of questions.

    Equal questions in one call are computed once. Without gradients, computed values are remembered until
    :meth:`forget` is called, which is required after each change of the weights.

    Attributes:
        model: the network, a ``torch.nn.Module``.
        stats: the number of questions, and of those that were computed.
        graphs: the recent passes with their graphs, while they are kept (:meth:`keeping_graphs`).
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    graphs: KeptGraphs | None = None

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
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-torch.inf)

    def forget(self) -> None:
        """Forget all computed values, since the weights have changed."""
        self._remembered.clear()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Allow other weights within the block: computed values are forgotten before and after; graphs are kept."""
        graphs, self.graphs = self.graphs, None
        self.forget()
        try:
            yield
        finally:
            self.forget()
            self.graphs = graphs

    def keeping_graphs(self, most: int) -> AbstractContextManager[None]:  # noqa: ARG002
        """Keep the graphs of passes without gradients in the block, up to ``most`` bytes, for later gradients.

        Log-probabilities with gradients are then leaves, whose gradients reach the weights with :meth:`settle`. This is
        implemented by decoders that read packed rows; others keep nothing.
        """
        return nullcontext()

    @property
    def leaves(self) -> list[torch.Tensor]:
        """The tensors that collect gradients instead of the weights, until :meth:`settle` is called."""
        return [] if self.graphs is None else self.graphs.leaves

    def settle(self) -> None:
        """Propagate the gradients of answers with kept graphs to the weights, and drop the graphs."""
        if self.graphs is not None:
            self.graphs.backward()
            self.graphs = None

    def drop_graphs(self) -> str:
        """Keep no graphs from now on; return a description of the change, empty if there were none."""
        kept, self.graphs = self.graphs, None
        return "" if kept is None else "no graphs of rollouts"

    def weigh_selection(self, question: Question) -> list[float] | None:  # noqa: ARG002
        """Return the log odds of each option of a selection to belong to it; None if it is asked option by option."""
        return None

    @abstractmethod
    def key(self, question: Question) -> Hashable:
        """Return what the model sees of a question: questions with equal keys get equal probabilities."""

    @abstractmethod
    def _compute(self, questions: Sequence[Question]) -> list[torch.Tensor]:
        """Compute for each question a float32 tensor ``[options]`` of normalised log-probabilities."""


class PromptScorer(Scorer):
    """A model that scores the answers to rendered prompts: a text for each option, and the token that ends it.

    Attributes:
        scoring: the mode of scoring (:mod:`formal_llm.llms.scoring`).
        tokens_read: the number of tokens that the model has read so far, without remembered ones, padding and
            trials.
    """

    def __init__(self, model: PreTrainedModel, renderer: Renderer, batch_tokens: int | None) -> None:
        super().__init__()
        self.model = model
        self.renderer = renderer
        self.tokenizer = renderer.tokenizer
        self.batch_tokens = batch_tokens or fitting_tokens(model, 2_048)
        self.scoring = "number"
        self.tokens_read = 0
        #: The values of earlier readings: the same question for an unknown task is part of many scores.
        self._known: OrderedDict[Hashable, torch.Tensor] = OrderedDict()

    def forget(self) -> None:
        """Forget all computed values, since the weights have changed."""
        super().forget()
        self._known.clear()

    def key(self, question: Question) -> Hashable:
        """Return the tokens of the prompt, and the answers that are scored."""
        numbers = len(question.options) if self.scoring == "number" else None
        answers = numbers or tuple(option.text for option in question.options)
        task = question.task if self.scoring == "calibrated" else ""
        return self.renderer.tokens(question.messages), answers, task

    def weigh_selection(self, question: Question) -> list[float] | None:
        """Weigh a selection by the texts of its options, where texts alone are scored and any set is an answer."""
        if not is_selected_at_once(question, self.scoring):
            return None

        def report(reading: Reading) -> list[float]:
            prompt = self.renderer.answered(reading.messages, reading.answers)
            key = prompt.tokens, reading.answers
            if key not in self._known:
                self._known[key] = self.score([prompt])[0]
            logs: list[float] = self._known[key].tolist()
            return logs

        return weigh_options(question, self.scoring, report)

    def _compute(self, questions: Sequence[Question]) -> list[torch.Tensor]:
        import torch

        parts = [readings(one, self.scoring) for one in questions]
        asked: dict[Hashable, Prompted] = {}
        keys: dict[Reading, Hashable] = {}
        for reading in (reading for part in parts for reading in part):
            prompt = self.renderer.answered(reading.messages, reading.answers)
            keys[reading] = prompt.tokens, reading.answers
            asked.setdefault(keys[reading], prompt)
        with_gradient = torch.is_grad_enabled()
        known: dict[Hashable, torch.Tensor] = self._known
        if with_gradient:  # only the values whose graphs are kept
            kept = {} if self.graphs is None else self.graphs.known
            known = {key: kept[key] for key in asked if key in kept}
        new = [key for key in asked if key not in known]
        if new:
            values = dict(zip(new, self.score([asked[key] for key in new]), strict=True))
            known.update(values)
            if self.graphs is not None and not with_gradient:
                self.graphs.known.update((key, value) for key, value in values.items() if value.requires_grad)

        def score(way: Sequence[Reading]) -> torch.Tensor:
            found = []
            for reading in way:
                logs = known[keys[reading]]
                found.append(reading.weight * logs[torch.tensor(reading.of, device=logs.device)])
            return torch.log_softmax(torch.stack(found).sum(dim=0), dim=0)

        scores = [score(part) for part in parts]
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return scores

    @abstractmethod
    def score(self, prompts: Sequence[Prompted]) -> list[torch.Tensor]:
        """Return for each prompt the log-probabilities with which the model would write its answers, not normalised."""


def tree_log_probabilities(logits: torch.Tensor, trees: Sequence[AnswerTree]) -> list[torch.Tensor]:
    """Compute the log-probabilities of answers from the logits at the nodes of their trees.

    Args:
        logits: ``[places, vocabulary]``: for each tree the end of its prompt, then its inner nodes in order.
        trees: the answers to each question.

    Returns:
        For each tree a float32 tensor ``[answers]``, which is not normalised over the answers.
    """
    import torch

    logs = torch.log_softmax(logits.float(), dim=-1)
    rows, tokens, answers, counts = [], [], [], []
    place = total = 0
    for tree in trees:
        for number, path in enumerate(tree.paths):
            for node, token in path:
                rows.append(place + 1 + node)
                tokens.append(token)
                answers.append(total + number)
        place += 1 + len(tree.tokens)
        total += len(tree.paths)
        counts.append(len(tree.paths))
    device = logits.device
    picked = logs[torch.tensor(rows, device=device), torch.tensor(tokens, device=device)]
    sums = torch.zeros(total, device=device).index_add(0, torch.tensor(answers, device=device), picked)
    return list(sums.split(counts))


def cache_argument(model: PreTrainedModel) -> str:
    """Return the name by which a model takes keys and values: ``cache``, before transformers 5.24 another one."""
    return "cache" if "cache" in inspect.signature(type(model).forward).parameters else "past_key_values"


def checkpoints(model: PreTrainedModel) -> bool:
    """Return whether a model recomputes its activations in the backward pass, and so keeps no keys and values."""
    wanted = getattr(model, "is_activation_checkpointing", None)
    return bool(model.training and (model.is_gradient_checkpointing if wanted is None else wanted))


# -- passes ------------------------------------------------------------------------------------------------------------


def fitting_tokens(model: PreTrainedModel, on_cpu: int) -> int:
    """Return the best number of tokens in one pass: on a CPU a small one, so that activations stay in its caches."""
    return on_cpu if model.get_input_embeddings().weight.device.type == "cpu" else 8_192


def by_length(lengths: Sequence[int]) -> list[int]:
    """Return the indices of texts, the shortest first, since texts of similar length need little padding together."""
    return sorted(range(len(lengths)), key=lengths.__getitem__)


def batches(
    order: Iterable[int], lengths: Sequence[int], most: int, rows: Sequence[int] | None = None
) -> Iterator[list[int]]:
    """Split texts into batches of at most ``most`` tokens, including padding; a single text may have more.

    Args:
        order: the indices of the texts, in the order of processing.
        lengths: the number of tokens of each text.
        most: the maximum number of tokens of a batch.
        rows: how often each text is read; once by default.
    """
    batch: list[int] = []
    width = height = 0
    for index in order:
        width, more = max(width, lengths[index]), 1 if rows is None else rows[index]
        if batch and width * (height + more) > most:
            yield batch
            batch, width, height = [], lengths[index], 0
        batch.append(index)
        height += more
    if batch:
        yield batch
