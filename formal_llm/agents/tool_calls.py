"""Calling a tool with the text that an agent wrote for it; what goes wrong is a text for the agent."""

from __future__ import annotations

import json
from collections.abc import Sequence

from formal_llm.errors import InputError, ToolError, ToolkitError, did_you_mean
from formal_llm.tools.calling import Caller
from formal_llm.tools.kinds import TEXT, Value
from formal_llm.tools.tool import Tool
from formal_llm.tools.toolkit import Toolkit

#: What an error that the agent reads begins with.
ERROR = "Error: "
#: The most characters of a result that an agent reads.
MOST_SHOWN = 20_000


class BadArguments(Exception):
    """A text that is no argument for a tool; the text of the exception says what is wanted."""


def check_texts(toolkit: Toolkit) -> None:
    """Raise for tools that an agent cannot call by writing.

    Raises:
        ToolkitError: a tool takes or gives what is no text.
    """
    problems = [
        f"{tool} takes or gives what is no text, and an agent writes and reads texts; leave it out with "
        f"toolkit.without({tool.name!r})"
        for tool in toolkit
        if any(kind != TEXT for kind in (*tool.inputs, tool.output))
    ]
    if problems:
        raise ToolkitError(problems)


def signature(tool: Tool) -> str:
    """A tool as an agent reads it: ``search(query): The first five sentences ...``."""
    names = tool.parameters or tuple(f"text{number}" for number in range(1, len(tool.inputs) + 1))
    many = f" Write its {len(names)} arguments as JSON: {_form(names)}" if len(names) > 1 else ""
    return f"{tool.name}({', '.join(names)}): {tool.description}{many}"


def called(tool: Tool, text: str, caller: Caller) -> tuple[str, bool]:
    """What a tool returns for a text, and whether it did; else the error, as a text for the agent."""
    try:
        values = [Value(TEXT, TEXT.accept(argument)) for argument in arguments_of(tool, text)]
        result, _ = caller.call(tool, values)
    except BadArguments as error:
        return f"{ERROR}{error}", False
    except InputError as error:
        return f"{ERROR}{tool.name} cannot take this: {error}", False
    except ToolError as error:
        return f"{ERROR}{tool.name} {error.problem}", False
    shown = str(result.get())
    return (shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]} ... ({len(shown):,} characters)"), True


def arguments_of(tool: Tool, text: str) -> list[str]:
    """The arguments that a text gives to a tool.

    Of a tool with one argument the text is that argument. Of one with several it is a JSON object with their names, or
    a JSON list of them.

    Raises:
        BadArguments: it is neither.
    """
    text = text.strip()
    names = tool.parameters or tuple(f"text{number}" for number in range(1, len(tool.inputs) + 1))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and set(data) == set(names):
        return [_plain(data[name], tool) for name in names]
    if not names:
        if text:
            raise BadArguments(f"{tool.name} takes no argument; leave its input empty")
        return []
    if len(names) == 1:
        if not text:
            raise BadArguments(f"{tool.name} needs {names[0]}, and its input is empty")
        return [text]
    if isinstance(data, list) and len(data) == len(names):
        return [_plain(value, tool) for value in data]
    if isinstance(data, dict):
        unknown = next((name for name in data if name not in names), None)
        near = did_you_mean(unknown, names) if unknown is not None else None
        missing = [name for name in names if name not in data]
        what = f"no argument {unknown!r}" + (f" (did you mean {near}?)" if near else "") if unknown is not None else ""
        what = what or f"no value for {', '.join(missing)}"
        raise BadArguments(f"{tool.name} was given {what}; write {_form(names)}")
    raise BadArguments(f"{tool.name} takes {len(names)} arguments; write them as JSON: {_form(names)}")


def _form(names: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{name}": ...' for name in names) + "}"


def _plain(value: object, tool: Tool) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list) or value is None:
        raise BadArguments(f"the arguments of {tool.name} are texts or numbers, not {json.dumps(value)[:60]}")
    return json.dumps(value)
