"""The parameters of a tool: their schema for models, and what a model wrote by it as values.

In plans a tool takes its required parameters alone, each of a kind. A model may also set those that have a default.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import json
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType, SimpleNamespace
from typing import Any

from formal_llm.errors import InputError, ToolkitError, did_you_mean
from formal_llm.llms.schemas import Schema, close_schema, closed, open_value
from formal_llm.tools.hints import TypeHint
from formal_llm.tools.kinds import Kind, Value, kind_for, typed_kind


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool.

    Attributes:
        kind: the kind of its values in plans.
        written: the kind of what a model writes, with the bounds of an ``Annotated``; default: ``kind``.
        required: whether it has no default.
        by_position: whether the function receives it by its position.
    """

    name: str
    kind: Kind
    written: Kind
    description: str = ""
    required: bool = True
    default: object = None
    by_position: bool = True

    @property
    def schema(self) -> dict[str, object]:
        """The JSON schema of what a model writes.

        Raises:
            ToolkitError: it cannot be written as JSON.
        """
        schema = self.written.schema
        if schema is None:
            raise ToolkitError([f"the parameter {self.name} of kind {self.written} cannot be written as JSON"])
        return schema

    def read(self, data: object) -> Value:
        """Return the value that a model wrote as JSON.

        Raises:
            InputError: it is no value of this parameter; the message is worded for the model.
        """
        return Value(self.written, self.written.read_json(data))


@dataclass(frozen=True)
class BoundValues:
    """The values for a call.

    Attributes:
        values: those of the required parameters, in order: the inputs of the tool.
        named: those of other parameters.
    """

    values: tuple[Value, ...]
    named: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Signature:
    """The parameters of a tool that others may set, in order.

    Attributes:
        declared: the JSON schema of the arguments, where a server declares it.
    """

    parameters: tuple[Parameter, ...]
    declared: Mapping[str, object] | None = None

    @classmethod
    def from_kinds(cls, inputs: Sequence[Kind], names: Sequence[str] = ()) -> Signature:
        """Return the signature of a tool of which only the kinds are known, and perhaps the names."""
        if len(names) != len(inputs):
            names = [f"input_{number}" for number in range(1, len(inputs) + 1)]
        return cls(tuple(Parameter(name, kind, kind) for name, kind in zip(names, inputs, strict=True)))

    @property
    def inputs(self) -> tuple[Kind, ...]:
        """The kinds of the required parameters."""
        return tuple(one.kind for one in self.required)

    @property
    def required(self) -> tuple[Parameter, ...]:
        """The parameters without a default."""
        return tuple(one for one in self.parameters if one.required)

    @cached_property
    def by_name(self) -> Mapping[str, Parameter]:
        """The parameters by name."""
        return {one.name: one for one in self.parameters}

    @property
    def defaults(self) -> Mapping[str, str]:
        """The defaults that can be written as JSON."""
        written = {one.name: _dump_default(one) for one in self.parameters if not one.required}
        return {name: default for name, default in written.items() if default is not None}

    @cached_property
    def schema(self) -> dict[str, object]:
        """The JSON schema of an object with the arguments, as providers take it for tools.

        Raises:
            ToolkitError: a parameter cannot be written as JSON.
        """
        if self.declared is not None:
            return dict(self.declared)
        properties, definitions = _describe_parameters(self.parameters)
        schema = {**closed(properties), "required": [one.name for one in self.required]}
        return {**schema, "$defs": definitions} if definitions else schema

    @cached_property
    def strict_schema(self) -> dict[str, object]:
        """The schema that all providers can hold a model to, see :func:`~formal_llm.llms.schemas.close_schema`.

        Raises:
            ToolkitError: a parameter cannot be written as JSON.
        """
        return close_schema(self.schema)

    def bind(self, arguments: Mapping[str, object], *, strict: bool = False) -> BoundValues:
        """Return the values that a model wrote as a JSON object.

        ``strict``: whether it was written by :attr:`strict_schema`.

        Raises:
            InputError: it does not fit; the message is worded for the model, and follows "was given".
        """
        if strict:
            opened = open_value(arguments, self.schema)
            assert isinstance(opened, dict)
            arguments = opened
        unknown = next((name for name in arguments if name not in self.by_name), None)
        if unknown is not None:
            near = did_you_mean(unknown, self.by_name)
            raise InputError(f"no argument {unknown[:100]!r}" + (f" (did you mean {near}?)" if near else ""))
        missing = [one.name for one in self.required if one.name not in arguments]
        if missing:
            raise InputError(f"no value for {', '.join(missing)}")
        made: dict[str, Value] = {}
        problems = []
        for name, data in arguments.items():
            try:
                made[name] = self.by_name[name].read(data)
            except InputError as error:
                problems.append(f"a {name} that cannot be used: {error}")
        if problems:
            raise InputError(", and ".join(problems))
        named = {one.name: made[one.name] for one in self.parameters if not one.required and one.name in made}
        return BoundValues(tuple(made[one.name] for one in self.required), named)

    def arrange(
        self, values: Sequence[object], named: Mapping[str, object]
    ) -> tuple[Sequence[object], Mapping[str, object]]:
        """Return the positional and the named arguments with which to call the function.

        Args:
            values: the values of the required parameters, in order.
            named: those of other parameters.
        """
        if not named and all(one.by_position for one in self.required):
            return values, {}
        given = {one.name: value for one, value in zip(self.required, values, strict=True)} | dict(named)
        # One that is known by its position alone is given its default, for those that follow.
        positional = [given.pop(one.name, one.default) for one in self.parameters if one.by_position]
        return positional, given


