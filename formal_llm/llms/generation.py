"""Free text: the second, separate protocol of a language model.

Planning never needs it, since a plan is chosen and not written. It is for what is written by nature (agents), and for
baselines that show what a model plans when nothing holds it to the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from formal_llm.llms.question import Message
from formal_llm.llms.usage import TokenUsage

#: What is asked: one text, which the user says, or the messages of a chat.
Messages: TypeAlias = str | Sequence[Message]


@dataclass(frozen=True, slots=True)
class Generated:
    """What a model wrote, without the stop that ended it, and what it cost."""

    text: str
    usage: TokenUsage = field(default_factory=TokenUsage)


@runtime_checkable
class TextLLM(Protocol):
    """Anything that writes free text."""

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes next in a chat.

        Args:
            messages: the chat; a text alone is what the user says.
            max_tokens: the most tokens that are written (of a model that thinks, thinking counts too).
            stop: texts before which the writing ends.
            temperature: 0 for the most probable text. A model that takes no temperature has its own.

        Raises:
            ProviderError: no answer came.
        """
        ...


def chat(messages: Messages) -> tuple[Message, ...]:
    """The messages of a chat; a text alone is what the user says."""
    return (Message("user", messages),) if isinstance(messages, str) else tuple(messages)


def cut(text: str, stop: Iterable[str]) -> str:
    """A text up to the first of its stops: for servers that know no stops, or write them out."""
    places = [place for one in stop if one and (place := text.find(one)) >= 0]
    return text[: min(places)] if places else text
