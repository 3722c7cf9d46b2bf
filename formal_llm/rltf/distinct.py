"""Distinct questions: samples of one task share their question objects, and other objects may ask the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from formal_llm.llms.question import Question


class DistinctQuestions:
    """Numbers questions from 0, those that are equal alike.

    Args:
        key: what two questions have in common that count as one. It may take time: each object is looked at once.

    Attributes:
        questions: the first of each number, in their order.
    """

    def __init__(self, key: Callable[[Question], Hashable]) -> None:
        self.questions: list[Question] = []
        self._key = key
        self._of_key: dict[Hashable, int] = {}
        self._of_object: dict[int, int] = {}
        self._seen: list[Question] = []

    def number(self, question: Question) -> int:
        """The number of a question; a new one is added."""
        found = self._of_object.get(id(question))
        if found is None:
            found = self._of_key.setdefault(self._key(question), len(self.questions))
            if found == len(self.questions):
                self.questions.append(question)
            self._of_object[id(question)] = found
            self._seen.append(question)  # as long as it is there, no other one has its identity
        return found
