"""Rules about the order and the number of steps: the templates of Declare, as sentences and as formulas.

The templates are those of Pesic, Schonenberg and van der Aalst 2007, "DECLARE: Full support for loosely-structured
processes". A :class:`Sentence` is a template filled with steps. What it means is a formula
(:mod:`formal_llm.automata.models.formula`) over the steps in the order in which they are carried out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from formal_llm.automata.models.formula import (
    ANY,
    EMPTY,
    EVERYTHING,
    Formula,
    and_,
    derivative,
    eventually,
    implies,
    next_,
    not_,
    or_,
    rename,
    until,
)  # fmt: skip
from formal_llm.automata.models.symbols import quote_text

#: Alternative steps.
Group = tuple[str, ...]

#: The words of sentences, in any case. A name that holds one of them stands in quotes.
KEYWORDS = (
    "steps", "first", "last", "never", "only", "between", "before", "after", "each", "directly", "if", "in", "or",
    "and", "at", "most", "least", "exactly", "one", "of",
)  # fmt: skip
#: Patterns of a keyword, and of a word of a name without quotes; a number alone is none.
KEYWORD = rf"(?i:{'|'.join(KEYWORDS)})(?![\w'-])"
WORD = r"\w(?:[\w'.\/@=&+-]*[\w'@=&+-])?"
_WORD = re.compile(rf"(?!{KEYWORD}|\d+(?![\w'-])){WORD}")


#: A plan leads through few different derivatives, again and again.
_derive = lru_cache(maxsize=10_000)(derivative)


# -- the templates as formulas ----------------------------------------------------------------------------------------


def match_other(*groups: Group) -> Formula:
    """Match one step that is in none of the groups."""
    return and_(ANY, not_(or_(*(name for group in groups for name in group))))


def forbid_sequence(*parts: Formula | str) -> Formula:
    """Forbid that the parts follow each other anywhere."""
    return not_(eventually(next_(*parts)))


def forbid_step(group: Group) -> Formula:
    """Forbid the steps of the group."""
    return until(match_other(group), EMPTY)


def require_before(first: Group, then: Group) -> Formula:
    """Forbid ``then`` before a ``first``."""
    return not_(next_(until(match_other(first, then), or_(*then)), EVERYTHING))


def require_kinds(kinds: Sequence[Group], least: int, most: int | None) -> Formula:
    """Require that at least one (``least`` = 1) and at most one (``most`` = 1) of the groups happens, however often.

    The first is Declare's choice, both together its exclusive choice.
    """
    happens = or_(*(eventually(or_(*kind)) for kind in kinds)) if least else EVERYTHING
    others = [[*kinds[:at], *kinds[at + 1 :]] for at in range(len(kinds))]
    alone = [forbid_step(tuple(name for group in groups for name in group)) for groups in others]
    return and_(happens, or_(*alone)) if most is not None else happens


def allow_between(step: Group, opening: Group, closing: Group) -> Formula:
    """Allow ``step`` only while the last of ``opening`` and ``closing`` was ``opening``."""
    neither = until(match_other(opening, closing), EMPTY)
    closed = or_(neither, next_(EVERYTHING, or_(*closing), neither))
    return not_(next_(closed, or_(*step), EVERYTHING))


def require_order(groups: Sequence[Group]) -> Formula:
    """Forbid steps of an earlier group after one of a later group; none is required."""
    later = [or_(*(name for group in groups[at:] for name in group)) for at in range(1, len(groups))]
    return and_(*map(forbid_sequence, later, repeat(EVERYTHING), (or_(*group) for group in groups)))


# -- sentences --------------------------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How a sentence of a kind is written, and the formula for its groups; None where it depends on its numbers."""

    words: str
    build: Callable[..., Formula] | None = None


