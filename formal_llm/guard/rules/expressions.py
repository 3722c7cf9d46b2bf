"""Conditions on the arguments and results of calls: expressions that are read, printed and evaluated, never executed.

A condition has three outcomes: it holds, it does not, or it is undetermined, because an argument is missing or cannot
be compared with the other value (strong three-valued logic, Kleene 1952). The reason is reported.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from formal_llm.guard.rules.data import Undetermined, Value, format_value, is_less, to_text, write_constant
from formal_llm.guard.rules.functions import FUNCTIONS, OPERATORS
from formal_llm.planning.json_data import JSON

#: The maximum length of a result text that is read as JSON.
_MOST_JSON = 1_000_000


#: For a result: the whole returned value, the arguments of the call, and whether it failed; a field of the returned
#: value with such a name does not hide them.
RESERVED_NAMES = ("returned", "called_with", "failed")


class LetterMemory(Protocol):
    """The earlier occurrences of letters."""

    def has_happened(self, letter: str, values: tuple[Value, ...]) -> bool:
        """Return whether a letter has occurred with these values of its first fields."""

    def has_given_text(self, letter: str, value: Value) -> bool:
        """Return whether a text in a value occurs in what a letter has given; raises Undetermined if not known."""

    def get_last_value(
        self, letter: str, name: str, keys: tuple[Value, ...] = (), fits: Callable[[Value], bool] | None = None
    ) -> Value:
        """Return a field of the last occurrence of a letter with these values of its first fields that ``fits``.

        Raises:
            Undetermined: there is none.
        """


@dataclass(slots=True)
class Scope:
    """The data that a condition refers to: one event, and the history before it."""

    arguments: Mapping[str, JSON]
    names: Mapping[str, Value]
    value: Value = None
    has_value: bool = False
    error: bool = False
    memory: LetterMemory | None = None
    unsaid: list[str] = field(default_factory=list)
    item: Value = None
    bound: Mapping[str, Value] = field(default_factory=dict)

    def look_up(self, name: str) -> Value:
        """Look up a plain name: for a result a field of the returned value, else a fact of the event, else an argument.

        A model chooses arguments, so none of them hides a fact such as ``approved``. A name that a condition binds
        hides all others.

        Raises:
            Undetermined: there is nothing with that name.
        """
        if name in self.bound:
            return self.bound[name]
        if self.has_value and name in RESERVED_NAMES:
            return self.names[name]
        if self.has_value:
            if isinstance(self.value, Mapping) and name in self.value:
                return self.value[name]
            if name == "value":
                return self.value
            if name == "error":
                return self.error
            if name == "ok":
                return not self.error
        if name in self.names:
            return self.names[name]
        if name in self.arguments:
            return self.arguments[name]
        raise Undetermined(f"{name} is missing")


def read_json(value: Value) -> Value:
    """Parse a returned text that is a JSON object or list; return anything else unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") and len(value) <= _MOST_JSON:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


class Expression(ABC):
    """A term with a value, or a condition that holds or does not."""

    __slots__ = ()
    #: The precedence for printing.
    tight = 9

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The direct subexpressions."""
        return ()

    @abstractmethod
    def evaluate_in(self, scope: Scope) -> Value:
        """Compute the value.

        Raises:
            Undetermined: the value cannot be determined.
        """

    def is_satisfied(self, scope: Scope) -> bool | None:
        """Return whether it holds; None if that is undetermined, with the reason appended to ``scope.unsaid``."""
        try:
            value = self.evaluate_in(scope)
            if value is None or isinstance(value, bool):
                return bool(value)
            raise Undetermined(f"{self} is {format_value(value)}, which is no yes or no")
        except Undetermined as error:
            scope.unsaid.append(str(error))
            return None

    def walk(self) -> Iterator[Expression]:
        """Yield the expression and all its subexpressions."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def _parenthesize_part(self, part: Expression) -> str:
        return str(part) if part.tight > self.tight else f"({part})"


@dataclass(frozen=True, slots=True)
class Constant(Expression):
    """A number, a text, a date, ..."""

    value: Value

    def evaluate_in(self, scope: Scope) -> Value:
        return self.value

    def __str__(self) -> str:
        return write_constant(self.value)


