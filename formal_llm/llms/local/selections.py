"""Selections of several options, made one option at a time.

A question that allows any set of its options has too many answers to score each of them, so a local model is asked for
one option after the other, in the order of their numbers, until it chooses to stop. Each set results from exactly one
sequence of such questions, so its probability is the product of theirs.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from formal_llm.llms.question import Question

#: The text of the option that ends a selection.
NO_MORE = "nothing more"


@dataclass(frozen=True)
class Selecting:
    """A selection in progress.

    Attributes:
        question: the question that takes several options.
        chosen: the numbers chosen so far.
        left: the numbers of the options offered next.
        asked: the next question, of exactly one option; None if the selection is complete.
    """

    question: Question
    chosen: tuple[int, ...]
    left: tuple[int, ...]
    asked: Question | None

    @classmethod
    def of(cls, question: Question, chosen: tuple[int, ...] = ()) -> Selecting:
        """Create the state of a selection; options without an alternative are chosen without asking.

        Args:
            question: a question that allows several options.
            chosen: the numbers chosen so far, ascending; an allowed selection begins with them.
        """
        while True:
            later = range(max(chosen, default=0) + 1, len(question.options) + 1)
            left = tuple(number for number in later if question.leads_on((*chosen, number)))
            may_end = bool(chosen) and not question.problem(chosen)
            if len(left) + may_end > 1:
                texts = [question.options[number - 1].text for number in left] + [NO_MORE] * may_end
                return cls(question, chosen, left, _build_next_question(question, chosen, texts))
            if not left:
                return cls(question, chosen, (), None)
            chosen = (*chosen, *left)

    def after(self, number: int) -> Selecting:
        """Return the state after an answer to :attr:`asked`: the number of an option of that question."""
        if number > len(self.left):
            return Selecting(self.question, self.chosen, (), None)
        return Selecting.of(self.question, (*self.chosen, self.left[number - 1]))


def one_by_one(question: Question) -> Generator[Question, int, tuple[int, ...]]:
    """Yield the questions of exactly one option that make up a selection.

    The generator yields a question, receives the number of the chosen option, and finally returns the numbers of the
    selection. It only offers options that lead to a selection without objection. If the question objects to every
    selection, the result is empty.
    """
    state = Selecting.of(question)
    while state.asked is not None:
        number = yield state.asked
        state = state.after(number)
    return state.chosen


def _build_next_question(question: Question, chosen: tuple[int, ...], texts: list[str]) -> Question:
    """Create the question for one more option."""

    def prompt() -> str:
        so_far = ", ".join(question.options[number - 1].text for number in chosen) or "none"
        lines = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
        return (
            f"{question.prompt}\n\nThe choices are made one by one, in their order. Chosen so far: {so_far}. Next:\n"
            f"{lines}\n\nAnswer with the number of your choice, an integer from 1 to {len(texts)}, and nothing else."
        )

    return Question(prompt, texts, task=question.task, messages=lambda: question.messages[:-1], walk=question.walk)
