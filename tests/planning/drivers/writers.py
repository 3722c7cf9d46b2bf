"""Doubles that write drafts."""

from __future__ import annotations

import random
from collections.abc import Iterable

from formal_llm import Answer, Question, RandomLLM
from formal_llm.llms import LLM, TextRequest, TokenUsage


class Drafter(LLM):
    """Writes prepared drafts in turn, the last one again and again; answers questions at random."""

    name, identity = "drafter", {"llm": "drafter"}
    can = frozenset({"choose", "write"})

    def __init__(self, texts: Iterable[str], seed: int = 0) -> None:
        self.texts = list(texts)
        self.asked: list[Question] = []
        self.prompts: list[str] = []
        self._random = random.Random(seed)

    def answer(self, request: Question) -> Answer:
        if not isinstance(request, TextRequest):
            self.asked.append(request)
            return self.choose(request)
        self.prompts.append(request.prompt)
        text = self.texts[min(len(self.prompts), len(self.texts)) - 1]
        return Answer((), text=text, usage=TokenUsage(1, 100, 10))

    def choose(self, question: Question) -> Answer:
        numbers = RandomLLM(self._random.randrange(1 << 30)).ask(question).numbers
        return Answer(numbers, text=str(numbers), usage=TokenUsage(1, 20, 1))