@dataclass(frozen=True, slots=True)
class ItemField(Expression):
    """A field of the item that a condition is about: ``.number`` in ``claims[.number == claim_id]``."""

    steps: Steps

    @property
    def parts(self) -> tuple[Expression, ...]:
        return tuple(step for step in self.steps if isinstance(step, Expression))

    def evaluate_in(self, scope: Scope) -> Value:
        return follow_path(scope.item, self.steps, scope, "")

    def __str__(self) -> str:
        return format_steps(self.steps)


@dataclass(frozen=True, slots=True)
class ItemChoice(Expression):
    """A step to the one item of a list for which a condition holds, or to ``every`` such item: ``[* where .open]``."""

    condition: Expression
    every: bool = False

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.condition,)

    def evaluate_in(self, scope: Scope) -> Value:
        raise Undetermined(f"there are no items to choose from by [{self}]")

    def choose_items(self, items: Iterable[Value], scope: Scope, called: str) -> list[Value]:
        """Return the items for which it holds.

        Raises:
            Undetermined: it cannot be determined for an item, or one is wanted and there is none, or several.
        """
        chosen = [item for item in items if self.fits(item, scope, called)]
        if not self.every and len(chosen) != 1:
            raise Undetermined(f"{called} is missing" if not chosen else f"{called} could be {len(chosen)} items")
        return chosen

    def fits(self, item: Value, scope: Scope, called: str) -> bool:
        """Return whether the condition holds for an item; raises Undetermined if that is not known."""
        inner = replace(scope, item=item, unsaid=[])
        found = self.condition.is_satisfied(inner)
        if found is None:
            raise Undetermined(f"{called}: {inner.unsaid[-1]}")
        return found

    def __str__(self) -> str:
        return f"* where {self.condition}" if self.every else str(self.condition)


#: The steps from a value into it: a field, an index, None for all values of a list or an object, a choice of items, or
#: an expression whose value is the field.
Steps = tuple[str | int | Expression | None, ...]


def follow_path(value: Value, steps: Steps, scope: Scope, called: str) -> Value:
    """Follow steps into a value that is ``called`` so in messages.

    Raises:
        Undetermined: there is no such value.
    """
    for at, step in enumerate(steps):
        if (step is None or isinstance(step, ItemChoice)) and isinstance(value, list | tuple | Mapping):
            inner = list(value.values() if isinstance(value, Mapping) else value)
            rest, name = steps[at + 1 :], f"{called}{format_steps(steps[: at + 1])}"
            if step is not None:
                inner = step.choose_items(inner, scope, name)
            found = [follow_path(one, rest, scope, name) for one in inner]
            if step is not None and not step.every:
                return found[0]
            is_nested = any(one is None or (isinstance(one, ItemChoice) and one.every) for one in rest)
            return [part for one in found if isinstance(one, list) for part in one] if is_nested else found
        if isinstance(step, Expression):
            step = to_text(step.evaluate_in(scope))
        if isinstance(step, str) and isinstance(value, Mapping) and step in value:  # noqa: SIM114  # types part
            value = value[step]
        elif isinstance(step, int) and isinstance(value, list | tuple) and step < len(value):
            value = value[step]
        else:
            raise Undetermined(f"{called}{format_steps(steps[: at + 1])} is missing")
    return value


def format_steps(steps: Steps) -> str:
    """Write steps as in an expression."""
    return "".join(f".{step}" if isinstance(step, str) else f"[{'*' if step is None else step}]" for step in steps)


@dataclass(frozen=True, slots=True)
class FieldPath(Expression):
    """An argument, or a value inside it: ``order.items[0].price``; ``items[*].price`` is the list of all prices.

    ``orders[*].items[*].price`` is one list, too.

    ``prices[name]`` is the field whose name is the value of ``name``.
    """

    steps: Steps

    @property
    def parts(self) -> tuple[Expression, ...]:
        return tuple(step for step in self.steps if isinstance(step, Expression))

    def evaluate_in(self, scope: Scope) -> Value:
        first, *rest = self.steps
        return follow_path(scope.look_up(str(first)), tuple(rest), scope, str(first))

    def __str__(self) -> str:
        return f"{self.steps[0]}{format_steps(self.steps[1:])}"


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    """A function applied to values: ``len(items)``."""

    name: str
    given: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.given

    def evaluate_in(self, scope: Scope) -> Value:
        if self.name == "holds":
            return self.given[0].is_satisfied(replace(scope, unsaid=[])) is True
        if self.name in ("missing", "has"):
            try:
                self.given[0].evaluate_in(scope)
            except Undetermined:
                return self.name == "missing"
            return self.name == "has"
        return FUNCTIONS[self.name].work(*[one.evaluate_in(scope) for one in self.given])

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.given))})"


