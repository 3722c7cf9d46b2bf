"""Forks: what can be chosen at a place, and what is known of each choice."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from formal_llm.automata.lookahead.branches import Branches, Judged, Leap
from formal_llm.automata.lookahead.limited import depth
from formal_llm.automata.models.automaton import Automaton, C, M
from formal_llm.automata.models.transition import Transition

#: How many options are kept, of all places that were asked about: some 100 megabytes. And what a place counts itself.
_CACHE, _OWN = 500_000, 10


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One option: the moves that taking it means; none for stopping here.

    Attributes:
        index: its place among all choices of the configuration, also those that were left out; from 0.
        moves: the moves.
        reads: the terminals that the moves read; of a member of a selection, the member.
        leap: the moves in one, where that is possible.
        menu: what it leads to where it is no choice of its own but more choices of the same place.
    """

    index: int
    moves: tuple[Any, ...]
    reads: tuple[str, ...] = ()
    leap: Leap | None = None
    menu: Menu | None = None

    def iter_choices(self) -> Iterator[Choice]:
        """The choice itself; of a menu all that it leads to in the end."""
        if self.menu is None:
            yield self
        else:
            for item in self.menu.items:
                yield from item.iter_choices()


@dataclass(frozen=True, slots=True, eq=False)
class Menu:
    """Choices that stand behind one option of a page (see :mod:`formal_llm.planning.walks.pages`).

    Attributes:
        text: the option.
        items: the choices, menus among them.
        make: makes the page of them; of a selection it is told what was chosen on the pages before.
        key: a number that tells what is behind it, the same in every process; below 0.
    """

    text: str
    items: tuple[Choice, ...]
    make: Callable[[frozenset[str]], ChoiceFork]
    key: int

    @property
    def marker(self) -> str:
        """What stands in a set of names for going on to this page."""
        return f"… {-self.key:x}"


@dataclass(frozen=True, slots=True)
class SelectionPart:
    """The part of a selection that one question asks for.

    Attributes:
        here: the members of its page, and what was taken before.
        taken: what was chosen on the pages before.
        later: the members of the pages after it.
        marker: what stands in an answer for going on to these.
    """

    here: frozenset[str]
    taken: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    marker: str = ""

    @property
    def all_members(self) -> frozenset[str]:
        """All members of the selection that can still be chosen, and what was taken before."""
        return self.here | self.later

    def make_answer(self, names: frozenset[str]) -> frozenset[str]:
        """What is to be chosen here so that these are chosen in the end: names, or going on as well."""
        return names if not self.marker or names <= self.here else (names & self.here) | {self.marker}


@dataclass(frozen=True, slots=True)
class RuledOut:
    """The sets that are ruled out on a page of a selection: sets by themselves, and all that one answer leads to."""

    answers: frozenset[Any]
    part: SelectionPart

    def __contains__(self, names: object) -> bool:
        return isinstance(names, frozenset) and (names in self.answers or self.part.make_answer(names) in self.answers)


@dataclass(slots=True, eq=False)
class ChoiceFork:
    """The choices of a configuration.

    Attributes:
        choices: those from which a plan can be finished, as far as the lookahead knows.
        total: how many there are without lookahead.
        several: whether any non-empty subset may be chosen (a selection).
        only: of a selection, the one set that can be chosen; None where there are more, or where that is not known.
        unknown: the indices of the choices of which it is not known whether a plan can be finished after them.
        open: those of these that were left because the time for the question was spent.
        tally: what decided how many of all choices (see :data:`~formal_llm.automata.lookahead.verdicts.TALLY`).
        shown: what options were made of the choices; kept by the walk.
        paged: the first page of the choices, and who made it; kept by the walk.
        part: of a page of a selection, which part of it is asked.
        more: of a page of a selection, the pages after it.
    """

    choices: tuple[Choice, ...]
    total: int
    several: bool = False
    only: frozenset[str] | None = None
    unknown: frozenset[int] = frozenset()
    open: frozenset[int] = frozenset()
    tally: int = 0
    shown: Any = field(default=None, repr=False)
    paged: Any = field(default=None, repr=False)
    part: SelectionPart | None = None
    more: Menu | None = field(default=None, repr=False)

    @property
    def is_certain(self) -> bool:
        """Whether filters alone have told what is offered, so that it is the same wherever it is asked."""
        return not self.tally >> 32

    def iter_choices(self) -> Iterator[Choice]:
        """The choices, and on a page those on the pages after it."""
        for choice in (*self.choices, *(self.more.items if self.more is not None else ())):
            yield from choice.iter_choices()

    @property
    def scope(self) -> SelectionPart:
        """Of a selection, the part that is asked: all of it where there are no pages."""
        return self.part or SelectionPart(frozenset(choice.reads[0] for choice in self.choices))


