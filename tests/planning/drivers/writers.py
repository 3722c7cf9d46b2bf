"""Doubles that write drafts."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from formal_llm import Answer, Question, RandomLLM
from formal_llm.llms import TokenUsage
from formal_llm.llms.question import Answer
from formal_llm.llms.text_request import Messages, chat


class Drafter:
    """Writes prepared drafts in turn, the last one again and again; answers questions at random."""

    def __init__(self, texts: Iterable[str], seed: int = 0) -> None:
        self.name = "drafter"
        self.texts = list(texts)
        self.asked: list[Question] = []
        self.prompts: list[str] = []
        self._random = random.Random(seed)

    @property
    def identity(self) -> dict[str, object]:
        return {"llm": self.name}

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        self.prompts.append(chat(messages)[-1].content)
        text = self.texts[min(len(self.prompts), len(self.texts)) - 1]
        return Answer((), text=text, usage=TokenUsage(1, 100, 10))

    def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        numbers = RandomLLM(self._random.randrange(1 << 30)).ask(question).numbers
        return Answer(numbers, text=str(numbers), usage=TokenUsage(1, 20, 1))