@dataclass(frozen=True, slots=True)
class PastLetter(Expression):
    """Whether a letter has occurred with these values of its first fields: ``approved(order_id)``."""

    letter: str
    given: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.given

    def evaluate_in(self, scope: Scope) -> Value:
        values = tuple(one.evaluate_in(scope) for one in self.given)
        return scope.memory is not None and scope.memory.has_happened(self.letter, values)

    def __str__(self) -> str:
        return f"{self.letter}({', '.join(map(str, self.given))})"


@dataclass(frozen=True, slots=True)
class StemsFrom(PastLetter):
    """Whether a text in a value is copied from what a letter has given: ``stems_from(body, web)``."""

    def evaluate_in(self, scope: Scope) -> Value:
        # All arguments, also where one is called so; their names are no data.
        every = self.given[0] == FieldPath(("arguments",))
        value = list(scope.arguments.values()) if every else self.given[0].evaluate_in(scope)
        return scope.memory is not None and scope.memory.has_given_text(self.letter, value)

    def __str__(self) -> str:
        return f"stems_from({self.given[0]}, {self.letter})"


@dataclass(frozen=True, slots=True)
class LastValue(Expression):
    """The value of a field of the last occurrence of a letter: ``last(quote.price)``.

    ``last(quote(item).price)`` is that of the last occurrence with this value of the first field, and
    ``last(quote[.items contains item].price)`` that of the last one whose fields meet a condition.
    """

    letter: str
    name: str
    keys: tuple[Expression, ...] = ()
    steps: Steps = ()
    choice: ItemChoice | None = None

    @property
    def parts(self) -> tuple[Expression, ...]:
        chosen = (self.choice,) if self.choice is not None else ()
        return (*self.keys, *chosen, *(step for step in self.steps if isinstance(step, Expression)))

    def evaluate_in(self, scope: Scope) -> Value:
        if scope.memory is None:
            raise Undetermined(f"there was no {self.letter} before")
        keys = tuple(key.evaluate_in(scope) for key in self.keys)
        choice = self.choice
        fits = None if choice is None else lambda fields: choice.fits(fields, scope, self.letter)
        value = scope.memory.get_last_value(self.letter, self.name, keys, fits)
        return follow_path(value, self.steps, scope, str(self))

    def __str__(self) -> str:
        keys = f"({', '.join(map(str, self.keys))})" if self.keys else ""
        keys += f"[{self.choice}]" if self.choice is not None else ""
        return f"last({self.letter}{keys}.{self.name}{format_steps(self.steps)})"


@dataclass(frozen=True, slots=True)
class ForAll(Expression):
    """Whether a condition holds for each item of a list, or for the items of several at the same places.

    ``all(old in item_ids, new in new_ids, old != new)``
    """

    names: tuple[str, ...]
    lists: tuple[Expression, ...]
    condition: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (*self.lists, self.condition)

    def evaluate_in(self, scope: Scope) -> Value:
        lists = [one for one in (each.evaluate_in(scope) for each in self.lists) if isinstance(one, list | tuple)]
        if len(lists) < len(self.lists) or len(set(map(len, lists))) > 1:
            raise Undetermined(f"{', '.join(map(str, self.lists))} are no lists of the same length")
        unsaid: list[str] = []
        bound = [{**scope.bound, **dict(zip(self.names, values, strict=True))} for values in zip(*lists, strict=True)]
        held = [self.condition.is_satisfied(replace(scope, bound=one, unsaid=unsaid)) for one in bound]
        if None in held and False not in held:
            raise Undetermined(unsaid[-1])
        return False not in held

    def __str__(self) -> str:
        items = [f"{name} in {one}" for name, one in zip(self.names, self.lists, strict=True)]
        return f"all({', '.join([*items, str(self.condition)])})"


