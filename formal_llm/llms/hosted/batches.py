"""Many questions in one request, answered within a day at half the price: the batch interfaces of providers.

In planning, the questions that all walks ask at a time become one batch. A run that is stopped cancels its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from threading import Event

from pydantic_ai.direct import model_request_batch
from pydantic_ai.models import Model
from pydantic_ai.models.batch import BatchRequest
from pydantic_ai.models.decision import DecisionModel

from formal_llm.errors import LLMError, RunStopped
from formal_llm.llms.background import run_on_loop
from formal_llm.llms.hosted.chat import convert_chat
from formal_llm.llms.hosted.models import HostedLLM, read_usage
from formal_llm.llms.llm import LLM
from formal_llm.llms.providers import resolve
from formal_llm.llms.question import Answer, Question


def _has_batches(model: Model) -> bool:
    return not isinstance(model, DecisionModel) and model.batch_max_requests is not None


class BatchedLLM(LLM):
    """A hosted model that is asked in batches: slow, for half the price.

    Requests that expire or fail for a passing reason are sent again, in two more batches at most.

    Args:
        llm: ``openai:MODEL``, ``anthropic:MODEL``, or another provider with batches; or such a model.
        stop: once it is set, nothing is waited for any more, and the batch is cancelled.
        look: the seconds before the first look at a batch; later ones are further apart, up to a minute.

    Raises:
        LLMError: the provider has no batches.
    """

    reads = HostedLLM.reads
    at_once = 10_000

    def __init__(self, llm: str | HostedLLM, stop: Event | None = None, look: float = 5.0) -> None:
        self.name = llm if isinstance(llm, str) else llm.name
        provider, _, model = self.name.partition(":")
        # OpenAI's batches are asked by the newer of its two protocols.
        name = f"openai-responses:{model}" if provider == "openai" else self.name
        made = resolve(name) if isinstance(llm, str) else llm
        if not isinstance(made, HostedLLM) or not _has_batches(made.model):
            raise LLMError(f"{self.name} is not asked in batches: openai:MODEL and anthropic:MODEL are")
        llm = made
        self._llm = llm
        self._stop = stop or Event()
        self._look = timedelta(seconds=look)
        #: That of the model: answers are the same as without batches.
        self.identity = {**(llm.identity or {}), "llm": self.name}
        self.can = frozenset(llm.can) - {"continue"}

    def answer_all(self, questions: Sequence[Question], /) -> list[Answer | LLMError]:
        """Answer the questions by a batch, or by several where the provider's bounds demand it.

        Raises:
            ProviderError: no batch could be created, or its state is not to be had.
            RunStopped: it was stopped.
        """
        working = run_on_loop(self._ask_all(questions))
        try:
            while not working.done():
                if self._stop.wait(0.05):
                    raise RunStopped
            return working.result()
        finally:
            working.cancel()

    async def _ask_all(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        requests = [self._prepare(place, question) for place, question in enumerate(questions)]
        failure: LLMError
        try:
            longest = max(self._look, timedelta(minutes=1))
            responses = await model_request_batch(
                self._llm.model, requests, poll_interval=self._look, max_poll_interval=longest
            )
        except Exception as error:
            failure = self._llm.explain(error)
        else:
            return [self._read(question, one) for question, one in zip(questions, responses, strict=True)]
        raise failure

    def _prepare(self, place: int, question: Question) -> BatchRequest:
        settings, parameters = self._llm.prepare(question)
        kept = {name: value for name, value in settings.items() if name != "max_retries"}
        messages = convert_chat(question.messages)
        return BatchRequest(
            custom_id=f"question-{place}", messages=messages, model_settings=kept, model_request_parameters=parameters  # type: ignore[arg-type]
        )  # fmt: skip

    def _read(self, question: Question, response: object) -> Answer | LLMError:
        if isinstance(response, Exception):
            return self._llm.explain(response)
        try:
            return self._llm.read(question, response, read_usage(response.usage))  # type: ignore[arg-type, attr-defined]
        except LLMError as error:
            return error
