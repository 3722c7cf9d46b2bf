"""Formulas: which sequences of states are allowed.

A formula f describes a set L(f) of finite sequences over an alphabet Σ: the declared states of a behaviour, or the
terminals of a grammar. The empty sequence ε is a sequence like any other. These are the extended regular expressions
(Brzozowski 1964), in the words of Crouse et al. 2023 (arXiv 2310.08535):

=================== ============================== ================================================================
formula             L(f)                           in words
=================== ============================== ================================================================
``a``               {a}                            the one state a, and nothing after it
``any``             Σ                              one state, whichever
``empty``           {ε}                            nothing at all
``(next a b ...)``  L(a) L(b) ...                  a, then b, ... (concatenation)
``(or a b ...)``    L(a) ∪ L(b) ∪ ...              one of them
``(and a b ...)``   L(a) ∩ L(b) ∩ ...              all of them, each of the whole sequence
``(not a)``         Σ* ∖ L(a)                      any other sequence over Σ, of any length, ε among them unless in L(a)
``(-> a b)``        L((or (not a) b))              a sequence in a is also in b
``(until a b)``     L(a)* L(b)                     a any number of times, also never, then b; a may be a sequence
``(until_5 a b)``   the same with L(a)⁰ to L(a)⁵   at most 5 times a, then b
``(until_2_5 a b)`` the same with L(a)² to L(a)⁵   2 to 5 times a, then b; ``until_2_*`` is at least 2
``(eventually a)``  Σ* L(a) Σ*                     some contiguous part is in a
``(always a)``      (L(a) ∩ Σ)*                    every single state, read as a sequence of length one, is in a
=================== ============================== ================================================================

``not``, ``any``, ``eventually`` depend on Σ, the others do not. ``(always a)`` holds of ε, and it is the same as ``(not
(eventually (and any (not a))))``: every single state is in a. Reading a over *every* part would be of no use, since ε
and longer parts hardly ever are in it, and reading it over suffixes, as linear temporal logic does, does not fit
formulas that describe how a sequence ends.

In a behaviour, ``(always (next a b))`` is a sequence again and again (:class:`Repeated`): L((next a b))*. So the first
version of the paper writes an agent that never ends by itself.

Formulas are immutable values. The functions that make them (:func:`next_`, :func:`or_`, ...) bring them into a normal
form: nested ``next``, ``or``, ``and`` are flattened, alternatives are a set (their order is kept for printing only),
double negation goes, and units and zeros vanish. With that every formula has only finitely many derivatives
(:mod:`formal_llm.automata.models.dfa`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from formal_llm.automata.models.frozen import PickledByFields
from formal_llm.automata.models.symbols import quote_text

#: What a name is written as without quotes.
_PLAIN = re.compile(r'(?!:)[^\s\x00-\x1f\x7f()"#;]+')
#: How wide a printed line may be.
_WIDTH = 100


def quote_name(name: str) -> str:
    """A name as the notation writes it: in quotes where it would be taken for something else."""
    return name if _PLAIN.fullmatch(name) and name not in ("any", "empty") else quote_text(name)


@dataclass(frozen=True, eq=False, repr=False)
class Formula(PickledByFields):
    """A set of sequences; see the table above. ``str(f)`` is its notation.

    Attributes:
        parts: the formulas inside it.
        head: its operator in the notation, or the name that it is.
    """

    parts: tuple[Formula, ...] = ()
    head: ClassVar[str] = ""

    @cached_property
    def nullable(self) -> bool:
        """Whether the empty sequence is in it."""
        match self:
            case Next() | And():
                return all(part.nullable for part in self.parts)
            case Or():
                return any(part.nullable for part in self.parts)
            case Not((inner,)):
                return not inner.nullable
            case Until((body, end), least):
                return end.nullable and (least == 0 or body.nullable)
            case Eventually((inner,)):
                return inner.nullable
        return isinstance(self, Always | Repeated | Empty)

    @cached_property
    def _identity_key(self) -> object:
        """What makes it the formula that it is, beside its operator."""
        return frozenset(self.parts) if isinstance(self, Or | And) else (str(self.opening), self.parts)

    @cached_property
    def _hash(self) -> int:
        return hash((self.head, self._identity_key))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Formula):
            return NotImplemented
        if self is other:
            return True
        return type(self) is type(other) and self._hash == other._hash and self._identity_key == other._identity_key

    @property
    def opening(self) -> str:
        """What its notation begins with, behind the parenthesis: the operator, with its numbers."""
        match self:
            case Atom(name=name):
                return quote_name(name)
            case Until(_, least, most) if least:
                return f"until_{least}_{'*' if most is None else most}"
            case Until(_, _, most) if most is not None:
                return f"until_{most}"
        return self.head

    def __str__(self) -> str:
        return f"({' '.join([self.opening, *map(str, self.parts)])})" if self.parts else self.opening

    def __repr__(self) -> str:
        return f"<Formula: {self}>"

    def pretty(self, indent: int = 0) -> str:
        """The notation; what does not fit on a line has a line for each part."""
        line = str(self)
        if indent + len(line) <= _WIDTH or not self.parts:
            return line
        inner = "".join(f"\n{' ' * (indent + 2)}{part.pretty(indent + 2)}" for part in self.parts)
        return f"({self.opening}{inner})"

    def walk(self) -> Iterator[Formula]:
        """The formula and all its parts, each once."""
        todo, seen = [self], {self}
        while todo:
            formula = todo.pop()
            yield formula
            new = [part for part in dict.fromkeys(reversed(formula.parts)) if part not in seen]
            todo += new
            seen.update(new)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The states that it names, in order of appearance."""
        return tuple(dict.fromkeys(formula.name for formula in self.walk() if isinstance(formula, Atom)))


