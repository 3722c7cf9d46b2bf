"""Turns with tools: a model writes a text, requests calls of the tools that it is offered, or both.

A :class:`Turn` is a request like any other: what caches, records or distributes answers handles it, too. Its answer has
a text and the requested calls. Nothing is carried out here, and nothing is checked: a model may request a call of a
tool that it was not offered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol, runtime_checkable

from formal_llm.llms.generation import Generated, Messages, Stream, Writing
from formal_llm.llms.schemas import Schema


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as it is offered to a model.

    Attributes:
        name: its name.
        description: what it does.
        parameters: the JSON schema of the object of its arguments.
    """

    name: str
    description: str
    parameters: Schema = field(hash=False)


@runtime_checkable
class ToolCallingLLM(Protocol):
    """A language model that requests calls of tools."""

    def take_turn(
        self,
        messages: Messages,
        tools: Sequence[OfferedTool],
        *,
        must_call: bool = False,
        max_tokens: int = 512,
        temperature: float = 0.0,
    ) -> Generated:
        """Write the next message of a chat, which may request calls of tools.

        Args:
            messages: the chat; a single text stands for a message of the user.
            tools: the tools that may be called now.
            must_call: whether at least one must be called. Not all servers enforce it.
            max_tokens: the maximum number of tokens to write, including those of the model's thinking.
            temperature: 0 for the most probable text. Models that accept no temperature use their own.

        Raises:
            ProviderError: the server gave no answer.
        """
        ...


@runtime_checkable
class StreamingToolCallingLLM(Protocol):
    """A :class:`ToolCallingLLM` that can also stream its text while it is written."""

    def stream_turn(
        self,
        messages: Messages,
        tools: Sequence[OfferedTool],
        *,
        must_call: bool = False,
        max_tokens: int = 512,
        temperature: float = 0.0,
    ) -> Stream:
        """Like :meth:`ToolCallingLLM.take_turn`: the pieces of the text, and finally the whole with the calls."""
        ...


class Turn(Writing):
    """A request for the next message of a chat with tools.

    Args:
        messages, max_tokens, temperature: see :meth:`ToolCallingLLM.take_turn`.
        tools, must_call: likewise.
        task, walk: see :class:`~formal_llm.llms.generation.Writing`.
    """

    __slots__ = ("must_call", "tools")

    def __init__(
        self,
        messages: Messages,
        tools: Sequence[OfferedTool],
        *,
        must_call: bool = False,
        max_tokens: int = 512,
        temperature: float = 0.0,
        task: str = "",
        walk: str = "",
    ) -> None:
        super().__init__(messages, max_tokens=max_tokens, temperature=temperature, task=task, walk=walk)
        self.tools = tuple(tools)
        self.must_call = must_call

    @property
    def content(self) -> dict[str, object]:
        """What the writer sees, and the settings of the turn, as JSON data."""
        return {**super().content, "tools": [asdict(tool) for tool in self.tools], "must_call": self.must_call}

    def way(self, llm: object) -> tuple[str, tuple[object, ...], dict[str, object]] | None:
        """Return the name of the model's method that takes this turn, and its arguments; None if it has none."""
        if not isinstance(llm, ToolCallingLLM):
            return None
        how: dict[str, object] = {
            "must_call": self.must_call, "max_tokens": self.max_tokens, "temperature": self.temperature
        }  # fmt: skip
        return "take_turn", (self.messages, self.tools), how
