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

from formal_llm.guard.adapters.loops import GuardedLoop, Item, ModelAnswer, RequestedCall
from formal_llm.guard.adapters.plumbing import read_arguments
from formal_llm.guard.events import Call

if TYPE_CHECKING:
    from anthropic.types import Message, ToolUseBlock


class MessagesLoop(GuardedLoop["Message", "ToolUseBlock"]):
    """A run over Anthropic's Messages API under a guard.

    Args:
        run: the guard, or a run of a guard with an approval function, a record, or a state to continue from.
        most_early: the maximum number of consecutive premature answers that are sent back.
    """

    def read_answer(self, response: Message) -> ModelAnswer[ToolUseBlock]:
        """Read a message."""
        return ModelAnswer(_read_calls(response), _read_text(response), response.stop_reason == "pause_turn")

    def write_output(self, asked: RequestedCall[ToolUseBlock], text: str, *, error: bool) -> Item:
        """Write a block with the result of a tool."""
        return {"type": "tool_result", "tool_use_id": asked.id, "content": text, "is_error": error}

    def write_items(self, outputs: Sequence[Item], back: str | None) -> list[Item]:
        """Write a message of the user, with all outputs of a turn."""
        if outputs:
            return [{"role": "user", "content": list(outputs)}]
        return [{"role": "user", "content": back}] if back else []


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
