"""Chats and tools in pydantic-ai's form."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai import messages as m
from pydantic_ai.tools import ToolDefinition

from formal_llm.llms.question import Message
from formal_llm.llms.schemas import is_portable
from formal_llm.llms.text_request import ToolOffer


def convert_chat(messages: Sequence[Message]) -> list[m.ModelMessage]:
    """Return a chat in pydantic-ai's form; a result of a tool has the name of the call that it answers."""
    found: list[m.ModelMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if message.role == "assistant":
            text = [m.TextPart(message.content)] if message.content else []
            calls = [m.ToolCallPart(call.name, call.arguments, call.id) for call in message.calls]
            names |= {call.id: call.name for call in message.calls}
            if text or calls:
                found.append(m.ModelResponse([*text, *calls]))
            continue
        part: m.ModelRequestPart
        if message.role == "system":
            part = m.SystemPromptPart(message.content)
        elif message.role == "tool":
            part = m.ToolReturnPart(names.get(message.answers, "tool"), message.content, message.answers)
        else:
            part = m.UserPromptPart(message.content)
        if found and isinstance(last := found[-1], m.ModelRequest):
            last.parts = [*last.parts, part]
        else:
            found.append(m.ModelRequest([part]))
    return found


def convert_tool(tool: ToolOffer) -> ToolDefinition:
    """Return a tool in pydantic-ai's form; it is strict where its schema permits that."""
    schema = dict(tool.parameters)
    strict = True if is_portable(schema) else None
    return ToolDefinition(
        name=tool.name, description=tool.description or None, parameters_json_schema=schema, strict=strict
    )
