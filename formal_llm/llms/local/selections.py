"""Selections one option at a time.

A question that takes any set of its options has too many answers to score each of them, so a local model is asked for
one option after the other, in the order of their numbers, until it takes none more. Each set comes from exactly one row
of such questions, so the probability of a set is the product of theirs.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from formal_llm.llms.question import Question

#: What ends a selection.
NO_MORE = "nothing more"


@dataclass(frozen=True)
class Selecting:
    """A selection that is under way.

    Attributes:
        question: the question that takes several options.
        chosen: the numbers chosen so far.
        left: the numbers of what is offered next.
        asked: the next question, of exactly one option; None where the selection is complete.
    """

    question: Question
    chosen: tuple[int, ...]
    left: tuple[int, ...]
    asked: Question | None

    @classmethod
    def of(cls, question: Question, chosen: tuple[int, ...] = ()) -> Selecting:
        """Where a selection stands. What is the only way on is taken without asking.

        Args:
            question: a question that takes several options.
            chosen: the numbers chosen so far, in their order; there is an allowed selection that begins with them.
        """
        while True:
            later = range(max(chosen, default=0) + 1, len(question.options) + 1)
            left = tuple(number for number in later if question.leads_on((*chosen, number)))
            may_end = bool(chosen) and not question.problem(chosen)
            if len(left) + may_end > 1:
                texts = [question.options[number - 1].text for number in left] + [NO_MORE] * may_end
                return cls(question, chosen, left, _next(question, chosen, texts))
            if not left:
                return cls(question, chosen, (), None)
            chosen = (*chosen, *left)

    def after(self, number: int) -> Selecting:
        """Where it stands after an answer to :attr:`asked`: the number of an option of that question."""
        if number > len(self.left):
            return Selecting(self.question, self.chosen, (), None)
        return Selecting.of(self.question, (*self.chosen, self.left[number - 1]))


def one_by_one(question: Question) -> Generator[Question, int, tuple[int, ...]]:
    """The questions of exactly one option that make up a selection.

    Yields a question, is sent the number of the chosen option, and returns the numbers of the selection. Offered is
    only what leads to a selection that the question does not object to. Of a question that objects to every selection
    nothing is returned.
    """
    state = Selecting.of(question)
    while state.asked is not None:
        number = yield state.asked
        state = state.after(number)
    return state.chosen


def _next(question: Question, chosen: tuple[int, ...], texts: list[str]) -> Question:
    """The question for one more option."""

    def prompt() -> str:
        so_far = ", ".join(question.options[number - 1].text for number in chosen) or "none"
        lines = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
        return (
            f"{question.prompt}\n\nThe choices are made one by one, in their order. Chosen so far: {so_far}. Next:\n"
            f"{lines}\n\nAnswer with the number of your choice, an integer from 1 to {len(texts)}, and nothing else."
        )

    return Question(prompt, texts, task=question.task, messages=lambda: question.messages[:-1], walk=question.walk)
