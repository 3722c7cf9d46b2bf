"""Binding: the arguments of a tool as a schema, and what was written by it as a call.

An argument is a value of its kind, or a call of another tool that gives such a value::

    {"expression": {"tool": "search", "arguments": {"query": "Rhine"}}}

Kinds decide what fits where. Calls are carried out from inside out, so a call is a word of tools: ``search calculate``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from formal_llm.agents.tool_calls import WRITTEN, build_value_schema, list_parameters, parse_value
from formal_llm.automata import Word
from formal_llm.errors import ToolkitError
from formal_llm.llms.schemas import Schema, closed
from formal_llm.tools.kinds import Kind, Value
from formal_llm.tools.tool import Tool

Argument: TypeAlias = "Value | Call"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool and its arguments; they keep its signature.

    Attributes:
        tool: the tool.
        arguments: for each input a value, or the call that gives it.
    """

    tool: Tool
    arguments: tuple[Argument, ...]

    @property
    def word(self) -> Word:
        """The tools in the order in which they are used."""
        return tuple(call.tool.name for call in self.iter_calls())

    def iter_calls(self) -> Iterator[Call]:
        """All calls, from inside out, this one last."""
        for argument in self.arguments:
            if isinstance(argument, Call):
                yield from argument.iter_calls()
        yield self

    def __str__(self) -> str:
        return f"{self.tool.name}({', '.join(map(_format_argument, self.arguments))})"


def _format_argument(argument: Argument) -> str:
    if isinstance(argument, Call):
        return str(argument)
    value = argument.get()
    return json.dumps(value, ensure_ascii=False) if type(value) in WRITTEN else f"<{argument.kind}>"


class Binder:
    """What the arguments of tools may be.

    Args:
        tools: the tools.
        nests: the names of those whose calls may stand as arguments.
        depth: how deep calls may be nested: 0 for values alone, 1 for calls with values in them.

    Raises:
        ToolkitError: an argument that nothing can provide: no model can write its kind, and no tool gives it.
    """

    def __init__(self, tools: Sequence[Tool], nests: Collection[str], depth: int = 1) -> None:
        if depth < 0:
            raise ValueError(f"calls cannot be nested {depth} deep")
        self.tools = {tool.name: tool for tool in tools}
        self.depth = depth
        possible = [tool for tool in tools if tool.name in nests]
        #: At each depth the tools whose calls can be arguments.
        self._levels: list[list[Tool]] = [[]]
        for _ in range(depth):
            below = self._levels[-1]
            self._levels.append([tool for tool in possible if _is_bindable(tool, below)])
        wrong = [
            f"{tool}: a model cannot write its argument {name} of kind {kind}, and no tool gives one"
            for tool in tools
            for name, kind in zip(list_parameters(tool), tool.inputs, strict=True)
            if not _is_available(kind, self._levels[-1])
        ]
        if wrong:
            raise ToolkitError(wrong)

    def build_schema(self, tool: Tool, inner: Collection[str]) -> Schema | None:
        """The schema of the arguments of a tool; None where an argument could only be a call that may not be one here.

        Args:
            tool: the tool.
            inner: the tools whose calls may be arguments here.
        """
        definitions: dict[str, Schema] = {}
        top = self._build_arguments_schema(tool, self.depth, inner, definitions)
        return None if top is None else {**top, **({"$defs": definitions} if definitions else {})}

    def find_feeders(self, tool: Tool) -> tuple[str, ...] | None:
        """The tools whose calls an argument needs that a model cannot write; None where it can write all of them."""
        for kind in tool.inputs:
            if kind.of not in WRITTEN:
                return tuple(one.name for one in self._levels[-1] if one.output == kind)
        return None

    def _build_arguments_schema(
        self, tool: Tool, depth: int, inner: Collection[str], definitions: dict[str, Schema]
    ) -> dict[str, object] | None:
        of: dict[str, Schema] = {}
        for name, kind in zip(list_parameters(tool), tool.inputs, strict=True):
            ways: list[Schema] = []
            if (written := build_value_schema(kind)) is not None:
                ways.append(written)
            for one in self._levels[depth]:
                if one.output == kind and one.name in inner:
                    way = self._build_call_schema(one, depth, inner, definitions)
                    ways += [] if way is None else [way]
            if not ways:
                return None
            of[name] = ways[0] if len(ways) == 1 else {"anyOf": ways}
        return closed(of)

    def _build_call_schema(
        self, tool: Tool, depth: int, inner: Collection[str], definitions: dict[str, Schema]
    ) -> Schema | None:
        # A definition for each depth, none of which refers to itself: not all providers know schemas that do.
        name = f"call_{list(self.tools).index(tool.name)}_{depth}"
        if name not in definitions:
            arguments = self._build_arguments_schema(tool, depth - 1, inner, definitions)
            if arguments is None:
                return None
            definitions[name] = closed({"tool": {"enum": [tool.name]}, "arguments": arguments})
        return {"$ref": f"#/$defs/{name}"}

    def read_call(self, tool: Tool, arguments: Mapping[str, object]) -> Call:
        """The call that arguments make, which keep the schema of the tool.

        Raises:
            ValueError: a value is not acceptable to its kind; the message names the argument.
        """
        made: list[Argument] = []
        for name, kind in zip(list_parameters(tool), tool.inputs, strict=True):
            given = arguments[name]
            if isinstance(given, Mapping):
                inside = given["arguments"]
                assert isinstance(inside, Mapping)
                made.append(self.read_call(self.tools[str(given["tool"])], inside))
                continue
            try:
                made.append(parse_value(kind, given))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return Call(tool, tuple(made))


def _is_available(kind: Kind, tools: Sequence[Tool]) -> bool:
    return kind.of in WRITTEN or any(tool.output == kind for tool in tools)


def _is_bindable(tool: Tool, below: Sequence[Tool]) -> bool:
    return all(_is_available(kind, below) for kind in tool.inputs)
