"""Answerers for tests and baselines, as public as the real ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.question import Answer, Question


class FunctionLLM:
    """Answers with a function of the question; it may return an :class:`Answer`, a number, or text to be read."""

    def __init__(self, function: Callable[[Question], Any]) -> None:
        self._function = function

    def choose(self, question: Question) -> Answer:
        """What the function returns, checked."""
        return question.check(self._function(question))


#: How many random selections are tried before one that the question objects to is given all the same.
_DRAWS = 1_000


class RandomLLM:
    """Answers at random: one option, or of several any possible selection, all equally likely."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose(self, question: Question) -> Answer:
        """A random legal answer."""
        count = len(question.options)
        if not question.several:
            return Answer((self._random.randrange(count) + 1,))
        for _ in range(_DRAWS):
            chosen = self._random.randrange(1, 1 << count)
            numbers = tuple(number + 1 for number in range(count) if chosen >> number & 1)
            if not question.problem(numbers):
                break
        return Answer(numbers)


class ScriptedLLM:
    """Gives prepared answers in turn, then fails.

    Args:
        answers: for each question a number, several numbers, text, or an :class:`Answer`.

    Attributes:
        questions: the questions that were asked so far.
    """

    def __init__(self, answers: Iterable[Any]) -> None:
        self._answers = iter(answers)
        self.questions: list[Question] = []

    @classmethod
    def from_text(cls, text: str) -> ScriptedLLM:
        """Answers from text such as ``1,3,2``; ``2+3`` chooses several options at once."""
        return cls([[int(number) for number in part.split("+")] for part in text.split(",")])

    def choose(self, question: Question) -> Answer:
        """The next answer of the script.

        Raises:
            InvalidAnswer: the script has no more answers, or this one is not legal here.
        """
        self.questions.append(question)
        try:
            answer = next(self._answers)
        except StopIteration:
            raise InvalidAnswer(
                f"the script ended before question {len(self.questions)}", [(question.prompt, "")]
            ) from None
        return question.check(answer)
