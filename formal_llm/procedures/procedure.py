"""A procedure: what must be established before an action, and how it is established.

- A *tool* looks something up (a check) or changes something (an action). Its *need* must hold before it is called.
- A *fact* about values holds because of what calls returned: ``delivered(order_id)`` if
  ``find_order(order_id).status == "delivered"``. A fact that an action establishes, such as a login, holds from that
  call until an event that the fact names.
- A *goal* is a tool that a user may ask for.
- A *need* is a tree: all of, any of, in order, none of, first of; its leaves are facts and conditions.

Printing a procedure and reading it again gives the same procedure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias, Union

from formal_llm.authored.files import read_text
from formal_llm.automata.models.symbols import quote_text
from formal_llm.guard.rules.data import Value, write_constant
from formal_llm.guard.rules.expressions import Expression, PastLetter
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.terms import CallValue, list_names

#: How the parts of a group count: all must hold, one must, all must and are established in this order, none may, or the
#: first that can be determined decides, as with several sources of the same information.
Grouping = Literal["all of", "any of", "in order", "none of", "first of"]
GROUPINGS: tuple[Grouping, ...] = ("all of", "any of", "in order", "none of", "first of")


@dataclass(frozen=True, slots=True)
class NeedGroup:
    """Several needs as one."""

    grouping: Grouping
    items: tuple[Need, ...]

    @property
    def parts(self) -> tuple[Need, ...]:
        """The needs in it."""
        return self.items


@dataclass(frozen=True, slots=True)
class NotNeed:
    """A need that must not hold."""

    inner: Need

    @property
    def parts(self) -> tuple[Need, ...]:
        """The need that must not hold."""
        return (self.inner,)

    def __str__(self) -> str:
        return f"not {self.inner}"


@dataclass(frozen=True, slots=True)
class FactNeed:
    """A fact about some values must hold."""

    fact: str
    given: tuple[Expression, ...]
    parts: tuple[Need, ...] = ()

    def __str__(self) -> str:
        return str(PastLetter(self.fact, self.given))


@dataclass(frozen=True, slots=True)
class ConditionNeed:
    """A condition on values and on the results of calls must hold."""

    condition: Expression
    parts: tuple[Need, ...] = ()

    def __str__(self) -> str:
        return str(self.condition)


@dataclass(frozen=True, slots=True)
class Hole:
    """A sentence of a policy that was not understood: it can be neither established nor refuted."""

    text: str
    parts: tuple[Need, ...] = ()

    def __str__(self) -> str:
        return f"? {quote_text(self.text)}"


Need: TypeAlias = Union["NeedGroup", "NotNeed", "FactNeed", "ConditionNeed", "Hole"]
#: The need that always holds.
NO_NEED = NeedGroup("all of", ())


def walk_need(need: Need) -> Iterator[Need]:
    """Yield a need and all needs in it."""
    yield need
    for part in need.parts:
        yield from walk_need(part)


def walk_terms(need: Need) -> Iterator[Expression]:
    """Yield all expressions in a need."""
    for one in walk_need(need):
        expressions = (one.condition,) if isinstance(one, ConditionNeed) else getattr(one, "given", ())
        for expression in expressions:
            yield from expression.walk()


def list_owners(need: Need) -> set[str]:
    """Return the names of the tools and facts in a need."""
    return {one.fact for one in walk_need(need) if isinstance(one, FactNeed)} | {
        term.tool for term in walk_terms(need) if isinstance(term, CallValue)
    }


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """A parameter of a tool.

    Attributes:
        kind: its type (``text``, ``number``, ``integer``, ``yes or no``, ``date``, ``list``, ``any``), or the texts
            that are allowed.
        default: its value if none is known; only if it is ``optional``.
    """

    name: str
    kind: str | tuple[str, ...] = "any"
    optional: bool = False
    default: JSON = None

    def __str__(self) -> str:
        kind = self.kind if isinstance(self.kind, str) else " | ".join(map(quote_text, self.kind))
        suffix = f" = {write_constant(self.default)}" if self.optional else ""
        return f"{self.name}{'' if kind == 'any' else f': {kind}'}{suffix}"


@dataclass(frozen=True, slots=True)
class ProcedureTool:
    """A tool as a procedure knows it.

    Attributes:
        acts: whether it changes something; a check only looks.
        is_goal: whether a user may ask for it.
        need: what must hold before it is called.
        description: what it does, in words.
        cost: what a call costs, in a unit that the author chooses.
        changes: the checks whose results it makes obsolete; None for all of them.
        idempotent: whether a second call with the same arguments does no more than the first.
        approved: whether a person has to approve each call.
        computed: parameters whose values are computed, with the expression.
    """

    name: str
    parameters: tuple[ToolParameter, ...] = ()
    acts: bool = False
    is_goal: bool = False
    need: Need = NO_NEED
    description: str = ""
    cost: float = 1
    changes: tuple[str, ...] | None = None
    idempotent: bool = False
    approved: bool = False
    computed: tuple[tuple[str, Expression], ...] = ()

    def may_repeat(self) -> bool:
        """Return whether a call may be made again if its result was lost."""
        return not self.acts or self.idempotent

    def makes_obsolete(self, check: str) -> bool:
        """Return whether a call makes earlier results of a check obsolete."""
        return self.acts and (self.changes is None or check in self.changes)


@dataclass(frozen=True, slots=True)
class Retraction:
    """A successful call that ends a fact: of a tool, with some of its arguments; without ``given`` any call of it."""

    tool: str
    given: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return f"{self.tool}({', '.join(map(str, self.given))})" if self.given else self.tool


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact about values.

    Attributes:
        parameters: the names of the values that it is about.
        need: what it means.
        until: the calls that end it; only for a fact that an action establishes.
        description: what it means, in words.
    """

    name: str
    parameters: tuple[str, ...]
    need: Need
    until: tuple[Retraction, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class Procedure:
    """What must be established before which action.

    Attributes:
        constants: values that conditions may name.
        name: its name, for people.
    """

    tools: Mapping[str, ProcedureTool]
    facts: Mapping[str, Fact] = field(default_factory=dict)
    constants: Mapping[str, Value] = field(default_factory=dict)
    name: str = ""

    @classmethod
    def from_string(cls, text: str, *, file: str | None = None) -> Procedure:
        """Read a procedure.

        Raises:
            NotationError: with file, line, column, and a suggestion.
        """
        from formal_llm.procedures.reading import read_procedure

        return read_procedure(text, file)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Procedure:
        """Read a ``.procedure`` file.

        Raises:
            NotationError: it cannot be read, or is no procedure.
        """
        return cls.from_string(read_text(Path(path)), file=os.fspath(path))

    @property
    def goals(self) -> tuple[ProcedureTool, ...]:
        """The tools that a user may ask for, in the order of their declaration."""
        return tuple(tool for tool in self.tools.values() if tool.is_goal)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all values that a user may have to provide."""
        names: set[str] = set()
        for tool in self.tools.values():
            names |= {parameter.name for parameter in tool.parameters}
        for fact in self.facts.values():
            names |= list_names(walk_terms(fact.need))
        return frozenset(names - self.constants.keys())

    def walk_owners(self, *names: str) -> Iterator[ProcedureTool | Fact]:
        """Yield the tools and facts of these names, and all that their needs lead to, each once."""
        todo, seen = list(names), set(names)
        while todo:
            name = todo.pop()
            owner = self.tools[name] if name in self.tools else self.facts[name]
            yield owner
            computed = [ConditionNeed(one) for _, one in owner.computed] if isinstance(owner, ProcedureTool) else []
            found = {one for need in (owner.need, *computed) for one in list_owners(need)} - seen
            seen |= found
            todo += sorted(found)

    def find_action(self, fact: Fact) -> CallValue | None:
        """Return the call of an action that establishes a fact; None if checks show it."""
        for term in walk_terms(fact.need):
            if isinstance(term, CallValue) and self.tools[term.tool].acts:
                return term
        return None

    @property
    def holes(self) -> tuple[tuple[str, str], ...]:
        """What was not understood: the name of a tool or fact, and the sentence."""
        owners: list[ProcedureTool | Fact] = [*self.tools.values(), *self.facts.values()]
        return tuple((one.name, hole.text) for one in owners for hole in walk_need(one.need) if isinstance(hole, Hole))

    def __str__(self) -> str:
        parts = [f"constant {name} = {write_constant(value)}" for name, value in self.constants.items()]
        parts += [format_tool(tool) for tool in self.tools.values()]
        parts += [_format_fact(fact) for fact in self.facts.values()]
        return "\n".join(parts) + "\n"


def format_tool(tool: ProcedureTool) -> str:
    """Write the declaration of a tool."""
    words = ["goal"] * tool.is_goal + ["action" if tool.acts else "check"]
    description = f" {quote_text(tool.description)}" if tool.description else ""
    lines = [f"{' '.join(words)} {tool.name}({', '.join(map(str, tool.parameters))}){description}"]
    if tool.cost != 1:
        lines.append(f"    cost {tool.cost:g}")
    if tool.changes is not None:
        lines.append(f"    changes {', '.join(tool.changes) or 'nothing'}")
    lines += ["    idempotent"] * tool.idempotent + ["    approved"] * tool.approved
    lines += [f"    with {name} = {expression}" for name, expression in tool.computed]
    return "\n".join([*lines, *_format_need(tool.need, 1)])


def _format_fact(fact: Fact) -> str:
    description = f" {quote_text(fact.description)}" if fact.description else ""
    head = f"fact {fact.name}({', '.join(fact.parameters)}){description}:"
    if isinstance(fact.need, NeedGroup):
        return "\n".join([head, *_format_need(fact.need, 1)])
    until = f" until {' or '.join(map(str, fact.until))}" if fact.until else ""
    return f"{head} {fact.need}{until}"


def _format_need(need: Need, depth: int) -> Sequence[str]:
    if need == NO_NEED:
        return []
    indent = "    " * depth
    if isinstance(need, NotNeed) and isinstance(need.inner, NeedGroup):
        need = NeedGroup("none of", (need.inner,))
    if isinstance(need, NeedGroup):
        return [f"{indent}{need.grouping}", *(line for item in need.items for line in _format_need(item, depth + 1))]
    return [f"{indent}{need}"]
