"""Binding: the arguments of a tool as a schema, and what was written by it as a call.

An argument is a value of its kind, or a call of another tool that gives such a value::

    {"expression": {"tool": "search", "arguments": {"query": "Rhine"}}}

Kinds decide what fits where. Calls are carried out from inside out, so a call is a word of tools: ``search calculate``.
An argument that has a default may be null, which stands for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeAlias

from formal_llm.automata import Word
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.errors import InputError, ToolkitError
from formal_llm.llms.schemas import Schema, closed
from formal_llm.tools.kinds import TEXT, Kind, Value
from formal_llm.tools.signature import Signature
from formal_llm.tools.tool import Tool

Argument: TypeAlias = "Value | Call"
#: The most characters of one text as an argument.
MOST_ARGUMENT = 20_000


@dataclass(frozen=True, slots=True)
class Call:
    """A tool and its arguments; they keep its signature.

    Attributes:
        arguments: for each input a value, or the call that gives it.
        named: those for other parameters that do not keep their defaults.
    """

    tool: Tool
    arguments: tuple[Argument, ...]
    named: Mapping[str, Argument] = field(default=FrozenDict())

    @property
    def word(self) -> Word:
        """The tools in the order in which they are used."""
        return tuple(call.tool.name for call in self.iter_calls())

    def iter_calls(self) -> Iterator[Call]:
        """All calls, from inside out, this one last."""
        for argument in chain(self.arguments, self.named.values()):
            if isinstance(argument, Call):
                yield from argument.iter_calls()
        yield self

    def __str__(self) -> str:
        named = (f"{name}={_format_argument(argument)}" for name, argument in self.named.items())
        return f"{self.tool.name}({', '.join([*map(_format_argument, self.arguments), *named])})"


def _format_argument(argument: Argument) -> str:
    if isinstance(argument, Call):
        return str(argument)
    shown = argument.kind.to_text(argument.get())
    return json.dumps(shown, ensure_ascii=False) if argument.kind == TEXT else shown


class Binder:
    """What the arguments of tools may be.

    Args:
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
            self._levels.append([tool for tool in possible if all(_is_available(kind, below) for kind in tool.inputs)])
        wrong = [
            f"{tool}: a model cannot write its argument {one.name} of kind {one.kind}, and no tool gives one"
            for tool in tools
            for one in tool.signature.required
            if not _is_available(one.kind, self._levels[-1])
        ]
        if wrong:
            raise ToolkitError(wrong)
        self._written = {name: _list_written(tool.signature) for name, tool in self.tools.items()}

    def build_schema(self, tool: Tool, inner: Collection[str]) -> Schema | None:
        """The schema of the arguments of a tool; None where an argument could only be a call that may not be one here.

        ``inner`` are the tools whose calls may be arguments here.
        """
        definitions: dict[str, Schema] = {}
        top = self._build_arguments_schema(tool, self.depth, inner, definitions)
        return None if top is None else {**top, **({"$defs": definitions} if definitions else {})}

    def find_feeders(self, tool: Tool) -> tuple[str, ...] | None:
        """The tools whose calls an argument needs that a model cannot write; None where it can write all of them."""
        for kind in tool.inputs:
            if kind.schema is None:
                return tuple(one.name for one in self._levels[-1] if one.output == kind)
        return None

    def _build_arguments_schema(
        self, tool: Tool, depth: int, inner: Collection[str], definitions: dict[str, Schema]
    ) -> dict[str, object] | None:
        of: dict[str, Schema] = {}
        for parameter in tool.signature.parameters:
            ways: list[Schema] = []
            if (written := self._written[tool.name].get(parameter.name)) is not None:
                ways.append(written)
            for one in self._levels[depth]:
                if one.output == parameter.kind and one.name in inner:
                    way = self._build_call_schema(one, depth, inner, definitions)
                    ways += [] if way is None else [way]
            if not ways:
                return None
            of[parameter.name] = ways[0] if len(ways) == 1 else {"anyOf": ways}
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
        made: dict[str, Argument] = {}
        for parameter in tool.signature.parameters:
            given = arguments[parameter.name]
            if self._is_call(given, parameter.kind):
                assert isinstance(given, Mapping)
                made[parameter.name] = self.read_call(self.tools[given["tool"]], given["arguments"])
        written = Signature(tuple(one for one in tool.signature.parameters if one.name not in made))
        try:
            bound = written.bind({one.name: arguments[one.name] for one in written.parameters}, strict=True)
        except InputError as error:
            raise ValueError(str(error)) from None
        made |= {**dict(zip((one.name for one in written.required), bound.values, strict=True)), **bound.named}
        required = [one.name for one in tool.signature.required]
        named = FrozenDict({name: argument for name, argument in made.items() if name not in required})
        return Call(tool, tuple(made[name] for name in required), named)

    def _is_call(self, given: object, kind: Kind) -> bool:
        """Whether what was written for a kind is a call of a tool that gives such a value."""
        if not isinstance(given, Mapping) or set(given) != {"tool", "arguments"}:
            return False
        tool = self.tools.get(given["tool"]) if isinstance(given["tool"], str) else None
        return tool is not None and tool.output == kind and isinstance(given["arguments"], Mapping)


def _list_written(signature: Signature) -> Mapping[str, Any]:
    """The schemas of the parameters that a model can write."""
    written = Signature(tuple(one for one in signature.parameters if one.written.schema is not None))
    properties: Any = written.strict_schema["properties"]
    bounded = {one.name for one in written.required if one.written == TEXT}
    return {name: {**one, "maxLength": MOST_ARGUMENT} if name in bounded else one for name, one in properties.items()}


def _is_available(kind: Kind, tools: Sequence[Tool]) -> bool:
    return kind.schema is not None or any(tool.output == kind for tool in tools)
