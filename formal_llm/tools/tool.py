"""Tools: functions with typed inputs and a typed output, each named by a terminal."""

from __future__ import annotations

import hashlib
import inspect
import sys
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, SupportsIndex, TypedDict, TypeVar, overload

from formal_llm.errors import ToolkitError
from formal_llm.tools.kinds import Kind, kind_for

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Tool:
    """A tool. Calling it calls its function.

    Tools are equal if their attributes are. A tool defined in a module is pickled by its name there, as functions are.

    Attributes:
        name: the terminal that represents it.
        inputs: the kinds of its arguments, in order.
        output: the kind of its result.
        function: the implementation; called with a value for each input. It may be called from several threads at once
            and may change the values that it receives: they are copies.
        description: a description in words.
        cost: the cost of one use, in a unit that the user chooses.
        version: part of the key under which results are cached: it must change whenever results would. By default
            derived from the source text of the function, which does not cover what the function calls.
        batch: processes many uses at once: called with a list for each input, returns the list of results in order.
        deterministic: whether the same inputs give the same result, so that results can be shared and cached.
        timeout: seconds allowed for one call; None for the executor's own setting.
        retries: how often a failed call is retried; None for the executor's own setting.
        parameters: the names of the arguments, if they are known.
    """

    name: str
    inputs: tuple[Kind, ...]
    output: Kind
    function: Callable[..., object]
    description: str = ""
    cost: float = 0.0
    version: str = ""
    batch: Callable[..., Sequence[object]] | None = None
    deterministic: bool = True
    timeout: float | None = None
    retries: int | None = None
    parameters: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if not self.version:
            object.__setattr__(self, "version", source_version(self.function))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the function, for direct use."""
        return self.function(*args, **kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # A decorated function cannot be imported under its name, because the tool is there. The main module of another
        # process is a different module.
        module, name = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        if module != "__main__" and getattr(sys.modules.get(module), name, None) is self:
            return find_tool, (f"{module}:{name}",)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<Tool {self}>"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.inputs))}) -> {self.output}"


class FunctionTool(Tool, Generic[P, R]):
    """A tool made by :func:`tool`; calling it takes and returns what its function does."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
            """Return the result of the function."""


def find_tool(where: str) -> Tool:
    """Return the tool that a module defines.

    Args:
        where: module and name, as in ``"my_tools:denoise"``.

    Raises:
        ToolkitError: there is no such tool.
    """
    module, _, name = where.partition(":")
    try:
        candidate = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ToolkitError([f"there is no tool {where!r} (module:name): {error}"]) from error
    if not isinstance(candidate, Tool):
        raise ToolkitError([f"{where} is no tool but a {type(candidate).__name__}"])
    return candidate


def source_version(function: Callable[..., object]) -> str:
    """Return a short fingerprint of a function's source text; empty if it has none."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


class ToolSettings(TypedDict, total=False):
    """The optional settings of :func:`tool` besides name and kinds: attributes of :class:`Tool`."""

    description: str
    cost: float
    version: str
    batch: Callable[..., Sequence[object]] | None
    deterministic: bool
    timeout: float | None
    retries: int | None


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    name: str | None = None,
    /,
    *,
    inputs: Sequence[Kind | type | str] | None = None,
    output: Kind | type | str | None = None,
    **settings: Unpack[ToolSettings],
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    name: str | Callable[..., object] | None = None,
    /,
    *,
    inputs: Sequence[Kind | type | str] | None = None,
    output: Kind | type | str | None = None,
    **settings: Unpack[ToolSettings],
) -> Tool | Callable[[Callable[..., object]], Tool]:
    """Turn a function into a tool: a decorator, with or without arguments.

    The kinds are derived from the type hints: ``str`` is a text, ``PIL.Image.Image`` an image, a registered class its
    kind. Parameters that have a default value are not inputs of the tool.

    Args:
        name: the terminal; default: the name of the function.
        inputs: the kinds of the inputs, or their classes or names, instead of the type hints.
        output: the kind of the output, likewise.
        **settings: the other attributes of :class:`Tool`. The default of the description is the first line of the
            function's docstring.

    Raises:
        ToolkitError: a type hint is missing or is not a kind.
    """

    def make_tool(function: Callable[..., object], called: str | None = None) -> Tool:
        title = called if called is not None else str(getattr(function, "__name__", type(function).__name__))
        kinds, parameters, result = _read_signature(function, title, inputs is None, output is None)
        documented = inspect.getdoc(function) or ""
        all_settings: ToolSettings = {"description": documented.split("\n", 1)[0], **settings}
        return FunctionTool(
            title,
            tuple(kinds if inputs is None else (_read_kind(hint, title, "an input") for hint in inputs)),
            _read_kind(result if output is None else output, title, "the output"),
            function,
            parameters=tuple(parameters),
            **all_settings,
        )

    if callable(name):
        return make_tool(name)
    return lambda function: make_tool(function, name)


def _read_signature(
    function: Callable[..., object], title: str, needs_inputs: bool, needs_output: bool
) -> tuple[list[Kind], list[str], object]:
    """Return the kinds and names of the inputs, and the hint for the output."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, AttributeError, TypeError, SyntaxError):
        # Use textual hints as they are if they cannot be resolved, such as names imported for type checkers only.
        hints = dict(getattr(function, "__annotations__", {}))
    kinds: list[Kind] = []
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is not parameter.empty:
            continue
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            if needs_inputs:
                raise ToolkitError([f"{title}: the parameter {parameter} is no single value; say inputs=..."])
            continue
        names.append(parameter.name)
        if needs_inputs:
            if parameter.name not in hints:
                raise ToolkitError(
                    [f"{title}: the parameter {parameter.name} has no type hint; write one, or inputs=..."]
                )
            kinds.append(_read_kind(hints[parameter.name], title, f"the parameter {parameter.name}"))
    if needs_output and "return" not in hints:
        raise ToolkitError([f"{title}: what it returns has no type hint; write one, or output=..."])
    return kinds, names, hints.get("return")


def _read_kind(hint: object, title: str, what: str) -> Kind:
    try:
        return kind_for(hint)
    except ValueError as error:
        raise ToolkitError([f"{title}: {what}: {error}"]) from None