@dataclass(frozen=True, eq=False, repr=False)
class Atom(Formula):
    """One state, by name."""

    name: str = ""


class AnyState(Formula):
    """One state, whichever: :data:`ANY`."""

    head = "any"


class Empty(Formula):
    """The empty sequence: :data:`EMPTY`."""

    head = "empty"


class Next(Formula):
    """One after the other."""

    head = "next"


class Or(Formula):
    """One of several; in which order they are written makes no difference."""

    head = "or"


class And(Formula):
    """All of several; in which order they are written makes no difference."""

    head = "and"


class Not(Formula):
    """Every other sequence."""

    head = "not"


class Always(Formula):
    """Every single state is in it."""

    head = "always"


class Repeated(Formula):
    """A sequence of two states or more, again and again: what ``always`` means of a sequence in a behaviour."""

    head = "always"


class Eventually(Formula):
    """Some contiguous part is in it."""

    head = "eventually"


@dataclass(frozen=True, eq=False, repr=False)
class Until(Formula):
    """Its first part repeated, at least ``least`` and at most ``most`` times (None: no bound), then its second."""

    least: int = 0
    most: int | None = None
    head = "until"


ANY = AnyState()
EMPTY = Empty()
#: Every sequence, Σ*, and none, ∅.
EVERYTHING = Until((ANY, EMPTY))
NOTHING = Not((EVERYTHING,))


# -- making them ------------------------------------------------------------------------------------------------


def _as_formula(part: Formula | str) -> Formula:
    return Atom(name=part) if isinstance(part, str) else part


def next_(*parts: Formula | str) -> Formula:
    """One after the other (a name is a formula); nothing at all for no parts."""
    flat: list[Formula] = []
    for part in map(_as_formula, parts):
        for piece in part.parts if isinstance(part, Next) else (part,):
            if piece == NOTHING:
                return NOTHING
            if piece != EMPTY and not (piece == EVERYTHING and flat and flat[-1] == EVERYTHING):
                flat.append(piece)
    return Next(tuple(flat)) if len(flat) > 1 else flat[0] if flat else EMPTY


def or_(*parts: Formula | str) -> Formula:
    """One of several."""
    return _make_set_formula(Or, parts, unit=NOTHING, zero=EVERYTHING)


def and_(*parts: Formula | str) -> Formula:
    """All of several."""
    return _make_set_formula(And, parts, unit=EVERYTHING, zero=NOTHING)


