"""LLMs that always write the same."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm import Answer, Question
from formal_llm.errors import ProviderError
from formal_llm.llms import LLM, TokenUsage


class Writer(LLM):
    """Writes the same text always, and chooses the first option."""

    can = frozenset({"choose", "write"})

    def __init__(self, text: str, fail: int = 0) -> None:
        self.text = text
        self.fail = fail
        self.prompts: list[str] = []

    def answer(self, request: Question) -> Answer:
        if request.kind == "choose":
            return self.choose(request)
        if self.fail:
            self.fail -= 1
            raise ProviderError("the server cannot be reached")
        self.prompts.append(request.prompt)
        return Answer((), text=self.text, usage=TokenUsage(1, 100, 10))

    def choose(self, question: Question) -> Answer:
        return Answer((1,), usage=TokenUsage(1, 50, 1))


class Together(Writer):
    """The same, asked many questions together: it chooses the last option."""

    at_once = 64

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.rounds = 0

    def answer_all(self, questions: Sequence[Question]) -> list[Answer]:
        self.rounds += 1
        return [Answer((len(question.options),)) for question in questions]
