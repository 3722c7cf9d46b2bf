"""Calling a tool with the text or the arguments that an agent wrote for it; what goes wrong is a text for the agent."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from formal_llm.agents.decoding.steps import Do
from formal_llm.errors import InputError, Pending, ToolError, ToolkitError
from formal_llm.llms.text_request import ToolOffer
from formal_llm.tools.calling import Caller
from formal_llm.tools.hints import TypeHint
from formal_llm.tools.kinds import TEXT, Value
from formal_llm.tools.signature import BoundValues, Parameter
from formal_llm.tools.tool import Tool
from formal_llm.tools.toolkit import Toolkit

#: What an error that the agent reads begins with.
ERROR = "Error: "
#: The most characters of a result that an agent reads.
MOST_SHOWN = 20_000
#: The maximum number of concurrent calls.
_AT_ONCE = 8

A = TypeVar("A")
C = TypeVar("C")


class BadArguments(Exception):
    """What is no argument for a tool; the text of the exception describes what is wanted."""


def check_texts(toolkit: Toolkit) -> None:
    """Raise for tools that an agent cannot call by writing.

    Raises:
        ToolkitError: a tool takes or gives what can neither be written nor read.
    """
    problems = [
        f"{tool} takes or gives what can be neither written nor read, such as an image, and an agent writes and reads; "
        f"leave it out with toolkit.without({tool.name!r})"
        for tool in toolkit
        if any(kind.schema is None for kind in (*(one.written for one in tool.signature.parameters), tool.output))
    ]
    if problems:
        raise ToolkitError(problems)


def describe_tool(tool: Tool) -> str:
    """A tool as an agent reads it: ``search(query): The first five sentences ...``."""
    parameters = tool.signature.parameters
    names = ", ".join(one.name if one.required else f"{one.name}=..." for one in parameters)
    lines = [f"{tool.name}({names}): {tool.description}"]
    if len(parameters) > 1 or (parameters and parameters[0].kind != TEXT):
        count = "its argument" if len(parameters) == 1 else f"its {len(parameters)} arguments"
        lines[0] += f" Write {count} as JSON: {_format_example(tool)}"
    properties, definitions = _list_properties(tool)
    lines += [
        f"  {one.name}: {about}"
        for one in parameters
        if (about := _describe_argument(properties[one.name], definitions))
    ]
    return "\n".join(lines)


def offer_tool(tool: Tool) -> ToolOffer:
    """A tool as it is offered to a model that calls it by its provider's own means."""
    return ToolOffer(tool.name, tool.description, tool.strict_schema)


def call_tool(tool: Tool, read: Callable[[], BoundValues], caller: Caller) -> tuple[str, bool]:
    """What a tool returns, and whether it did; else the error, as a text for the agent.

    ``read`` reads its arguments: :func:`parse_arguments` or :func:`read_arguments`.
    """
    try:
        bound = read()
        return format_result(caller.call(tool, bound.values, named=bound.named)[0]), True
    except (BadArguments, ToolError, InputError) as error:
        return _format_failure(tool, error), False


async def acall_tool(tool: Tool, read: Callable[[], BoundValues], caller: Caller) -> tuple[str, bool]:
    """As :func:`call_tool`, without blocking the event loop: asynchronous tools run on it."""
    try:
        bound = read()
        return format_result((await caller.acall(tool, bound.values, bound.named))[0]), True
    except (BadArguments, ToolError, InputError) as error:
        return _format_failure(tool, error), False


def call_concurrently(actions: Sequence[A], call: Callable[[A], C], acall: Callable[[A], Awaitable[C]]) -> Do:
    """The work of calling several tools at once; it returns what each gives, or what it waits for."""

    def call_one(action: A) -> C | Pending:
        try:
            return call(action)
        except Pending as waits:
            return waits

    def call_all() -> list[C | Pending]:
        if len(actions) == 1:
            return [call_one(actions[0])]
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="formal-llm-action") as pool:
            return [*pool.map(call_one, actions)]

    async def await_all() -> list[C | Pending]:
        import asyncio

        room = asyncio.Semaphore(_AT_ONCE)

        async def await_one(action: A) -> C | Pending:
            async with room:
                try:
                    return await acall(action)
                except Pending as waits:
                    return waits

        return [*await asyncio.gather(*map(await_one, actions))]

    return Do(call_all, await_all)


def _format_failure(tool: Tool, error: BadArguments | ToolError | InputError) -> str:
    if isinstance(error, BadArguments):
        return f"{ERROR}{error}"
    return f"{ERROR}{tool.name} {error.problem if isinstance(error, ToolError) else f'returned {error}'}"


def format_result(result: Value) -> str:
    """A result as an agent reads it: a text as it is, all else as JSON, and not too long.

    Raises:
        InputError: it cannot be written.
    """
    shown = result.kind.to_text(result.get())
    return shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]} ... ({len(shown):,} characters)"


def read_arguments(tool: Tool, arguments: str | Mapping[str, object], *, strict: bool = False) -> BoundValues:
    """The values in arguments that were written by the schema of a tool; none are an empty object.

    Raises:
        BadArguments: they do not fit; the text of the exception describes what is wanted.
    """
    if isinstance(arguments, str):
        try:
            data: object = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise BadArguments(f"the arguments of {tool.name} are no JSON: {error}") from None
    else:
        data = arguments
    if not isinstance(data, Mapping):
        raise BadArguments(f"the arguments of {tool.name} are a JSON object: {_format_example(tool)}")
    return _bind_arguments(tool, data, strict=strict)


