"""What a procedure's conditions may refer to beyond values: the results of calls."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeAlias, cast

from formal_llm.guard.rules.data import Undetermined, Value
from formal_llm.guard.rules.expressions import Expression, FieldPath, LastValue, Scope, Steps, follow_path, format_steps
from formal_llm.planning.json_data import JSON

#: What names stand for.
Bindings: TypeAlias = Mapping[str, Expression]


class ResultSource(Protocol):
    """Where a condition finds the results of calls."""

    @abstractmethod
    def get_result(self, call: CallValue, scope: Scope) -> JSON:
        """Return what a call returned.

        Raises:
            Undetermined: the call failed.
        """

    @abstractmethod
    def has_succeeded(self, call: CallValue, scope: Scope) -> bool:
        """Return whether a call succeeded: it did not fail, and returned neither false nor nothing."""


@dataclass(slots=True)
class CallScope(Scope):
    """The data that a condition of a procedure refers to: values by name, and the results of calls."""

    results: ResultSource | None = None

    def require_results(self) -> ResultSource:
        """Return where results are found."""
        if self.results is None:
            raise Undetermined("there are no calls here")
        return self.results


@dataclass(frozen=True, slots=True)
class CallValue(Expression):
    """What a call returned, or a value inside it: ``find_order(order_id).items[0].price``.

    Attributes:
        given: its arguments, in the order of its parameters.
        steps: the steps into the returned value.
    """

    tool: str
    given: tuple[Expression, ...]
    steps: Steps = ()

    @property
    def parts(self) -> tuple[Expression, ...]:
        """Its arguments, and the expressions among its steps."""
        return (*self.given, *(step for step in self.steps if isinstance(step, Expression)))

    def evaluate_in(self, scope: Scope) -> Value:
        """Return the value, which the scope finds."""
        assert isinstance(scope, CallScope)
        value = scope.require_results().get_result(self, scope)
        return follow_path(value, self.steps, scope, self.format_call())

    def format_call(self) -> str:
        """Write the call without the steps."""
        return f"{self.tool}({', '.join(map(str, self.given))})"

    def __str__(self) -> str:
        return f"{self.format_call()}{format_steps(self.steps)}"


@dataclass(frozen=True, slots=True)
class CallSucceeds(Expression):
    """Whether a call succeeds: ``log_in(user, password) is ok``."""

    call: CallValue
    tight = 4

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The call."""
        return (self.call,)

    def evaluate_in(self, scope: Scope) -> Value:
        """Return whether it succeeds, which the scope finds."""
        assert isinstance(scope, CallScope)
        return scope.require_results().has_succeeded(self.call, scope)

    def __str__(self) -> str:
        return f"{self.call} is ok"


def list_names(terms: Iterable[Expression]) -> set[str]:
    """Return the names of the values that some expressions are."""
    return {str(term.steps[0]) for term in terms if isinstance(term, FieldPath)}


def map_parts(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return an expression with each of its direct parts changed."""
    whole: Any = expression  # each kind of expression is a dataclass
    new: dict[str, object] = {}
    for one in fields(whole):
        value = getattr(whole, one.name)
        if isinstance(value, Expression):
            new[one.name] = change(value)
        elif isinstance(value, tuple):
            new[one.name] = tuple(change(part) if isinstance(part, Expression) else part for part in value)
    return cast("Expression", replace(whole, **new))


def bind_names(
    expression: Expression, own: Bindings, change: Callable[[Expression], Expression] | None = None
) -> Expression:
    """Return an expression with names replaced by what they stand for; its other parts by ``change``, or likewise."""
    change = change or (lambda part: bind_names(part, own))
    match expression:
        case FieldPath((str(name), *steps)) if name in own:
            value = own[name]
            if not steps:
                return value
            if isinstance(value, FieldPath | LastValue | CallValue):
                bound = (change(one) if isinstance(one, Expression) else one for one in steps)
                return replace(value, steps=(*value.steps, *bound))
    return map_parts(expression, change)
