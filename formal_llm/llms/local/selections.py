"""Selections one option at a time.

A question that takes any set of its options has too many answers to score each of them, so a local model is asked for
one option after the other, in the order of their numbers, until it takes none more. Each set comes from exactly one row
of such questions, so the probability of a set is the product of theirs.
"""

from __future__ import annotations

from collections.abc import Generator

from formal_llm.llms.question import Question

#: What ends a selection.
NO_MORE = "nothing more"


def one_by_one(question: Question) -> Generator[Question, int, tuple[int, ...]]:
    """The questions of exactly one option that make up a selection.

    Yields a question, is sent the number of the chosen option, and returns the numbers of the selection. The selection
    may be one that the question objects to; it has to be checked as any answer.

    Args:
        question: a question that takes several options.
    """
    chosen: list[int] = []
    while True:
        left = [option for option in question.options if not chosen or option.number > chosen[-1]]
        may_end = bool(chosen) and (not left or not question.problem(tuple(chosen)))
        if not left or (len(left) == 1 and not may_end):
            return tuple(chosen) if not left else (*chosen, left[0].number)
        texts = [option.text for option in left] + ([NO_MORE] if may_end else [])
        number = yield _next(question, tuple(chosen), texts)
        if number > len(left):
            return tuple(chosen)
        chosen.append(left[number - 1].number)


def _next(question: Question, chosen: tuple[int, ...], texts: list[str]) -> Question:
    """The question for one more option."""

    def prompt() -> str:
        texts_of = {option.number: option.text for option in question.options}
        so_far = ", ".join(texts_of[number] for number in chosen) or "none"
        lines = "\n".join(f"{number}: {text}" for number, text in enumerate(texts, 1))
        return (
            f"{question.prompt}\n\nThe choices are made one by one, in their order. Chosen so far: {so_far}. Next:\n"
            f"{lines}\n\nAnswer with the number of your choice, an integer from 1 to {len(texts)}, and nothing else."
        )

    return Question(prompt, texts, task=question.task, messages=lambda: question.messages[:-1], walk=question.walk)