#: The forms of sentences by kind, those of Declare by its names.
_FORMS: Mapping[str, _Form] = {
    "precedence": _Form("{} before {}", require_before),
    "alternate_precedence": _Form(
        "{} before each {}",
        lambda first, then: and_(
            require_before(first, then), forbid_sequence(or_(*then), until(match_other(first), or_(*then)))
        ),
    ),
    "response": _Form(
        "{} after each {}",
        lambda answer, step: not_(next_(EVERYTHING, or_(*step), forbid_step(answer))),
    ),
    "chain_response": _Form(
        "{} directly after each {}",
        lambda answer, step: not_(next_(EVERYTHING, or_(*step), or_(EMPTY, next_(match_other(answer), EVERYTHING)))),
    ),
    "not_succession": _Form(
        "never {} after {}", lambda step, before: forbid_sequence(or_(*before), EVERYTHING, or_(*step))
    ),
    "not_chain_succession": _Form(
        "never {} directly after {}", lambda step, before: forbid_sequence(or_(*before), or_(*step))
    ),
    "absence": _Form("never {}", forbid_step),
    "existence": _Form("{amount} {number} {}"),
    "init": _Form("first {}", lambda step: next_(or_(*step), EVERYTHING)),
    "end": _Form("last {}", lambda step: next_(EVERYTHING, or_(*step))),
    "responded_existence": _Form(
        "{} if {}", lambda needed, step: implies(eventually(or_(*step)), eventually(or_(*needed)))
    ),
    "choice": _Form("{amount} one of {all}"),
    "not_between": _Form(  # whether the closing one comes or not
        "never {} between {} and {}",
        lambda step, opening, closing: forbid_sequence(or_(*opening), until(match_other(closing), or_(*step))),
    ),
    "scope": _Form("{} only between {} and {}", allow_between),
    "nothing_else_after": _Form(
        "only {} after {}", lambda step, before: forbid_sequence(or_(*before), EVERYTHING, match_other(step))
    ),
    "order": _Form("in this order: {all}", lambda *groups: require_order(groups)),
    "length": _Form("{amount} {number} steps"),
    "formula": _Form("{formula}"),
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A rule about the order or the number of steps.

    Args:
        kind: which form it has: ``"precedence"`` (``A before B``), ``"response"`` (``A after each B``), ...; the forms
            and what they mean are in ``docs/howto/sentences.md``. ``"formula"`` is any other rule about order.
        groups: the steps that it names, in the order of the form; alternatives (``A or B``) are one group.
        least, most: its number, for ``"existence"`` (how often), ``"length"`` (how many steps) and ``"choice"`` (how
            many of the groups); ``most`` is None for no bound.
        text: what messages call it: what its author wrote.
        given: the formula of the kind ``"formula"``.

    ``str(sentence)`` is the sentence in the notation, with steps by their names.

    Raises:
        ValueError: there is no such kind, or it takes another number of groups.
    """

    kind: str
    groups: tuple[Group, ...] = ()
    least: int = 0
    most: int | None = None
    text: str = field(default="", compare=False)
    given: Formula | None = None

    def __post_init__(self) -> None:
        if self.kind not in _FORMS or (self.kind == "formula") != (self.given is not None):
            raise ValueError(f"{self.kind!r} is no kind of sentence; there are: {', '.join(_FORMS)}")
        words = _FORMS[self.kind].words
        if "{all}" not in words and words.count("{}") != len(self.groups):
            raise ValueError(f"a sentence {words!r} has {words.count('{}')} groups of steps, not {len(self.groups)}")
        object.__setattr__(self, "text", self.text or str(self))

    def __str__(self) -> str:
        groups = [" or ".join(map(quote_step, group)) for group in self.groups]
        amount, number = ("exactly", self.least) if self.least == self.most else ("at most", self.most)
        if self.most is None:
            amount, number = "at least", self.least
        formula = str(self.given) if self.given is None or self.given.parts else f"(or {self.given})"
        return _FORMS[self.kind].words.format(
            *groups, all=", ".join(groups), amount=amount, number=number, formula=formula
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The steps that it names, in order of appearance."""
        given = self.given.names if self.given is not None else ()
        return tuple(dict.fromkeys([name for group in self.groups for name in group] + [*given]))

    @property
    def counts(self) -> Mapping[str, tuple[int, int | None]]:
        """For a plain count of single steps the least and the most uses of each; empty for any other sentence."""
        if self.kind == "absence":
            return dict.fromkeys(self.names, (0, 0))
        return {self.names[0]: (self.least, self.most)} if self.kind == "existence" and len(self.names) == 1 else {}

    def formula(self) -> Formula:
        """What it means: the allowed sequences, in the order of carrying out."""
        if self.given is not None:
            return self.given
        match self.kind:
            case "existence":
                (step,) = self.groups
                return until(until(match_other(step), or_(*step)), forbid_step(step), self.least, self.most)
            case "length":
                return until(ANY, EMPTY, self.least, self.most)
            case "choice":
                return require_kinds(self.groups, self.least, self.most)
        build = _FORMS[self.kind].build
        assert build is not None
        return build(*self.groups)

    def accepts(self, steps: Iterable[str]) -> bool:
        """Whether steps, in the order of carrying out, keep it."""
        formula = self.formula()
        for step in steps:
            formula = _derive(formula, step)
        return formula.nullable

    def renamed(self, names: Mapping[str, str]) -> Sentence:
        """The same sentence about steps of other names."""
        groups = tuple(tuple(names[name] for name in group) for group in self.groups)
        given = None if self.given is None else rename(self.given, names)
        return replace(self, groups=groups, given=given, text="")


def quote_step(name: str) -> str:
    """A name as sentences write it: in quotes where it would be taken for something else."""
    words = name.split(" ")
    return name if all(map(_WORD.fullmatch, words)) else quote_text(name)
