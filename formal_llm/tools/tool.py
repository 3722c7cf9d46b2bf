"""Tools: functions with typed inputs and a typed output, each named by a terminal."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, SupportsIndex, TypedDict, TypeVar, overload

from formal_llm.errors import ToolkitError
from formal_llm.tools.kinds import Kind, kind_for
from formal_llm.tools.signature import Signature, read_signature, unwrap_callable

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
        function: the implementation; called with a value for each input. It may be called from several threads at once
            and may change the values that it receives: they are copies.
        cost: the cost of one use, in a unit that the user chooses.
        version: part of the key under which results are cached: it must change whenever results would. By default
            derived from the source text of the function and what it encloses, which does not cover what it calls.
        batch: processes many uses at once: called with a list for each input, returns the list of results in order.
        pure: whether it has no effect but its result, and the same inputs give the same result. Only then may equal
            calls be one call, results be kept, and calls run side by side.
        idempotent: whether calling it twice has the effect of calling it once, so that a failed call may be retried.
        returns: the name under which steps of a sequence find its result; default: its own name.
        timeout: seconds allowed for one call; None for the executor's own setting.
        retries: how often a failed call is retried; None for the executor's own setting.
        parameters: the names of the inputs, if they are known.
        signature: everything that a model may set: the inputs, and parameters with a default. Default: the inputs.

    Raises:
        ToolkitError: ``retries`` or ``batch`` of a tool that may not be called again after a failure.
    """

    name: str
    inputs: tuple[Kind, ...]
    output: Kind
    function: Callable[..., object]
    description: str = ""
    cost: float = 0.0
    version: str = ""
    batch: Callable[..., Sequence[object]] | None = None
    pure: bool = False
    idempotent: bool = False
    returns: str = ""
    timeout: float | None = None
    retries: int | None = None
    parameters: tuple[str, ...] = ()
    signature: Signature = field(default=Signature(()), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if self.signature.inputs != self.inputs:
            object.__setattr__(self, "signature", Signature.from_kinds(self.inputs, self.parameters))
        if not self.may_repeat and (self.retries or self.batch is not None):
            what = "batch=" if self.batch is not None else "retries="
            problem = f"{self.name}: {what} needs pure=True" + (" or idempotent=True" if self.batch is None else "")
            raise ToolkitError([f"{problem}: after a failure it is called again"])
        if not self.version:
            object.__setattr__(self, "version", source_version(self.function, self.signature.defaults))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the function, for direct use."""
        return self.function(*args, **kwargs)

    @property
    def schema(self) -> dict[str, object]:
        """The JSON schema of its arguments, as providers take it for tools.

        Raises:
            ToolkitError: an argument cannot be written as JSON.
        """
        return self.signature.schema

    @property
    def strict_schema(self) -> dict[str, object]:
        """The schema that all providers can hold a model to, see :func:`~formal_llm.llms.schemas.close_schema`.

        Raises:
            ToolkitError: an argument cannot be written as JSON.
        """
        return self.signature.strict_schema

    @property
    def may_repeat(self) -> bool:
        """Whether calling it more often than a plan says does no harm."""
        return self.pure or self.idempotent

    @property
    def is_async(self) -> bool:
        """Whether its function is a coroutine function, so that what it gives must be awaited."""
        return inspect.iscoroutinefunction(unwrap_callable(self.function))

    def apply(self, values: Sequence[object], named: Mapping[str, object]) -> object:
        """Call the function.

        Args:
            values: a value for each input.
            named: values for other parameters.
        """
        positional, by_name = self.signature.arrange(values, named)
        return self.function(*positional, **by_name)

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
    """Return the tool that a module defines, or the function, as a tool.

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
    if isinstance(candidate, Tool):
        return candidate
    if not callable(candidate):
        raise ToolkitError([f"{where} is no tool but a {type(candidate).__name__}"])
    made: Tool = tool(candidate)
    return made


def source_version(function: Callable[..., object], defaults: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a short fingerprint of a function's source text, its defaults and what it encloses; empty if it has none.

    That of a ``functools.partial`` also covers what it fixes, that of an object its class.
    """
    fixed = repr(sorted(defaults.items())) if defaults else ""
    while isinstance(function, partial):
        fixed += repr((function.args, sorted(function.keywords.items())))
        function = function.func
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # an empty cell: a name that is given later
            inside = cell.cell_contents
            fixed += source_version(inside) if inspect.isfunction(inside) else repr(inside)
    try:
        text = fixed + inspect.getsource(
            function if inspect.isroutine(function) or isinstance(function, type) else type(function)
        )
    except (OSError, TypeError):
        return fixed and hashlib.sha256(fixed.encode(errors="replace")).hexdigest()[:12]
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12]


class ToolSettings(TypedDict, total=False):
    """The optional settings of :func:`tool` besides name and kinds: attributes of :class:`Tool`."""

    description: str
    cost: float
    version: str
    batch: Callable[..., Sequence[object]] | None
    pure: bool
    idempotent: bool
    returns: str
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
    kind, and whatever else pydantic reads a kind of its own. Parameters that have a default are no inputs in plans; a
    model that calls the tool may set them. The docstring describes the parameters (Google, NumPy or Sphinx style), or
    ``Annotated[int, Field(description=...)]`` does. An ``async def`` is awaited by whoever carries out the calls.

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
        named: object = function
        while isinstance(named, partial):
            named = named.func
        title = called if called is not None else str(getattr(named, "__name__", type(named).__name__))
        kinds = None if inputs is None else [_read_kind(hint, title, "an input") for hint in inputs]
        signature, result = read_signature(function, title, kinds)
        if output is None and result is inspect.Signature.empty:
            raise ToolkitError([f"{title}: what it returns has no type hint; write one, or output=..."])
        documented = inspect.getdoc(named) or inspect.getdoc(unwrap_callable(function)) or ""
        all_settings: ToolSettings = {"description": documented.split("\n", 1)[0], **settings}
        return FunctionTool(
            title,
            signature.inputs,
            _read_kind(result if output is None else output, title, "the output"),
            function,
            parameters=tuple(one.name for one in signature.required),
            signature=signature,
            **all_settings,
        )

    if callable(name):
        return make_tool(name)
    return lambda function: make_tool(function, name)


def _read_kind(hint: object, title: str, what: str) -> Kind:
    try:
        return kind_for(hint)
    except ValueError as error:
        raise ToolkitError([f"{title}: {what}: {error}"]) from None
