"""Models for tests of agents: scripts and chance, that chat or go on with a text."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from formal_llm.llms.doubles import TEXTS, RandomLLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import Messages
from formal_llm.llms.usage import TokenUsage


class Scripted:
    """Chooses the options whose texts are scripted, and writes the texts in between, all in one list."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.asked: list[str] = []

    def answer(self, question: Question) -> Answer:
        self.asked.append(question.prompt)
        line = next(self._lines)
        texts = [option.text for option in question.options]
        assert line in texts, (line, texts)
        return Answer((texts.index(line) + 1,), usage=TokenUsage(1, 10, 1))

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        self.asked.append(messages if isinstance(messages, str) else "\n".join(one.content for one in messages))
        return Answer((), text=next(self._lines), usage=TokenUsage(1, 10, 5), ended="")


class Chats:
    """Chance that chats and does not go on with a text."""

    def __init__(self, seed: int, words: Sequence[str]) -> None:
        made = RandomLLM(seed, can=TEXTS, words=words)
        self.ask, self.generate = made.ask, made.generate


def words(markers: Iterable[str], tools: Iterable[str]) -> list[str]:
    """What chance strings together: words, tools, labels, markers of all kinds, halves of them."""
    own = list(markers)
    halves = [marker[: random.Random(marker).randrange(1, len(marker))] for marker in own]
    lines = [f"{marker} " for marker in own]
    return [*lines, *halves, *(f"{tool}\n" for tool in tools), "serch\n", "[Bogus] ", "#E1 ", "#E10 ", "42 ", "Danube"]