def _make_set_formula(kind: type[Or | And], parts: Sequence[Formula | str], *, unit: Formula, zero: Formula) -> Formula:
    flat: dict[Formula, None] = {}
    for part in map(_as_formula, parts):
        flat.update(dict.fromkeys(part.parts if isinstance(part, kind) else (part,)))
    flat.pop(unit, None)
    if zero in flat:
        return zero
    return kind(tuple(flat)) if len(flat) > 1 else next(iter(flat), unit)


def not_(part: Formula | str) -> Formula:
    """Every other sequence."""
    part = _as_formula(part)
    return part.parts[0] if isinstance(part, Not) else Not((part,))


def implies(condition: Formula | str, consequence: Formula | str) -> Formula:
    """What is in ``condition`` is also in ``consequence``."""
    return or_(not_(condition), consequence)


def until(body: Formula | str, end: Formula | str, least: int = 0, most: int | None = None) -> Formula:
    """``body`` from ``least`` to ``most`` times (None: any number of times), then ``end``.

    Raises:
        ValueError: the least is below 0 or above the most.
    """
    if least < 0 or (most is not None and most < least):
        raise ValueError(f"at least {least} and at most {most} times is impossible")
    body, end = _as_formula(body), _as_formula(end)
    if body.nullable:
        # It may be nothing, so no number of times is too few.
        least = 0
    if end == NOTHING or (body == NOTHING and least):
        return NOTHING
    if body in (EMPTY, NOTHING) or most == 0:
        return end
    return next_(body, end) if least == most == 1 else Until((body, end), least, most)


def always(part: Formula | str) -> Formula:
    """Every single state, read as a sequence of length one, is in it."""
    return Always((_as_formula(part),))


def eventually(part: Formula | str) -> Formula:
    """Some contiguous part is in it."""
    part = _as_formula(part)
    return part if part == NOTHING or isinstance(part, Eventually) else Eventually((part,))


# -- other formulas for the same states -------------------------------------------------------------------------


def reverse(formula: Formula) -> Formula:
    """The formula for the reversed sequences."""
    parts = tuple(map(reverse, formula.parts))
    match formula:
        case Next():
            return next_(*parts[::-1])
        case Until(_, least, most):
            return next_(parts[1], until(parts[0], EMPTY, least, most))
    return replace(formula, parts=parts) if parts else formula


def rename(formula: Formula, names: Mapping[str, str]) -> Formula:
    """The same formula about states of other names."""
    if isinstance(formula, Atom):
        return Atom(name=names[formula.name])
    return replace(formula, parts=tuple(rename(part, names) for part in formula.parts)) if formula.parts else formula


# -- derivatives ------------------------------------------------------------------------------------------------


def derivative(formula: Formula, state: str) -> Formula:
    """What may follow ``state``: the formula for { w : state w in L(formula) }."""
    match formula:
        case Atom(name=name):
            return EMPTY if name == state else NOTHING
        case Next((first, *rest)):
            after = next_(derivative(first, state), *rest)
            return or_(after, derivative(next_(*rest), state)) if first.nullable else after
        case Or(parts):
            return or_(*(derivative(part, state) for part in parts))
        case And(parts):
            return and_(*(derivative(part, state) for part in parts))
        case Not((inner,)):
            return not_(derivative(inner, state))
        case Until((body, end), least, most):
            # A body that may be empty has no lower bound (see until), so taking one repetition off is right also there.
            fewer = until(body, end, max(least - 1, 0), None if most is None else most - 1)
            after = next_(derivative(body, state), fewer)
            return after if least else or_(after, derivative(end, state))
        case Eventually((inner,)):
            if inner.nullable:
                return EVERYTHING
            return or_(next_(derivative(inner, state), EVERYTHING), formula)
        case Always((inner,)):
            return formula if derivative(inner, state).nullable else NOTHING
        case Repeated((inner,)):
            return next_(derivative(inner, state), formula)
    return EMPTY if formula == ANY else NOTHING


def satisfied_by_one(formula: Formula, names: Iterable[str]) -> bool:
    """Whether any single state satisfies a formula."""
    return any(derivative(formula, name).nullable for name in names)
