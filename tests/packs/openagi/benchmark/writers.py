"""LLMs that always write the same."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm import Answer, Question
from formal_llm.errors import ProviderError
from formal_llm.llms.question import Answer
from formal_llm.llms.text_request import Messages, chat
from formal_llm.llms.usage import TokenUsage


class Writer:
    """Writes the same text always, and chooses the first option: a model with both protocols."""

    def __init__(self, text: str, fail: int = 0) -> None:
        self.text = text
        self.fail = fail
        self.prompts: list[str] = []

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        if self.fail:
            self.fail -= 1
            raise ProviderError("the server cannot be reached")
        self.prompts.append(chat(messages)[-1].content)
        return Answer((), text=self.text, usage=TokenUsage(1, 100, 10))

    def answer(self, question: Question) -> Answer:
        return Answer((1,), usage=TokenUsage(1, 50, 1))


class Together(Writer):
    """The same, asked many questions together."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.rounds = 0

    def choose_many(self, questions: Sequence[Question]) -> list[Answer]:
        self.rounds += 1
        return [Answer((len(question.options),)) for question in questions]