@dataclass(frozen=True, slots=True)
class ValueSet(Expression):
    """A set of values: ``{EUR, USD}``."""

    items: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.items

    def evaluate_in(self, scope: Scope) -> Value:
        return [one.evaluate_in(scope) for one in self.items]

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.items))}}}"


@dataclass(frozen=True, slots=True)
class ValueRange(Expression):
    """A closed range of values: ``9:00..17:00``; it spans midnight if the second time is less."""

    first: Expression
    last: Expression
    tight = 4

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.first, self.last)

    def contains_value(self, value: Value, scope: Scope) -> bool:
        first, last = self.first.evaluate_in(scope), self.last.evaluate_in(scope)
        after, before = not is_less(value, first), not is_less(last, value)
        spans_midnight = type(first).__name__ == "time" and is_less(last, first)
        return (after or before) if spans_midnight else (after and before)

    def evaluate_in(self, scope: Scope) -> Value:
        raise Undetermined(f"{self} is a range; it stands behind 'in'")

    def __str__(self) -> str:
        return f"{self._parenthesize_part(self.first)}..{self._parenthesize_part(self.last)}"


@dataclass(frozen=True, slots=True)
class BinaryOperation(Expression):
    """Two values joined by an operator."""

    sign: str
    left: Expression
    right: Expression

    @property
    def tight(self) -> int:  # type: ignore[override]  # it depends on the sign
        return OPERATORS[self.sign][0]

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    def evaluate_in(self, scope: Scope) -> Value:
        left = self.left.evaluate_in(scope)
        if isinstance(self.right, ValueRange):
            return self.right.contains_value(left, scope)
        right = self.right.evaluate_in(scope)
        try:
            return OPERATORS[self.sign][1](left, right)
        except Undetermined as error:
            where = self.left if isinstance(self.right, Constant | ValueSet) else self
            raise Undetermined(f"{where}: {error}") from None

    def __str__(self) -> str:
        # Operators are left-associative: a - b - c is (a - b) - c. Comparisons are not.
        left = (
            str(self.left) if self.tight > 4 and self.left.tight >= self.tight else self._parenthesize_part(self.left)
        )
        right = str(self.right) if isinstance(self.right, ValueRange) else self._parenthesize_part(self.right)
        return f"{left} {self.sign} {right}"


@dataclass(frozen=True, slots=True)
class Negation(Expression):
    """The opposite of a condition."""

    inner: Expression
    tight = 3

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.inner,)

    def evaluate_in(self, scope: Scope) -> Value:
        found = self.is_satisfied(scope)
        if found is None:
            raise Undetermined(scope.unsaid.pop())
        return found

    def is_satisfied(self, scope: Scope) -> bool | None:
        found = self.inner.is_satisfied(scope)
        return None if found is None else not found

    def __str__(self) -> str:
        return f"not {self.inner if self.inner.tight >= self.tight else f'({self.inner})'}"


@dataclass(frozen=True, slots=True)
class Connective(Expression):
    """The conjunction (``and``) or disjunction (``or``) of conditions."""

    word: str
    items: tuple[Expression, ...]

    @property
    def tight(self) -> int:  # type: ignore[override]  # it depends on the word
        return 2 if self.word == "and" else 1

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.items

    def evaluate_in(self, scope: Scope) -> Value:
        found = self.is_satisfied(scope)
        if found is None:
            raise Undetermined(scope.unsaid.pop())
        return found

    def is_satisfied(self, scope: Scope) -> bool | None:
        decisive = self.word == "or"
        before, undetermined = len(scope.unsaid), False
        for one in self.items:
            found = one.is_satisfied(scope)
            if found is decisive:
                del scope.unsaid[before:]  # undetermined conditions do not matter then
                return decisive
            undetermined = undetermined or found is None
        return None if undetermined else not decisive

    def __str__(self) -> str:
        return f" {self.word} ".join(self._parenthesize_part(one) for one in self.items)


def join_conditions(word: str, items: Sequence[Expression]) -> Expression:
    """Join two conditions or more by ``and`` or ``or``; those that are joined by the same word already become parts."""
    return Connective(
        word,
        tuple(
            part
            for one in items
            for part in (one.items if isinstance(one, Connective) and one.word == word else (one,))
        ),
    )
