"""A tool: a function with typed inputs and a typed output, under the name of a terminal."""

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
    """A tool: called by hand, it is its function.

    Tools are equal where their parts are. One that stands in a module is pickled by its name there, as functions are.

    Attributes:
        name: the terminal that stands for it.
        inputs: the kinds of its arguments, in order.
        output: the kind of what it returns.
        function: what it does; called with a value for each input. It may be called from several threads at once, and
            may change the values that it is given: they are copies.
        description: what it does, in words.
        cost: what one use costs, in whatever the user counts.
        version: part of the key under which results are cached: it must change whenever results would. Told from the
            source text of the function where left out, which does not see what the function calls.
        batch: does many uses at once: called with a list for each input, returns the list of results in their order.
        deterministic: whether the same inputs give the same result, so that results can be shared and cached.
        timeout: seconds that one call may take; None for the executor's own setting.
        retries: how often a call that failed is tried again; None for the executor's own setting.
        parameters: the names of the arguments, where they are known.
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
        """What the function returns, for those who use it by hand."""
        return self.function(*args, **kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        # A decorated function cannot be found under its name: there the tool stands. In the main module of another
        # process there is something else.
        module, name = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        if module != "__main__" and getattr(sys.modules.get(module), name, None) is self:
            return find_tool, (f"{module}:{name}",)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<Tool {self}>"

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.inputs))}) -> {self.output}"


class FunctionTool(Tool, Generic[P, R]):
    """A tool made by :func:`tool`: called by hand, it takes and returns what its function does."""

    if TYPE_CHECKING:

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
            """What the function returns."""


def find_tool(where: str) -> Tool:
    """The tool that a module defines.

    Args:
        where: module and name, as in ``"my_tools:denoise"``.

    Raises:
        ToolkitError: there is none.
    """
    module, _, name = where.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ToolkitError([f"there is no tool {where!r} (module:name): {error}"]) from error
    if not isinstance(found, Tool):
        raise ToolkitError([f"{where} is no tool but a {type(found).__name__}"])
    return found


def source_version(function: Callable[..., object]) -> str:
    """A short fingerprint of a function's source text; empty where it has none."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


class ToolSettings(TypedDict, total=False):
    """What :func:`tool` may be told of a tool besides its name and kinds: attributes of :class:`Tool`."""

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
    """Make a tool of a function: a decorator, with or without arguments.

    The kinds are read from the type hints: ``str`` is a text, ``PIL.Image.Image`` an image, a registered class its
    kind. Parameters that have a default value are no inputs of the tool.

    Args:
        name: the terminal; the name of the function where left out.
        inputs: the kinds of the inputs, or their classes or names, in place of the type hints.
        output: the kind of the output, in the same way.
        **settings: the other attributes of :class:`Tool`. The description is the first line of the function's docstring
            where left out.

    Raises:
        ToolkitError: a type hint is missing, or is no kind.
    """

    def make_tool(function: Callable[..., object], called: str | None = None) -> Tool:
        title = called if called is not None else str(getattr(function, "__name__", type(function).__name__))
        found, parameters, result = _read_signature(function, title, inputs is None, output is None)
        documented = inspect.getdoc(function) or ""
        more: ToolSettings = {"description": documented.split("\n", 1)[0], **settings}
        return FunctionTool(
            title,
            tuple(found if inputs is None else (_read_kind(hint, title, "an input") for hint in inputs)),
            _read_kind(result if output is None else output, title, "the output"),
            function,
            parameters=tuple(parameters),
            **more,
        )

    if callable(name):
        return make_tool(name)
    return lambda function: make_tool(function, name)


def _read_signature(
    function: Callable[..., object], title: str, needs_inputs: bool, needs_output: bool
) -> tuple[list[Kind], list[str], object]:
    """The kinds and names of the inputs, and the hint for the output."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, AttributeError, TypeError, SyntaxError):
        # Hints that are text and mean nothing here, such as names imported for type checkers only; the text will do.
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
