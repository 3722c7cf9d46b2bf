"""Calling a tool with the text that an agent wrote for it; what goes wrong is a text for the agent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from formal_llm.errors import InputError, ToolError, ToolkitError, did_you_mean
from formal_llm.llms.schemas import Schema, problem_in
from formal_llm.tools.calling import Caller
from formal_llm.tools.kinds import TEXT, Kind, Value
from formal_llm.tools.tool import Tool
from formal_llm.tools.toolkit import Toolkit

#: The kinds that can be written, by the class of their values: what JSON schemas call them.
WRITTEN: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
#: The most characters of one argument.
MOST_ARGUMENT = 20_000


def build_value_schema(kind: Kind) -> Schema | None:
    """The schema of the values of a kind; None where they cannot be written."""
    name = WRITTEN.get(kind.of)
    if name is None:
        return None
    return {"type": name, "maxLength": MOST_ARGUMENT} if name == "string" else {"type": name}


def parse_value(kind: Kind, given: object) -> Value:
    """What was written, as a value of a kind whose schema it keeps.

    Raises:
        ValueError: the kind does not accept it.
    """
    try:
        return Value(kind, kind.accept(float(given) if kind.of is float and isinstance(given, int) else given))
    except (InputError, OverflowError) as error:
        raise ValueError(str(error)) from None


def list_parameters(tool: Tool) -> tuple[str, ...]:
    """The names of a tool's arguments; numbered where they are not known."""
    if len(tool.parameters) == len(tool.inputs):
        return tool.parameters
    return tuple(f"input_{number}" for number in range(1, len(tool.inputs) + 1))


#: What an error that the agent reads begins with.
ERROR = "Error: "
#: The most characters of a result that an agent reads.
MOST_SHOWN = 20_000


class BadArguments(Exception):
    """A text that is no argument for a tool; the text of the exception describes what is wanted."""


def check_texts(toolkit: Toolkit) -> None:
    """Raise for tools that an agent cannot call by writing.

    Raises:
        ToolkitError: a tool takes or gives what can neither be written nor read.
    """
    problems = [
        f"{tool} takes or gives what is neither a text nor a number nor true or false, and an agent writes and reads; "
        f"leave it out with toolkit.without({tool.name!r})"
        for tool in toolkit
        if any(kind.of not in WRITTEN for kind in (*tool.inputs, tool.output))
    ]
    if problems:
        raise ToolkitError(problems)


def describe_tool(tool: Tool) -> str:
    """A tool as an agent reads it: ``search(query): The first five sentences ...``."""
    names = list_parameters(tool)
    count = "its argument" if len(names) == 1 else f"its {len(names)} arguments"
    how = "" if not names or tool.inputs == (TEXT,) else f" Write {count} as JSON: {_format_example(tool)}"
    return f"{tool.name}({', '.join(names)}): {tool.description}{how}"


def call_with_text(tool: Tool, text: str, caller: Caller) -> tuple[str, bool]:
    """What a tool returns for a text, and whether it did; else the error, as a text for the agent."""
    try:
        result, _ = caller.call(tool, parse_arguments(tool, text))
    except BadArguments as error:
        return f"{ERROR}{error}", False
    except ToolError as error:
        return f"{ERROR}{tool.name} {error.problem}", False
    given = result.get()
    shown = given if isinstance(given, str) else json.dumps(given)
    return (shown if len(shown) <= MOST_SHOWN else f"{shown[:MOST_SHOWN]} ... ({len(shown):,} characters)"), True


def parse_arguments(tool: Tool, text: str) -> list[Value]:
    """The arguments that a text gives to a tool.

    Of a tool with one argument that is a text, the text is that argument. Else it is a JSON object with the names of
    the arguments, or a JSON list of them, or the one that there is; each by the schema of its kind.

    Raises:
        BadArguments: it is none of these; the text of the exception describes what is wanted.
    """
    text, names = text.strip(), list_parameters(tool)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict) and set(data) == set(names):
        return _read_values(tool, [data[name] for name in names])
    if not names:
        if text:
            raise BadArguments(f"{tool.name} takes no argument; leave its input empty")
        return []
    if len(names) == 1 and (tool.inputs == (TEXT,) or not isinstance(data, dict | list | None)):
        if not text:
            raise BadArguments(f"{tool.name} needs {names[0]}, and its input is empty")
        return _read_values(tool, [text if tool.inputs == (TEXT,) else data])
    if isinstance(data, list) and len(data) == len(names):
        return _read_values(tool, data)
    if isinstance(data, dict):
        unknown = next((name for name in data if name not in names), None)
        near = did_you_mean(unknown, names) if unknown is not None else None
        missing = [name for name in names if name not in data]
        what = f"no argument {unknown!r}" + (f" (did you mean {near}?)" if near else "") if unknown is not None else ""
        what = what or f"no value for {', '.join(missing)}"
        raise BadArguments(f"{tool.name} was given {what}; write {_format_example(tool)}")
    count = "one argument; write it" if len(names) == 1 else f"{len(names)} arguments; write them"
    raise BadArguments(f"{tool.name} takes {count} as JSON: {_format_example(tool)}")


def _read_values(tool: Tool, given: Sequence[object]) -> list[Value]:
    made = []
    for name, kind, one in zip(list_parameters(tool), tool.inputs, given, strict=True):
        # A number is a text, too, where a text is wanted: what a model writes is 4 as often as "4".
        one = json.dumps(one) if kind == TEXT and isinstance(one, int | float) else one
        problem = problem_in(one, {"type": WRITTEN[kind.of]})
        if problem is not None:
            raise BadArguments(
                f"{tool.name} was given a {name} that cannot be used: {problem}; write {_format_example(tool)}"
            )
        try:
            made.append(parse_value(kind, one))
        except ValueError as error:
            raise BadArguments(f"{tool.name} cannot take this {name}: {error}") from None
    return made


#: What an agent is shown in the place of an argument.
_SHOWN = {"string": '"..."', "integer": "1", "number": "1.5", "boolean": "true"}


def _format_example(tool: Tool) -> str:
    shown = (
        f'"{name}": {_SHOWN[WRITTEN[kind.of]]}' for name, kind in zip(list_parameters(tool), tool.inputs, strict=True)
    )
    return "{" + ", ".join(shown) + "}"
