"""Answers that are sentences, read where they name one option without doubt: ``lenient:LLM``."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.errors import InvalidAnswer, LLMError
from formal_llm.llms.llm import WrapperLLM, aanswered, all_answered, answered, checked
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.reading import read_sentence
from formal_llm.llms.usage import NO_TOKENS


class LenientLLM(WrapperLLM):
    """An LLM whose illegal answers are read as sentences, and marked, where these name one option without doubt."""

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
            if (read := _read_again(question, error)) is None:
                raise
            return read

    async def _achoose(self, question: Question) -> Answer:
        try:
            return question.check(await aanswered(self._awaited, question))
        except InvalidAnswer as error:
            if (read := _read_again(question, error)) is None:
                raise
            return read

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        outcomes = zip(questions, all_answered(self._batched, questions), strict=True)
        known = [(question, checked(question, outcome)) for question, outcome in outcomes]
        return [(isinstance(one, InvalidAnswer) and _read_again(question, one)) or one for question, one in known]


def _read_again(question: Question, error: InvalidAnswer) -> Answer | None:
    text = error.transcript[-1][1] if error.transcript else ""
    try:
        numbers = read_sentence(text, len(question.options))
    except ValueError:
        return None
    legal = not question.problem(numbers)
    return Answer(numbers, None, text, error.usage or NO_TOKENS, lenient=True) if legal else None
