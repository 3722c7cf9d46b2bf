"""Answers that are sentences, read where they name one option without doubt: ``lenient:LLM``."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.errors import InvalidAnswer, LLMError
from formal_llm.llms.llm import WrapperLLM, aanswered, all_answered, answered, checked
from formal_llm.llms.question import NO_TOKENS, Answer, Question
from formal_llm.llms.reading import read_sentence


class LenientLLM(WrapperLLM):
    """An LLM whose answers are read by :func:`~formal_llm.llms.reading.read_sentence` where they are not legal.

    Such answers are marked: their ``lenient`` is true.

    Args:
        llm: the LLM that answers: a provider string, a function or an object.
    """

    @property
    def identity(self) -> dict[str, object] | None:
        """The identity of the wrapped LLM, and how its answers are read."""
        known = super().identity
        return None if known is None else {**known, "lenient": True}

    def choose(self, question: Question) -> Answer:
        """Return the answer of the LLM.

        Raises:
            InvalidAnswer: the answer is not legal, and no sentence that names one option.
        """
        try:
            return question.check(answered(self.llm, question))
        except InvalidAnswer as error:
            return _read_again(question, error)

    async def _achoose(self, question: Question) -> Answer:
        try:
            return question.check(await aanswered(self._awaited, question))
        except InvalidAnswer as error:
            return _read_again(question, error)

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        outcomes = [checked(*pair) for pair in zip(questions, all_answered(self._batched, questions), strict=True)]
        for place, (question, outcome) in enumerate(zip(questions, outcomes, strict=True)):
            if isinstance(outcome, InvalidAnswer):
                try:
                    outcomes[place] = _read_again(question, outcome)
                except InvalidAnswer as error:
                    outcomes[place] = error
        return outcomes

    def close(self) -> None:
        """Do nothing: nothing is open."""


def _read_again(question: Question, error: InvalidAnswer) -> Answer:
    text = error.transcript[-1][1] if error.transcript else ""
    try:
        numbers = read_sentence(text, len(question.options))
    except ValueError:
        raise error from None
    return question.check(Answer(numbers, text=text, usage=error.usage or NO_TOKENS, lenient=True))
