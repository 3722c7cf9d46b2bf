"""Several LLMs, the next one where the first does not answer: ``openai:A,anthropic:B``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from formal_llm.errors import LLMError, ProviderError
from formal_llm.llms.llm import LLM, AsyncLLM, BatchLLM, LLMLike, WrapperLLM, aanswered, all_answered, answered, resolve
from formal_llm.llms.question import Answer, Question, what_is_read

#: The seconds for which an LLM that failed is asked only after the others.
LEFT_ALONE = 30.0


class FallbackLLM(WrapperLLM):
    """Asks the first LLM, and the next one where its provider fails.

    Only failures of a provider (:class:`~formal_llm.errors.ProviderError`: no connection, a refused key, a rate limit)
    lead to the next one. An answer that is not legal is an answer.

    Args:
        llms: the LLMs, the preferred one first.

    Raises:
        LLMError: there are less than two, or they are not all asked in the same way.
    """

    def __init__(self, llms: Sequence[LLMLike], clock: Callable[[], float] = monotonic) -> None:
        self.llms: list[LLM] = [resolve(llm) for llm in llms]
        if len(self.llms) < 2:
            raise LLMError("a fallback needs two LLMs at least, as in openai:A,anthropic:B")
        for kind in (AsyncLLM, BatchLLM):
            if len({isinstance(llm, kind) for llm in self.llms}) > 1:
                raise LLMError("hosted models and models on this machine cannot take each other's place")
        super().__init__(self.llms[0])
        self.name = ",".join(str(getattr(llm, "name", type(llm).__name__)) for llm in self.llms)
        if isinstance(self.llm, AsyncLLM):
            self.__dict__["aclose"] = self._aclose_all
        self._clock = clock
        self._failed_at = [-LEFT_ALONE] * len(self.llms)

    @property
    def identity(self) -> dict[str, object] | None:
        """The identities of all; None if one is unknown."""
        known = [getattr(llm, "identity", None) for llm in self.llms]
        return None if None in known else {"llm": self.name, "any of": known}

    @property
    def reads(self) -> frozenset[str]:
        """What the answers of all depend on together."""
        return frozenset().union(*map(what_is_read, self.llms))

    def choose(self, question: Question) -> Answer:
        """Return the answer of the first LLM whose provider does not fail.

        Raises:
            ProviderError: all failed; the error of the last one that was asked.
            InvalidAnswer: the one that answered gave no legal answer.
        """
        error: ProviderError | None = None
        for place, llm in self._list_by_preference():
            try:
                return answered(llm, question)
            except ProviderError as failed:
                error = self._note_failure(place, failed)
        assert error is not None
        raise error

    async def _achoose(self, question: Question) -> Answer:
        error: ProviderError | None = None
        for place, llm in self._list_by_preference():
            try:
                return await aanswered(llm, question)
            except ProviderError as failed:
                error = self._note_failure(place, failed)
        assert error is not None
        raise error

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        found: list[Answer | LLMError | None] = [None] * len(questions)
        for place, llm in self._list_by_preference():
            left = [number for number, one in enumerate(found) if one is None or isinstance(one, ProviderError)]
            assert isinstance(llm, BatchLLM)
            for number, one in zip(left, all_answered(llm, [questions[n] for n in left]) if left else (), strict=True):
                found[number] = self._note_failure(place, one) if isinstance(one, ProviderError) else one
        return [one for one in found if one is not None]

    def _list_by_preference(self) -> list[tuple[int, LLM]]:
        """The LLMs with their places; those that failed a short time ago come last."""
        now = self._clock()
        return sorted(enumerate(self.llms), key=lambda entry: now - self._failed_at[entry[0]] < LEFT_ALONE)

    def _note_failure(self, place: int, error: ProviderError) -> ProviderError:
        self._failed_at[place] = self._clock()
        return error

    async def _aclose_all(self) -> None:
        for llm in self.llms:
            if isinstance(llm, AsyncLLM):
                await llm.aclose()
