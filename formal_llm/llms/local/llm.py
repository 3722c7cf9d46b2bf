"""The common base of local models as LLMs."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import ClassVar

from formal_llm.errors import LLMError, ModelError
from formal_llm.llms.llm import LLM
from formal_llm.llms.local.memory import fewer_tokens, fitted
from formal_llm.llms.local.scorer import Scorer
from formal_llm.llms.local.selections import one_by_one
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.scoring import read_log_odds
from formal_llm.llms.text_request import TextRequest
from formal_llm.llms.usage import TokenUsage


class LocalLLM(LLM):
    """A local model that scores the options: each answer has the probabilities of all of them.

    The most probable option is chosen, the first of equally probable ones. Threads may share the model; they wait for
    each other, and many questions are answered faster together (``submit``) than from many threads.

    Attributes:
        name: its name; empty for a model in memory without a name.
        settings: the settings that affect its answers.
    """

    provider: ClassVar[str] = "local"
    at_once = 64

    def __init__(self, scorer: Scorer, name: str, settings: dict[str, object] | None = None) -> None:
        self.scorer = scorer
        self.name = name
        self.settings = dict(settings or {})
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or 'in memory'}>"

    @property
    def identity(self) -> dict[str, object] | None:  # type: ignore[override]  # it changes with the name
        """The settings that determine the answers, as JSON data: part of the key of an answer cache.

        None for a model in memory without a name, which a cache could not distinguish from another one.
        """
        return {"llm": f"{self.provider}:{self.name}", **self.settings} if self.name else None

    def answer_all(self, requests: Sequence[Question], /) -> list[Answer | LLMError]:
        """Answer all questions together, texts one by one; what is too long gets its ``LLMError`` instead."""
        choices = [request for request in requests if not isinstance(request, TextRequest)]
        chosen = iter(self._choose_all(choices) if choices else ())
        return [self._try_write(one) if isinstance(one, TextRequest) else next(chosen) for one in requests]

    def _try_write(self, request: TextRequest) -> Answer | LLMError:
        try:
            return self.write(request)
        except LLMError as error:
            return error

    def write(self, request: TextRequest) -> Answer:
        """Write a text; a model that only chooses is never asked.

        Raises:
            LLMError: the request is too long for the model.
        """
        raise NotImplementedError

    def _choose_all(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        found: list[Answer | LLMError | None] = [None] * len(questions)
        asking = {number: one_by_one(question) for number, question in enumerate(questions) if question.several}
        spent = dict.fromkeys(asking, TokenUsage())
        with self._lock:
            plain = [number for number, question in enumerate(questions) if not question.several]
            for number, outcome in zip(plain, self._answer_single([questions[n] for n in plain]), strict=True):
                found[number] = outcome
            waiting: dict[int, Question] = {}
            for number, steps in asking.items():
                odds = self._weigh_selection(questions[number])
                if odds is not None:
                    found[number] = odds
                    continue
                try:
                    waiting[number] = next(steps)
                except StopIteration as end:  # there is a single option
                    found[number] = Answer(end.value)
            while waiting:  # selections, one option at a time, all of them together
                numbers = list(waiting)
                for number, outcome in zip(numbers, self._answer_single([waiting[n] for n in numbers]), strict=True):
                    del waiting[number]
                    if isinstance(outcome, LLMError):
                        found[number] = outcome
                        continue
                    spent[number] += outcome.usage
                    try:
                        waiting[number] = asking[number].send(outcome.number)
                    except StopIteration as end:
                        found[number] = Answer(end.value, usage=spent[number])
        return [outcome for outcome in found if outcome is not None]

    def _weigh_selection(self, question: Question) -> Answer | LLMError | None:
        """Answer a selection by the scores of its options; None if it is asked option by option."""
        import torch

        try:
            with torch.no_grad():
                odds = self.scorer.weigh_selection(question)
        except LLMError as error:
            return error
        return None if odds is None else read_log_odds(question, odds, TokenUsage(1, self._measure_length(question)))

    def _answer_single(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """Answer questions of exactly one option."""
        import torch

        if not questions:
            return []
        try:
            with torch.no_grad():
                logs = fitted(lambda: self.scorer.log_probabilities(questions), lambda: fewer_tokens(self.scorer))
                table = logs.exp().tolist()
        except LLMError as error:
            if len(questions) == 1:
                return [error]
            half = len(questions) // 2  # the valid ones stay together as far as possible
            return self._answer_single(questions[:half]) + self._answer_single(questions[half:])
        return [self._answer_row(question, row) for question, row in zip(questions, table, strict=True)]

    def _answer_row(self, question: Question, row: Sequence[float]) -> Answer | LLMError:
        likely = row[: len(question.options)]
        if not all(map(math.isfinite, likely)):
            return ModelError(
                f"{self.name or 'the model'} gives probabilities that are no numbers: its weights are damaged, or its "
                "numbers overflow; try dtype float32"
            )
        best = max(range(len(likely)), key=likely.__getitem__)
        return Answer((best + 1,), dict(enumerate(likely, 1)), usage=TokenUsage(1, self._measure_length(question)))

    def _measure_length(self, question: Question) -> int:  # noqa: ARG002
        """Return the number of tokens of a question if it is known without effort, else 0."""
        return 0
