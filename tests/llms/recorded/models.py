"""Models that answer 2, and count what they are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from formal_llm import Answer, Question
from formal_llm.errors import InvalidAnswer
from formal_llm.llms import TokenUsage

QUESTION = Question("Which?", ["a", "b", "c"])


COST = TokenUsage(1, 100, 2, 30, 4)


class Model:
    """Answers 2, and counts."""

    def __init__(self, numbers: tuple[int, ...] = (2,), **settings: object) -> None:
        self.asked: list[Question] = []
        self.numbers = numbers
        self.identity = {"llm": "test:model", **settings}

    def choose(self, question: Question) -> Answer:
        self.asked.append(question)
        return Answer(self.numbers, {1: 0.25, 2: 0.7500000000000001}, "Option 2", COST)


class AsyncModel(Model):
    """Answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False
        self.let_go = asyncio.Event()

    async def achoose(self, question: Question) -> Answer:
        answer = self.choose(question)
        await self.let_go.wait()
        return answer

    async def aclose(self) -> None:
        self.closed = True


class BatchModel(Model):
    """Answers many together."""

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | InvalidAnswer]:
        self.batches = [*getattr(self, "batches", []), len(questions)]
        return [self.choose(question) for question in questions]


class BothModel(AsyncModel, BatchModel):
    """Can do both."""