def _describe_parameters(parameters: Sequence[Parameter]) -> tuple[dict[str, Schema], Mapping[str, object]]:
    """Return the schema of each parameter, and the definitions to which they refer."""
    properties: dict[str, Schema] = {}
    definitions: dict[str, object] = {}
    for one in parameters:
        schema, inner = _split_schema(one.schema)
        if any(definitions.get(name, part) != part for name, part in inner.items()):  # two classes of one name
            assert isinstance(one.written.of, TypeHint)
            schema, inner = _split_schema(
                one.written.of.adapter.json_schema(ref_template=f"{_REFERENCE}{one.name}_{{model}}")
            )
            inner = {f"{one.name}_{name}": part for name, part in inner.items()}
        definitions |= inner
        if one.description:
            schema["description"] = one.description
        if not one.required and (default := _dump_default(one)) is not None:
            schema["default"] = json.loads(default)
        properties[one.name] = schema
    return properties, definitions


def _split_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a schema without its definitions, and these."""
    whole = _without_titles(schema)
    return whole, whole.pop("$defs", {})


def _dump_default(parameter: Parameter) -> str | None:
    """Return the default as JSON; None if it cannot be written so."""
    of, default = parameter.written.of, parameter.default
    try:
        return of.dump(of.check(default)).decode() if isinstance(of, TypeHint) else json.dumps(default)
    except (InputError, TypeError):  # such as None for an int
        return None


def _without_titles(schema: Mapping[str, Any], names: bool = False) -> dict[str, Any]:
    """Return a schema without the titles that pydantic makes of names; ``names`` where the keys are names."""

    def strip(value: object, names: bool) -> object:
        if isinstance(value, Mapping):
            return _without_titles(value, names)
        return [strip(one, False) for one in value] if isinstance(value, list) else value

    return {
        key: value if key in ("default", "const", "enum") and not names else strip(value, key in _NAMED and not names)
        for key, value in schema.items()
        if names or key != "title"
    }


#: The keys of JSON schemas whose values map names to schemas.
_NAMED = ("properties", "$defs", "patternProperties")
_REFERENCE = "#/$defs/"


# -- from functions ---------------------------------------------------------------------------------------------------


def read_signature(
    function: Callable[..., object], title: str, inputs: Sequence[Kind] | None
) -> tuple[Signature, object]:
    """Return the signature of a function, and the type hint of what it returns; ``inspect.Signature.empty`` if none.

    Args:
        function: a function, a method, a ``functools.partial``, or an object that can be called.
        title: what to call it in errors.
        inputs: the kinds of its required parameters, instead of their type hints.

    Raises:
        ToolkitError: a type hint is missing or denotes no kind, or a parameter takes any number of values.
    """
    inner = unwrap_callable(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ToolkitError([f"{title}: a generator gives many values, one after the other; return a list of them"])
    hints = _read_hints(inner)
    described = read_parameters(inspect.getdoc(inner) or inspect.getdoc(function) or "")
    fixed = function.keywords if isinstance(function, functools.partial) else {}
    found: list[Parameter] = []
    kinds = None if inputs is None else iter(inputs)
    hides_rest = False
    for one in inspect.signature(function).parameters.values():
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            if inputs is None:
                raise ToolkitError([f"{title}: the parameter {one} is no single value; give inputs=..., or list it"])
            continue
        if one.name in fixed or (one.kind is one.POSITIONAL_ONLY and hides_rest):
            continue
        kind = None if kinds is None or one.default is not one.empty else next(kinds, None)
        parameter = _read_parameter(one, kind, hints, title, described.get(one.name, ""), inputs is None)
        if parameter is not None:
            found.append(parameter)
        elif one.kind is one.POSITIONAL_ONLY:
            hides_rest = True  # who keeps this default cannot set those behind it
    signature = Signature(tuple(found))
    if inputs is not None and signature.inputs != tuple(inputs):
        signature = Signature.from_kinds(inputs)
    return signature, _read_result(hints)


def unwrap_callable(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function behind a ``functools.partial``, or behind an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) or isinstance(function, type) else type(function).__call__


def _read_parameter(
    one: inspect.Parameter,
    kind: Kind | None,
    hints: Mapping[str, object],
    title: str,
    description: str,
    needs_hint: bool,
) -> Parameter | None:
    """Return a parameter; None for one with a default that nobody but the function's author can set."""
    required = one.default is one.empty
    by_position = one.kind is one.POSITIONAL_ONLY or (required and one.kind is one.POSITIONAL_OR_KEYWORD)
    if type(one.default).__module__ == "pydantic.fields":
        problem = f"the parameter {one.name} has {type(one.default).__name__} as its default"
        raise ToolkitError([f"{title}: {problem}; write {one.name}: Annotated[..., Field(...)] = default"])
    try:
        if kind is None and one.name not in hints:
            raise ToolkitError([f"{title}: the parameter {one.name} has no type hint; write one, or inputs=..."])
        written = kind if kind is not None else _read_kind(hints[one.name], title, f"the parameter {one.name}")
        kind = kind or _read_kind(_strip_annotated(hints[one.name]), title, f"the parameter {one.name}")
    except ToolkitError:
        if required and needs_hint:
            raise
        return None
    if not required and (one.name.startswith("_") or (written.schema is None)):
        return None
    text = _find_description(hints.get(one.name)) or description
    default = None if required else one.default
    return Parameter(one.name, kind, written, text, required, default, by_position)


