"""The provider ``keywords:WORD,WORD``: takes the option in which one of some words occurs. It needs no model."""

from __future__ import annotations

from formal_llm import LLM, Answer, Question


class Keywords(LLM):
    """Answers with the first option in which the first word occurs, else with that of the second word, and so on.

    Where no word occurs anywhere, it is the last option.
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words
        self.name = f"keywords:{','.join(words)}"

    def answer(self, question: Question) -> Answer:
        """Answer a question."""
        for word in self.words:
            for option in question.options:
                if word in option.text.casefold():
                    return Answer((option.number,))
        return Answer((len(question.options),))


def keywords(rest: str | None) -> Keywords | None:
    """The LLM of ``keywords:milk,honey``; None, which becomes an error, where no words are named."""
    words = tuple(word.strip().casefold() for word in (rest or "").split(",") if word.strip())
    return Keywords(words) if words else None
