"""Models for tests of agents: scripts and chance, that chat or go on with a text."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from formal_llm.llms.doubles import RandomLLM
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import TokenUsage

#: What chats and does not go on with a text.
CHATS = frozenset({"choose", "write"})


class Scripted(LLM):
    """Chooses the options whose texts are scripted, and writes the texts in between, all in one list."""

    can = CHATS

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.asked: list[str] = []

    def answer(self, request: Question) -> Answer:
        if request.kind == "choose":
            self.asked.append(request.prompt)
            line = next(self._lines)
            texts = [option.text for option in request.options]
            assert line in texts, (line, texts)
            return Answer((texts.index(line) + 1,), usage=TokenUsage(1, 10, 1))
        self.asked.append("\n".join(one.content for one in request.messages))
        return Answer((), text=next(self._lines), usage=TokenUsage(1, 10, 5), ended="")


class Chats(RandomLLM):
    """Chance that chats and does not go on with a text."""

    def __init__(self, seed: int, words: Sequence[str]) -> None:
        super().__init__(seed, can=CHATS, words=words)


def words(markers: Iterable[str], tools: Iterable[str]) -> list[str]:
    """What chance strings together: words, tools, labels, markers of all kinds, halves of them."""
    own = list(markers)
    halves = [marker[: random.Random(marker).randrange(1, len(marker))] for marker in own]
    lines = [f"{marker} " for marker in own]
    return [*lines, *halves, *(f"{tool}\n" for tool in tools), "serch\n", "[Bogus] ", "#E1 ", "#E10 ", "42 ", "Danube"]