class ForkTemplate:
    """The choices at a (state, stack top), whatever lies below."""

    __slots__ = ("branches", "choices", "forks")

    def __init__(self, choices: tuple[Choice, ...], branches: Branches) -> None:
        self.choices = tuple(
            Choice(c.index, c.moves, c.reads, leap) for c, leap in zip(choices, branches.leaps, strict=True)
        )
        self.branches = branches
        self.forks: dict[tuple[int, int, int, int], ChoiceFork] = {}

    def get_fork(self, judged: Judged) -> ChoiceFork:
        """The fork of the choices that a plan may be finished after; always the same object for the same ones."""
        able, _, unknown, standing, tally = judged
        fork = self.forks.get((able, unknown, standing, tally))
        if fork is None:
            if len(self.forks) * len(self.choices) > _CACHE:
                self.forks.clear()
            fork = self.forks[able, unknown, standing, tally] = ChoiceFork(
                self._select_choices(able),
                len(self.choices),
                unknown=collect_indices(self._select_choices(unknown)),
                open=collect_indices(self._select_choices(standing)),
                tally=tally,
            )
        return fork

    def _select_choices(self, bits: int) -> tuple[Choice, ...]:
        """The choices of a set of branches."""
        return tuple([choice for number, choice in enumerate(self.choices) if bits >> number & 1]) if bits else ()


class ForkCache:
    """Forks by what decides them, each with the moves that finish a plan; as many as a bound on memory allows."""

    __slots__ = ("_forks", "_options")

    def __init__(self) -> None:
        self._forks: dict[Hashable, tuple[ChoiceFork, float]] = {}
        self._options = 0

    def get(self, signature: Hashable) -> tuple[ChoiceFork, float] | None:
        """What is kept under a signature."""
        return self._forks.get(signature)

    def store_fork(self, signature: Hashable, fork: ChoiceFork, reach: float) -> tuple[ChoiceFork, float]:
        """Keep a fork; the others are dropped where they have become too many."""
        self._options += _OWN + len(fork.choices)
        if self._options > _CACHE:
            self._forks.clear()
            self._options = _OWN + len(fork.choices)
        found = self._forks[signature] = fork, reach
        return found


def collect_indices(choices: Iterable[Choice]) -> frozenset[int]:
    """The indices of choices."""
    return frozenset(choice.index for choice in choices)


def list_candidates(
    automaton: Automaton[C, M], configuration: C, at_class: Callable[[C], bool]
) -> Iterator[tuple[Choice, C]]:
    """The choices of a configuration that are single options, with what they lead to."""
    base = depth(configuration) - 1
    number = 0
    if automaton.accepting(configuration):
        yield Choice(0, ()), configuration
        number = 1
    for move in automaton.moves(configuration):
        after = automaton.step(configuration, move)
        paths: list[tuple[tuple[M, ...], C]] = [((move,), after)]
        if move.read is None and at_class(after) and depth(after) > base:
            paths = [((move, member), automaton.step(after, member)) for member in automaton.moves(after)]
        for moves, end in paths:
            # A terminal that the option has put on the stack, and that must come now, belongs to the option.
            if moves[-1].read is None and depth(end) > base and not automaton.accepting(end):
                following = automaton.moves(end)
                if len(following) == 1 and following[0].read is not None:
                    moves, end = (*moves, following[0]), automaton.step(end, following[0])
                elif not following:
                    number += 1
                    continue
            yield Choice(number, moves, tuple(m.read for m in moves if m.read is not None)), end
            number += 1


def with_questions(choices: Sequence[Choice], texts: list[str]) -> list[str]:
    """The texts of choices; with the questions that they only answer, where several are asked side by side."""
    first = [choice.moves[0] if choice.moves else None for choice in choices]
    asked = [move.question if isinstance(move, Transition) and move.decision else "" for move in first]
    if len(set(asked)) < 2:
        return texts
    return [f"{question} {text}" if question else text for question, text in zip(asked, texts, strict=True)]
