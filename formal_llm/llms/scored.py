"""Ways of scoring options for models on servers: ``scored:calibrated:llamacpp:MODEL``.

The server reports how probable given texts are; the scores of the options are computed from that as for local models
(:mod:`formal_llm.llms.scoring`). So the same model gives the same probabilities in both cases, up to rounding.

With ``search="exact"`` the steps of a plan are scored by their texts, where the scoring is of texts alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

from formal_llm.errors import LLMError
from formal_llm.llms.generation import AnswerScoringLLM, Writing
from formal_llm.llms.llm import LLMLike, WrapperLLM, answered
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.scoring import (
    BY_TEXT,
    UNLISTED,
    Reading,
    Scoring,
    combine_scores,
    is_selected_at_once,
    named,
    read_log_odds,
    weights,
)
from formal_llm.llms.usage import TokenUsage

#: The maximum number of priors that are kept: scores of texts for an unknown task.
_KEPT = 10_000


class ScoredLLM(WrapperLLM):
    """A model on a server, whose options are scored by the probabilities that the server reports.

    The most probable option is chosen, the first of equally probable ones. Requests for texts are passed to the server
    unchanged; so are selections, unless texts are scored and any set of the options is an answer.

    Args:
        llm: an adapter that reports how probable answers are: ``vllm:``, ``llamacpp:``.
        scoring: see :mod:`formal_llm.llms.scoring`.

    Raises:
        LLMError: the adapter does not report probabilities.
        ValueError: the scoring is not valid.
    """

    def __init__(self, llm: LLMLike, scoring: Scoring) -> None:
        super().__init__(llm)
        if not isinstance(self.llm, AnswerScoringLLM):
            raise LLMError(f"{self.name} does not report how probable texts are; vllm:MODEL and llamacpp:MODEL do")
        self._scorer = self.llm
        self.scoring = weights(scoring)
        self._priors: dict[tuple[tuple[Message, ...], tuple[str, ...]], Sequence[tuple[float, int]]] = {}
        self._lock = Lock()

    @property
    def identity(self) -> dict[str, object] | None:
        """The identity of the server's model, and the scoring."""
        known = super().identity
        return None if known is None else {**known, "scoring": named(self.scoring)}

    @property
    def wording(self) -> str:
        """The preferred wording: without a list of options if only their texts are scored."""
        return UNLISTED if BY_TEXT.issuperset(self.scoring) else super().wording

    def choose(self, question: Question) -> Answer:
        """Return the most probable option with the probabilities of all.

        Raises:
            LLMError: the server does not report probabilities, or could not be asked.
        """
        if isinstance(question, Writing):
            return answered(self.llm, question)
        at_once = is_selected_at_once(question, self.scoring)
        if question.several and not at_once:
            return answered(self.llm, question)
        asked = 0

        def report(reading: Reading) -> Sequence[tuple[float, int]]:
            nonlocal asked
            key = reading.messages, reading.answers
            known = self._priors.get(key) if reading.prior else None
            if known is None:
                asked += 1
                known = self._scorer.answer_log_probabilities(reading.messages, reading.answers)
                if known is None:
                    raise LLMError(f"the server of {self.name} does not report how probable texts are")
                if reading.prior:
                    with self._lock:
                        if len(self._priors) >= _KEPT:
                            self._priors.clear()
                        self._priors[key] = known
            return known

        scores = combine_scores(question, self.scoring, report)
        if at_once:
            return read_log_odds(question, scores, TokenUsage(asked))
        likely = {n: math.exp(log) for n, log in enumerate(scores, 1)}
        best = max(likely, key=likely.__getitem__)
        return Answer((best,), likely, usage=TokenUsage(asked))

    async def _achoose(self, question: Question) -> Answer:
        import asyncio  # imported here: it takes half of this library's import time, and is rarely needed

        # The requests block while waiting for the server, so they run in a thread.
        return await asyncio.to_thread(self.choose, question)

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        found: list[Answer | LLMError] = []
        for question in questions:
            try:
                found.append(self.choose(question))
            except LLMError as error:
                found.append(error)
        return found
