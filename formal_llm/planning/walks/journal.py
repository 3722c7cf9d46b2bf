"""The journal of a walk: its choices, each with the configuration to go back to.

Once a choice has been made its entry does not change any more, so walks that have parted share the entries of their
common past.
"""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Iterable, Sequence
from copy import copy
from itertools import chain
from typing import NamedTuple

from formal_llm.automata.models.automaton import Move
from formal_llm.errors import InvalidAnswer
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.walks.choices import Choice, ChoiceFork, ChoiceTable, Menu, RuledOut

#: What is ruled out at a choice: the index of an option, or of a selection a set of its members.
ChoiceKey = int | frozenset[str]
_NOTHING: frozenset[ChoiceKey] = frozenset()


class QuestionPast(NamedTuple):
    """How a walk came to a question: the last question before it that was answered, and the moves since.

    So questions share what lies before them, and all of them together take memory in proportion to the walk.
    """

    earlier: JournalEntry | None
    since: tuple[Move, ...]

    @property
    def answered_entries(self) -> list[JournalEntry]:
        """The questions that were answered before, the first one first."""
        found = []
        entry = self.earlier
        while entry is not None:
            found.append(entry)
            entry = entry.past.earlier if entry.past is not None else None
        return found[::-1]

    @property
    def moves(self) -> list[Move]:
        """All moves before the question."""
        parts = [entry.past.since for entry in self.answered_entries if entry.past is not None]
        return list(chain.from_iterable((*parts, self.since)))


