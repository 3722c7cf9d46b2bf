"""Wrappers that use probabilities: one that calibrates them, and one that asks another LLM if they are low.

Their provider strings nest: ``sure:0.6:calibrated:smollm2.json`` is the model of that file with its temperature, and a
person answers whenever the probability of its choice is below 0.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from formal_llm.errors import LLMError
from formal_llm.llms.calibration import Calibration, tempered
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import LLMLike, WrapperLLM, aanswered, all_answered, answered, resolve
from formal_llm.llms.question import Answer, Question, what_is_read


class CalibratedLLM(WrapperLLM):
    """An LLM whose probabilities are adjusted by a temperature, which does not change its choices.

    Args:
        temperature: see :mod:`formal_llm.llms.calibration`.

    Raises:
        ValueError: the temperature is not positive.
    """

    def __init__(self, llm: LLMLike, temperature: float) -> None:
        super().__init__(llm)
        self.temperature = Calibration(self.name, temperature, 0).temperature

    @classmethod
    def from_file(cls, path: str | Path) -> CalibratedLLM:
        """Create the LLM of a file that ``formal-llm calibrate`` wrote, with its fitted temperature.

        Raises:
            NotationError: the file cannot be read.
            UnknownProvider: the file names no LLM.
        """
        calibration = Calibration.load(path)
        return cls(calibration.llm, calibration.temperature)

    @property
    def identity(self) -> dict[str, object] | None:
        """The identity of the wrapped LLM, and the temperature."""
        known = super().identity
        return None if known is None else {**known, "calibrated": self.temperature}

    def choose(self, question: Question) -> Answer:
        """Return the answer of the LLM with calibrated probabilities."""
        return self._apply_temperature(answered(self.llm, question))

    async def _achoose(self, question: Question) -> Answer:
        return self._apply_temperature(await aanswered(self._awaited, question))

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        outcomes = all_answered(self._batched, questions)
        return [self._apply_temperature(one) if isinstance(one, Answer) else one for one in outcomes]

    def _apply_temperature(self, answer: Answer) -> Answer:
        likely = answer.probabilities
        # In a selection each option has a probability of its own, to which one temperature does not apply.
        if not likely or len(answer.numbers) != 1:
            return answer
        return replace(
            answer, probabilities=dict(zip(likely, tempered(list(likely.values()), self.temperature), strict=True))
        )


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
