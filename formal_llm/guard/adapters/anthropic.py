"""A custom loop around the client of Anthropic.

::

    loop = MessagesLoop(guard)
    messages = [loop.user("Refund order 7.")]
    while True:
        message = client.messages.create(model=..., max_tokens=..., messages=messages, tools=tools)
        turn = loop.turn(message)
        messages += [{"role": "assistant", "content": message.content}, *turn.run({"refund": refund, ...})]
        if turn.done:
            break

The tools of the requests stay the same: changing them would invalidate the cached prefix of the prompt, and the API has
no list of allowed tools. A refused call gets a ``tool_result`` with ``is_error``: the reason and the way on. Pass a
streamed message as a whole: ``stream.get_final_message()``.
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
    """The form of outputs in the Messages API: all outputs of a turn in one message of the user."""

    def write_output(self, asked: RequestedCall[ToolUseBlock], text: str, *, error: bool) -> Item:
        return {"type": "tool_result", "tool_use_id": asked.id, "content": text, "is_error": error}

    def write_items(self, outputs: Sequence[Item], said: str | None) -> list[Item]:
        if outputs:
            return [{"role": "user", "content": list(outputs)}]
        return [{"role": "user", "content": said}] if said else []


class MessagesLoop(GuardedLoop["ToolUseBlock"]):
    """A run over Anthropic's Messages API under a guard.

    Args:
        run: the guard, or a run of a guard with an approval function, a record, or a state to continue from.
        most_early: the maximum number of consecutive premature answers that are sent back.
    """

    def __init__(self, run: Guard | GuardedRun, *, most_early: int = 3) -> None:
        super().__init__(run, _MessagesWire(), most_early)

    def turn(self, message: Message) -> Turn[ToolUseBlock]:
        """Check the calls of an answer as a sequence.

        Raises:
            EarlyAnswer: the answer is premature, and the maximum number was sent back before.
        """
        return self._check_turn(_read_calls(message), _read_text(message), paused=message.stop_reason == "pause_turn")

    async def aturn(self, message: Message) -> Turn[ToolUseBlock]:
        """Do the same as ``turn`` in asynchronous runs, and await the approval of a person."""
        return await self._acheck_turn(
            _read_calls(message), _read_text(message), paused=message.stop_reason == "pause_turn"
        )


def _read_calls(message: Message) -> list[RequestedCall[ToolUseBlock]]:
    requested: list[RequestedCall[ToolUseBlock]] = []
    for block in message.content:
        if block.type == "tool_use":
            arguments = read_arguments(block.input)
            call = None if arguments is None else Call(block.name, arguments, block.id)
            requested.append(RequestedCall(block, block.id, block.name, call))
    return requested


def _read_text(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")