class JournalEntry:
    """A choice in the journal, or the one that is asked now.

    Attributes:
        configuration: that of the walk at this choice.
        fork: what could be chosen.
        moves: how many moves the walk had made before.
        excluded: what is ruled out here.
        chosen: what was chosen; None while it is asked.
        members: of a selection, the members that were chosen.
        asked: whether a model was asked; not where the others had been ruled out.
        drafted: whether it was taken from a draft of the plan, without a question.
        note: a note in the question: what a draft wanted here.
        probability: of what was chosen among what was offered; None where the answer did not give it.
        question: the question, once it has been looked at.
        past: how the walk came here; known where there is a question.
    """

    __slots__ = (
        "asked", "chosen", "configuration", "drafted", "excluded", "fork", "members", "moves", "note",
        "past", "probability", "question",
    )  # fmt: skip

    def __init__(self, configuration: Hashable, fork: ChoiceFork, moves: int) -> None:
        self.configuration = configuration
        self.fork = fork
        self.moves = moves
        self.excluded = _NOTHING
        self.chosen: Choice | None = None
        self.members: frozenset[str] = frozenset()
        self.asked = self.drafted = False
        self.note = ""
        self.probability: float | None = None
        self.question: Question | None = None
        self.past: QuestionPast | None = None

    @property
    def key(self) -> ChoiceKey:
        """What ruling out the choice that was made here rules out."""
        if self.chosen is None:
            raise ValueError("nothing has been chosen here yet")
        return self.members if self.fork.several else self.chosen.index

    @property
    def branch(self) -> frozenset[ChoiceKey]:
        """All that is ruled out with the choice that was made here."""
        if self.chosen is None or self.fork.several or self.chosen.menu is None:
            return frozenset((self.key,))
        return frozenset(choice.index for choice in self.chosen.iter_choices())

    @property
    def offered_choices(self) -> tuple[Choice, ...]:
        """The choices that are not ruled out; of a selection all members, since what is ruled out are sets of them."""
        out = self.excluded
        if out and not self.fork.several:
            return tuple(
                choice for choice in self.fork.choices
                if any(c.index not in out for c in ([choice] if choice.menu is None else choice.iter_choices()))
            )  # fmt: skip
        return self.fork.choices

    @property
    def ruled_out(self) -> Container[object]:
        """The sets of a selection that are ruled out."""
        return (
            self.excluded
            if self.fork.part is None
            else RuledOut(self.excluded | {self.fork.part.taken}, self.fork.part)
        )

    def ruled_out_on(self, page: ChoiceFork) -> frozenset[ChoiceKey]:
        """What is ruled out here, as far as it concerns a page after this one."""
        part = page.part
        if not self.excluded or part is None:
            return self.excluded
        return frozenset(k for k in self.excluded if isinstance(k, frozenset) and part.taken < k <= part.all_members)

    def opens_page(self, numbers: Sequence[int]) -> bool:
        """Whether an answer opens another page."""
        offered = self.offered_choices
        if self.fork.several:
            return max(numbers) > len(offered)
        return offered[numbers[0] - 1].menu is not None

    @property
    def answer_text(self) -> str:
        """The numbers by which the choice was named when it was asked."""
        if self.fork.several:
            numbers = [n for n, choice in enumerate(self.fork.choices, 1) if choice.reads[0] in self.members]
            further = (
                [len(self.fork.choices) + 1] if self.fork.more and not self.members <= self.fork.scope.here else []
            )
            return ", ".join(map(str, [*numbers, *further]))
        key = self.key
        found = (
            n
            for n, choice in enumerate(self.offered_choices, 1)
            if any(c.index == key for c in (choice, *choice.iter_choices()))
        )
        return str(next(found))

    def resolve_key(self, numbers: Iterable[int]) -> ChoiceKey:
        """What the numbers of a legal answer choose."""
        offered = self.offered_choices
        if not self.fork.several:
            return offered[next(iter(numbers)) - 1].index
        more = [self.fork.more.marker] if self.fork.more is not None else []
        names = [*(choice.reads[0] for choice in offered), *more]
        return self.fork.scope.taken.union(names[number - 1] for number in numbers)

    def copy(self) -> JournalEntry:
        """The same entry for another walk, which may choose something else here."""
        return copy(self)

    def find_choice(self, key: ChoiceKey, table: ChoiceTable, left: float) -> Choice | None:
        """The choice that ``key`` stands for, members noted, with ``left`` more moves; None where there is none.

        Choices of the pages after this one are found, too.
        """
        fork = self.fork
        if not fork.several:
            here = (choice for choice in fork.choices if choice.index == key)
            return next(here, None) or next((choice for choice in fork.iter_choices() if choice.index == key), None)
        if not isinstance(key, frozenset) or not key >= fork.scope.taken:
            return None
        self.members = key
        if fork.more is not None and fork.more.marker in key:
            return self._find_next_page(key - {fork.more.marker}, fork.more, table, left)
        return table.subset(self.configuration, key, left)

    def _find_next_page(self, taken: frozenset[str], more: Menu, table: ChoiceTable, left: float) -> Choice | None:
        """Going on to the next page of a selection; where just one set is left there, that one."""
        if not taken <= self.fork.scope.here:
            return None
        out = self.excluded | {taken}
        few, all_of_them = table.few_subsets(self.configuration, left, 1, out, (taken, taken | self.fork.scope.later))
        if all_of_them and len(few) < 2:
            return table.subset(self.configuration, few[0].names, left) if few else None
        return Choice(more.key, (), tuple(sorted(taken)), menu=more)

    def find_only_choice(self, table: ChoiceTable, left: float) -> Choice | None:
        """The one choice that is left, of a selection that of the one set that is left; None where there are more.

        Also None where there is none, and where it is not known whether there are more. Arguments as above.
        """
        if not self.fork.several:
            return self.offered_choices[0] if len(self.offered_choices) == 1 else None
        few, all_of_them = table.few_subsets(self.configuration, left, 1, self.ruled_out, self.subset_bounds)
        if not few or not (all_of_them or self.subset_bounds):
            return None
        if all_of_them and len(few) == 1:
            return self.find_choice(few[0].names, table, left)
        # Several sets may be one answer: to turn to the next page.
        part = self.fork.scope
        keys = {part.make_answer(way.names) for way in few}
        if len(keys) > 1 or keys <= {way.names for way in few}:
            return None
        out = RuledOut(self.excluded | {part.taken} | keys, part)
        others = table.few_subsets(self.configuration, left, 0, out, self.subset_bounds)
        return self.find_choice(keys.pop(), table, left) if others == ([], True) else None

    def is_dead(self, table: ChoiceTable, left: float) -> bool:
        """Whether nothing is left to choose; arguments as above."""
        if not self.fork.several:
            return not self.offered_choices
        return table.few_subsets(self.configuration, left, 0, self.ruled_out, self.subset_bounds) == ([], True)

    @property
    def subset_bounds(self) -> tuple[frozenset[str], frozenset[str]] | None:
        """What each set must and may have that can be chosen on a page of a selection; None without pages."""
        part = self.fork.part
        return None if part is None else (part.taken, part.all_members)


def normalise_probabilities(answer: Answer, count: int) -> tuple[float, ...] | None:
    """The probabilities of options 1 to ``count``, normalised so that they sum to 1.

    An option that the answer gives no probability has probability 0; what it gives to other numbers is dropped.

    Returns:
        One number for each option; None where the answer has no probabilities, or none above 0.

    Raises:
        InvalidAnswer: a probability is negative, or no finite number.
    """
    if answer.probabilities is None:
        return None
    found = [answer.probabilities.get(number, 0.0) for number in range(1, count + 1)]
    total = math.fsum(found) if all(map(math.isfinite, found)) else math.inf
    for number, value in enumerate(found, 1):
        if not 0 <= value < math.inf:
            raise InvalidAnswer(f"the probability of option {number} is given as {value}")
    return tuple(value / total for value in found) if total else None


def sum_log_probability(entries: Iterable[JournalEntry]) -> float | None:
    """The logarithm of the probability of all answers in a journal: the sum over those that were asked.

    None where one of them had no probability, as what comes from a draft has none.
    """
    total = 0.0
    for entry in entries:
        if entry.drafted:
            return None
        if entry.asked:
            if entry.probability is None:
                return None
            total += math.log(entry.probability) if entry.probability else -math.inf
    return total
