"""A loop of one's own around the client of Anthropic.

::

    loop = MessagesLoop(guard)
    messages = [loop.user("Refund order 7.")]
    while True:
        message = client.messages.create(model=..., max_tokens=..., messages=messages, tools=tools)
        turn = loop.turn(message)
        messages += [{"role": "assistant", "content": message.content}, *turn.run({"refund": refund, ...})]
        if turn.done:
            break

The tools of the requests stay as they are: to change them would break the cached prefix of the prompt, and there is no
list of allowed ones. A refused call gets a ``tool_result`` with ``is_error``: the reason and the way on. A message that
was streamed goes in as a whole: ``stream.get_final_message()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from formal_llm.guard.adapters.loops import GuardedLoop, Item, RequestedCall, Turn
from formal_llm.guard.adapters.plumbing import read_arguments
from formal_llm.guard.events import Call
from formal_llm.guard.guard import Guard
from formal_llm.guard.live import GuardedRun

if TYPE_CHECKING:
    from anthropic.types import Message, ToolUseBlock


class _MessagesWire:
    """How outputs are written for the Messages API: all of a turn in one message of the user."""

    def write_output(self, asked: RequestedCall[ToolUseBlock], text: str, *, error: bool) -> Item:
        return {"type": "tool_result", "tool_use_id": asked.id, "content": text, "is_error": error}

    def write_items(self, outputs: Sequence[Item], said: str | None) -> list[Item]:
        if outputs:
            return [{"role": "user", "content": list(outputs)}]
        return [{"role": "user", "content": said}] if said else []


class MessagesLoop(GuardedLoop["ToolUseBlock"]):
    """A run over Anthropic's Messages API under a guard.

    Args:
        run: the guard, or a run of one: with its approval, its record, or a state to go on from.
        most_early: how many answers in a row that come too early are sent back.
    """

    def __init__(self, run: Guard | GuardedRun, *, most_early: int = 3) -> None:
        super().__init__(run, _MessagesWire(), most_early)

    def turn(self, message: Message) -> Turn[ToolUseBlock]:
        """Check the calls of an answer as a sequence.

        Raises:
            EarlyAnswer: it is an answer that comes too early, once too often.
        """
        return self._check_turn(_read_calls(message), _read_text(message), paused=message.stop_reason == "pause_turn")

    async def aturn(self, message: Message) -> Turn[ToolUseBlock]:
        """As ``turn``; a person who is asked is waited for."""
        return await self._acheck_turn(
            _read_calls(message), _read_text(message), paused=message.stop_reason == "pause_turn"
        )


def _read_calls(message: Message) -> list[RequestedCall[ToolUseBlock]]:
    asked: list[RequestedCall[ToolUseBlock]] = []
    for block in message.content:
        if block.type == "tool_use":
            arguments = read_arguments(block.input)
            call = None if arguments is None else Call(block.name, arguments, block.id)
            asked.append(RequestedCall(block, block.id, block.name, call))
    return asked


def _read_text(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")
