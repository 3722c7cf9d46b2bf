"""Wrappers that go by probabilities: one that mends them, and one that asks somebody else where they are low.

In provider strings, which nest: ``sure:0.6:calibrated:smollm2.json`` is the model of that file with its temperature,
and a person wherever its choice then has a probability below 0.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from formal_llm.errors import LLMError
from formal_llm.llms.calibration import Calibration, tempered
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import LLMLike, WrapperLLM, aanswered, all_answered, answered, resolve
from formal_llm.llms.question import Answer, Question


class CalibratedLLM(WrapperLLM):
    """An LLM whose probabilities are put to a temperature: its choices stay what they are.

    Args:
        llm: who answers.
        temperature: see :mod:`formal_llm.llms.calibration`.

    Raises:
        ValueError: the temperature is not above 0.
    """

    def __init__(self, llm: LLMLike, temperature: float) -> None:
        super().__init__(llm)
        self.temperature = Calibration(self.name, temperature, 0).temperature

    @classmethod
    def from_file(cls, path: str | Path) -> CalibratedLLM:
        """The LLM of a file that ``formal-llm calibrate`` wrote, with what was fitted for it.

        Raises:
            NotationError: the file cannot be read.
            UnknownProvider: it names no LLM.
        """
        read = Calibration.load(path)
        return cls(read.llm, read.temperature)

    @property
    def identity(self) -> dict[str, object] | None:
        """The identity of the other one, and the temperature."""
        known = super().identity
        return None if known is None else {**known, "calibrated": self.temperature}

    def choose(self, question: Question) -> Answer:
        """The answer of the LLM, its probabilities mended."""
        return self._mended(answered(self.llm, question))

    async def _achoose(self, question: Question) -> Answer:
        return self._mended(await aanswered(self._awaited, question))

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        outcomes = all_answered(self._batched, questions)
        return [self._mended(one) if isinstance(one, Answer) else one for one in outcomes]

    def close(self) -> None:
        """Nothing is open here."""

    def _mended(self, answer: Answer) -> Answer:
        likely = answer.probabilities
        # Of several that are chosen each has a probability of its own, which no temperature over all of them mends.
        if not likely or len(answer.numbers) != 1:
            return answer
        return replace(
            answer, probabilities=dict(zip(likely, tempered(list(likely.values()), self.temperature), strict=True))
        )


class SureLLM(WrapperLLM):
    """An LLM that is only heard where it is sure; a person, or somebody else, answers the other questions.

    It is sure where what it chose has at least a probability. It is not where its answer comes without probabilities,
    as those to selections do. The answer records what it would have chosen.

    Args:
        llm: who is asked first.
        least: the least probability of what it chooses, from 0 to 1.
        other: who answers where it is not sure.

    Attributes:
        asked, unsure: how many questions there were, and how many went on to the other one.

    Raises:
        ValueError: the probability is none.
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
        """The identities of both; None where one of them has none, as a person never does."""
        first, second = super().identity, getattr(self.other, "identity", None)
        return None if first is None or second is None else {**first, "least": self.least, "other": second}

    def choose(self, question: Question) -> Answer:
        """The answer of the LLM, or of the other one."""
        answer = answered(self.llm, question)
        again = self._doubted(question, answer)
        return answer if again is None else self._with(answer, answered(self.other, again))

    async def _achoose(self, question: Question) -> Answer:
        answer = await aanswered(self._awaited, question)
        again = self._doubted(question, answer)
        return answer if again is None else self._with(answer, await aanswered(self.other, again))

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        outcomes = all_answered(self._batched, questions)
        for place, (question, outcome) in enumerate(zip(questions, outcomes, strict=True)):
            again = self._doubted(question, outcome) if isinstance(outcome, Answer) else None
            if again is not None and isinstance(outcome, Answer):
                try:
                    outcomes[place] = self._with(outcome, answered(self.other, again))
                except LLMError as error:
                    outcomes[place] = error
        return outcomes

    def close(self) -> None:
        """Nothing is open here."""

    def _doubted(self, question: Question, answer: Answer) -> Question | None:
        """The question as the other one is asked it; None where the LLM is sure, or was asked for a text."""
        if isinstance(question, Writing):
            return None
        self.asked += 1
        share = (answer.probabilities or {}).get(answer.numbers[0]) if len(answer.numbers) == 1 else None
        if share is not None and share >= self.least:
            return None
        self.unsure += 1
        said = "" if share is None else f" (probability {share:.2f})"
        again = question.again("")
        hint = f"{self.name} would choose {', '.join(map(str, answer.numbers))}{said}."
        if not all(option.text in question.prompt for option in question.options):  # its wording lists none
            hint = "\n".join([*(f"{option.number}: {option.text}" for option in question.options), hint])
        again.complaint = f"{question.complaint}\n{hint}" if question.complaint else hint
        return again

    @staticmethod
    def _with(first: Answer, second: Answer) -> Answer:
        """The second answer, with what both cost."""
        return replace(second, usage=first.usage + second.usage)
