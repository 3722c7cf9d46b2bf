"""``sure:0.6:LLM``: a person answers whenever the probability of the LLM's choice is below 0.6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from formal_llm.errors import LLMError
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import LLMLike, WrapperLLM, aanswered, all_answered, answered, resolve
from formal_llm.llms.question import Answer, Question, what_is_read


class SureLLM(WrapperLLM):
    """An LLM that answers only if it is sure; a person, or another LLM, answers the other questions.

    It is sure if its choice has at least a given probability, and unsure if its answer has no probabilities, as for
    selections. The other answerer is informed of what it would have chosen.

    Args:
        llm: the LLM that is asked first.
        least: the minimum probability of its choice, from 0 to 1.
        other: the LLM that answers if the first one is not sure.

    Attributes:
        asked, unsure: the number of questions, and of those that the other LLM answered.

    Raises:
        ValueError: the probability is not between 0 and 1.
    """

    def __init__(self, llm: LLMLike, least: float, other: LLMLike = "person") -> None:
        if not 0 <= least <= 1:
            raise ValueError(f"a probability is from 0 to 1, not {least}")
        super().__init__(llm)
        self.least = least
        self.other = resolve(other)
        self.asked = self.unsure = 0

    @property
    def identity(self) -> dict[str, object] | None:
        """The identities of both; None if one of them has none, as a person never does."""
        first, second = super().identity, getattr(self.other, "identity", None)
        return None if first is None or second is None else {**first, "least": self.least, "other": second}

    @property
    def reads(self) -> frozenset[str]:
        """What the answers of both depend on together."""
        return super().reads | what_is_read(self.other)

    def choose(self, question: Question) -> Answer:
        """Return the answer of the first LLM if it is sure, or else that of the second."""
        answer = answered(self.llm, question)
        again = self._build_doubt(question, answer)
        return answer if again is None else self._add_usage(answer, answered(self.other, again))

    async def _achoose(self, question: Question) -> Answer:
        answer = await aanswered(self._awaited, question)
        again = self._build_doubt(question, answer)
        return answer if again is None else self._add_usage(answer, await aanswered(self.other, again))

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        outcomes = all_answered(self._batched, questions)
        for place, (question, outcome) in enumerate(zip(questions, outcomes, strict=True)):
            again = self._build_doubt(question, outcome) if isinstance(outcome, Answer) else None
            if again is not None and isinstance(outcome, Answer):
                try:
                    outcomes[place] = self._add_usage(outcome, answered(self.other, again))
                except LLMError as error:
                    outcomes[place] = error
        return outcomes

    def _build_doubt(self, question: Question, answer: Answer) -> Question | None:
        """Return the question for the other LLM; None if the first one is sure, or if a text was requested."""
        if isinstance(question, Writing):
            return None
        self.asked += 1
        share = (answer.probabilities or {}).get(answer.numbers[0]) if len(answer.numbers) == 1 else None
        if share is not None and share >= self.least:
            return None
        self.unsure += 1
        note = "" if share is None else f" (probability {share:.2f})"
        again = question.again("")
        hint = f"{self.name} would choose {', '.join(map(str, answer.numbers))}{note}."
        if not all(option.text in question.prompt for option in question.options):  # its wording lists none
            hint = "\n".join([*(f"{option.number}: {option.text}" for option in question.options), hint])
        again.complaint = f"{question.complaint}\n{hint}" if question.complaint else hint
        return again

    @staticmethod
    def _add_usage(first: Answer, second: Answer) -> Answer:
        return replace(second, usage=first.usage + second.usage)
