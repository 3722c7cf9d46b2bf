"""LLMs that stand in front of another one, and can be asked in exactly the ways in which that one can be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

from formal_llm.errors import InvalidAnswer, LLMError
from formal_llm.llms.llm import AsyncLLM, BatchLLM, LLMLike, resolve
from formal_llm.llms.question import Answer, Question


class WrapperLLM(ABC):
    """An LLM in front of another one.

    It has ``choose``; ``achoose`` and ``aclose`` if and only if the other one is an ``AsyncLLM``; and ``choose_many``
    if and only if it is a ``BatchLLM``.

    Args:
        llm: the other one: a provider string, a function or an object.

    Attributes:
        llm: the other one.
        name: its name: a provider string, where it has one.
    """

    def __init__(self, llm: LLMLike) -> None:
        self.llm = resolve(llm)
        self.name: str = llm if isinstance(llm, str) else getattr(self.llm, "name", "") or type(self.llm).__name__
        # Who drives a walk looks for these names, so they are there only where the other one has them too.
        if isinstance(self.llm, AsyncLLM):
            self._awaited = self.llm
            self.achoose = self._achoose
            self.aclose = self.llm.aclose
        if isinstance(self.llm, BatchLLM):
            self._batched = self.llm
            self.choose_many = self._choose_many

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def identity(self) -> dict[str, object] | None:
        """What the other one is told apart from others by, as JSON data; None where it does not say."""
        return getattr(self.llm, "identity", None)

    @abstractmethod
    def choose(self, question: Question) -> Answer:
        """Answer ``question``."""

    @abstractmethod
    async def _achoose(self, question: Question) -> Answer:
        """As :meth:`choose`, of an LLM that is awaited."""

    @abstractmethod
    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """As :meth:`choose`, of an LLM that is asked many questions together."""

    @abstractmethod
    def close(self) -> None:
        """Close the file. The LLM behind is left as it is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checked(question: Question, outcome: Answer | LLMError) -> Answer | LLMError:
    """What came back for a question of a batch; an answer that is not legal becomes its ``InvalidAnswer``."""
    if isinstance(outcome, LLMError):
        return outcome
    try:
        return question.check(outcome)
    except InvalidAnswer as error:
        return error