def _read_kind(hint: object, title: str, what: str) -> Kind:
    """Return the kind of a hint; an ``Annotated`` of a kind that pydantic does not read is that kind."""
    bare = _strip_annotated(hint)
    try:
        kind = kind_for(bare)
        has_bounds = any(not isinstance(one, str) for one in typing.get_args(hint)[1:])
        return typed_kind(hint) if bare is not hint and has_bounds and kind.schema is not None else kind
    except ValueError as error:
        way_out = "; a class is defined before its tool" if isinstance(bare, str) else ""
        raise ToolkitError([f"{title}: {what}: {error}{way_out}"]) from None


def _strip_annotated(hint: object) -> object:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _find_description(hint: object) -> str:
    """Return the description in an ``Annotated``: a text, or that of a ``Field``."""
    rest = typing.get_args(hint)[1:] if typing.get_origin(hint) is typing.Annotated else ()
    texts = (one if isinstance(one, str) else getattr(one, "description", None) for one in rest)
    return next((one for one in texts if isinstance(one, str)), "")


def _read_result(hints: Mapping[str, object]) -> object:
    """Return the hint of what a function returns, or of what its coroutine does."""
    result = hints.get("return", inspect.Signature.empty)
    if typing.get_origin(result) in (collections.abc.Awaitable, collections.abc.Coroutine):
        return typing.get_args(result)[-1]
    return _strip_annotated(result)


def _read_hints(function: Callable[..., object]) -> dict[str, object]:
    """Return the type hints of a function; those that cannot be resolved remain text.

    Names are those of its module and, for functions within functions, of where the tool is made.
    """
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError, SyntaxError):
        pass
    scope = {**getattr(inspect.unwrap(function), "__globals__", {}), **_find_local_names()}
    hints: dict[str, object] = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        try:
            alone = SimpleNamespace(__annotations__={name: hint})
            (found,) = typing.get_type_hints(alone, scope, include_extras=True).values()
        except (NameError, AttributeError, TypeError, SyntaxError):
            found = hint  # such as names imported for type checkers only
        hints[name] = hint if isinstance(found, ModuleType) else found
    return hints


def _find_local_names() -> Mapping[str, object]:
    """Return the names that are defined where a function of this package was called from outside."""
    frame = sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(__package__ or "?"):
        frame = frame.f_back
    return frame.f_locals


def read_parameters(docstring: str) -> dict[str, str]:
    """Return the description of each parameter that a docstring describes, in one line.

    Args:
        docstring: the docstring (Google, NumPy or Sphinx style), as ``inspect.getdoc`` returns it.
    """
    import docstring_parser

    try:
        parameters = docstring_parser.parse(docstring).params
    except docstring_parser.ParseError:  # a docstring of another style
        return {}
    described = {
        name.strip().lstrip("*"): " ".join((one.description or "").split())
        for one in parameters
        for name in one.arg_name.split(",")
    }
    return {name: text for name, text in described.items() if text}