def parse_arguments(tool: Tool, text: str) -> BoundValues:
    """The values that a text gives to a tool.

    Of a tool with one argument that is a text, the text is that argument. Else it is a JSON object with the names of
    the arguments, or a JSON list of them, or the one that is needed; each by the schema of its kind.

    Raises:
        BadArguments: it is none of these; the text of the exception describes what is wanted.
    """
    text, parameters, required = text.strip(), tool.signature.parameters, tool.signature.required
    names = [one.name for one in parameters]
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and {one.name for one in required} <= set(data) <= set(names):
        return _bind_arguments(tool, data)
    if not text and not required:
        return BoundValues(())
    if not parameters:
        raise BadArguments(f"{tool.name} takes no argument; leave its input empty")
    only = required if len(required) == 1 else parameters if len(parameters) == 1 else ()
    if only and (bound := _read_alone(tool, only[0], text, data)) is not None:
        return bound
    if isinstance(data, list) and len(required) <= len(data) <= len(names):
        return _bind_arguments(tool, dict(zip(names, data, strict=False)))
    if isinstance(data, dict):
        return _bind_arguments(tool, data)  # raises, with what is wrong
    count = "one argument; write it" if len(names) == 1 else f"{len(names)} arguments; write them"
    raise BadArguments(f"{tool.name} takes {count} as JSON: {_format_example(tool)}")


def _read_alone(tool: Tool, needed: Parameter, text: str, data: object) -> BoundValues | None:
    """The value of the only argument that is needed, written without its name; None if it is written otherwise."""
    if not text:
        raise BadArguments(f"{tool.name} needs {needed.name}, and its input is empty")
    if needed.kind == TEXT:
        is_object = isinstance(data, dict) and any(name in data for name in tool.signature.by_name)
        return None if is_object and len(tool.signature.parameters) > 1 else _bind_arguments(tool, {needed.name: text})
    if isinstance(data, dict | list):
        try:
            return tool.signature.bind({needed.name: data})
        except InputError:
            return None
    if data is None and text != "null":  # no JSON; perhaps a date, or a name, without its quotes
        return _bind_arguments(tool, {needed.name: text}) if isinstance(needed.written.of, TypeHint) else None
    return _bind_arguments(tool, {needed.name: data})


def _bind_arguments(tool: Tool, data: Mapping[str, object], *, strict: bool = False) -> BoundValues:
    try:
        return tool.signature.bind(data, strict=strict)
    except InputError as error:
        raise BadArguments(f"{tool.name} was given {error}; write {_format_example(tool)}") from None


# -- how arguments are written ----------------------------------------------------------------------------------------

#: What an agent is shown in the place of a value.
_SHOWN: Mapping[object, object] = {"string": "...", "integer": 1, "number": 1.5, "boolean": True}
_SHOWN_FORMATS = {"date": "2026-01-31", "time": "12:30", "date-time": "2026-01-31T12:30", "duration": "PT1H30M"}
#: How deep an example goes into what contains itself.
_DEPTH = 3


def _list_properties(tool: Tool) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The schemas of the arguments, and the definitions that these refer to."""
    schema: Mapping[str, Any] = tool.schema
    return schema.get("properties", {}), schema.get("$defs", {})


def _format_example(tool: Tool) -> str:
    properties, definitions = _list_properties(tool)
    made = {name: one.get("default", _make_example(one, definitions, _DEPTH)) for name, one in properties.items()}
    return json.dumps(made, ensure_ascii=False)


def _make_example(schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int) -> object:
    if "$ref" in schema:
        schema = definitions.get(str(schema["$ref"]).rpartition("/")[2], {})
        depth -= 1
    ways = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if ways:
        return _make_example(ways[0], definitions, depth)
    if "const" in schema or "enum" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    if schema.get("type") == "object":
        needed = schema.get("required", ()) if depth > 0 else ()
        return {name: _make_example(schema["properties"][name], definitions, depth) for name in needed}
    if schema.get("type") == "array":
        parts = schema.get("prefixItems") or ([schema["items"]] if schema.get("items") and depth > 0 else [])
        return [_make_example(one, definitions, depth) for one in parts]
    return _SHOWN_FORMATS.get(schema.get("format", "")) or _SHOWN.get(str(schema.get("type")), "...")


def _describe_argument(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """What an agent reads about an argument: its description, and the schema where an example does not show it."""
    about = " ".join(str(schema.get("description", "")).split())
    shown = _format_schema(
        {key: one for key, one in schema.items() if key not in ("description", "default")}, definitions
    )
    return f"{about} ({shown})" if about and shown else about or shown


def _format_schema(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """What values there are, in words or as a JSON schema; nothing where an example shows it."""
    name = str(schema.get("$ref")).rpartition("/")[2]
    if "enum" in definitions.get(name, {}):
        schema = definitions[name]
    if not schema:
        return "any JSON value"
    if "enum" in schema:
        return f"one of {', '.join(json.dumps(one, ensure_ascii=False) for one in schema['enum'])}"
    if set(schema) == {"type"} and str(schema["type"]) in _SHOWN:
        return ""
    if set(schema) == {"type", "format"} and schema["type"] == "string":
        return str(schema["format"])
    if set(schema) == {"anyOf"} and all(set(one) <= {"type", "format"} for one in schema["anyOf"]):
        return " or ".join(str(one.get("format", one["type"])) for one in schema["anyOf"])
    needed: dict[str, Any] = {}
    waiting = [json.dumps(schema)]
    while waiting:
        text = waiting.pop()
        for name, one in definitions.items():
            if name not in needed and f'"#/$defs/{name}"' in text:
                needed[name] = one
                waiting.append(json.dumps(one))
    whole = {**schema, "$defs": needed} if needed else schema
    return f"by the JSON schema {json.dumps(whole, ensure_ascii=False)}"
