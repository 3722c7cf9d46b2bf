"""The arguments of tools as JSON: which kinds can be written, and by which schema."""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.errors import InputError
from formal_llm.llms.schemas import Schema
from formal_llm.tools.kinds import Kind, Value
from formal_llm.tools.tool import Tool

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
