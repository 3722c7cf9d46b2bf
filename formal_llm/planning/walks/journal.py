"""The journal of a walk: its choices, each with the configuration to go back to.

Once a choice has been made its entry does not change any more, so walks that have parted share the entries of their
common past.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from copy import copy
from itertools import chain
from typing import NamedTuple

from formal_llm.automata import Verdict
from formal_llm.automata.models.automaton import Move
from formal_llm.errors import InvalidAnswer
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.forks import Choice, Fork

#: What is ruled out at a choice: the index of an option, or of a selection a set of its members.
ChoiceKey = int | frozenset[str]
_NOTHING: frozenset[ChoiceKey] = frozenset()


class Past(NamedTuple):
    """How a walk came to a question: the last question before it that was answered, and the moves since.

    So questions share what lies before them, and all of them together take memory in proportion to the walk.
    """

    earlier: JournalEntry | None
    since: tuple[Move, ...]

    @property
    def answered(self) -> list[JournalEntry]:
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
        parts = [entry.past.since for entry in self.answered if entry.past is not None]
        return list(chain.from_iterable((*parts, self.since)))


class JournalEntry:
    """A choice in the journal, or the one that is asked now.

    Attributes:
        configuration: where the walk stood.
        fork: what could be chosen.
        moves: how many moves the walk had made before.
        excluded: what is ruled out here.
        chosen: what was chosen; None while it is asked.
        members: of a selection, the members that were chosen.
        asked: whether it was asked, or left without a question after the others had been ruled out.
        drafted: whether it was taken from a draft of the plan, without a question.
        note: what the question says besides: what a draft wanted here.
        probability: of what was chosen among what was offered; None where the answer did not tell.
        question: the question, once it has been looked at.
        looked_at: verdicts of choices that were offered undecided.
        past: how the walk came here; known where there is a question.
    """

    __slots__ = (
        "asked", "chosen", "configuration", "drafted", "excluded", "fork", "looked_at", "members", "moves", "note",
        "past", "probability", "question",
    )  # fmt: skip

    def __init__(self, configuration: Hashable, fork: Fork, moves: int) -> None:
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
        self.looked_at: dict[ChoiceKey, Verdict] = {}
        self.past: Past | None = None

    @property
    def key(self) -> ChoiceKey:
        """What ruling out the choice that was made here rules out."""
        if self.chosen is None:
            raise ValueError("nothing has been chosen here yet")
        return self.members if self.fork.several else self.chosen.index

    @property
    def offered(self) -> tuple[Choice, ...]:
        """The choices that are not ruled out; of a selection all members, since what is ruled out are sets of them."""
        if self.excluded and not self.fork.several:
            return tuple(choice for choice in self.fork.choices if choice.index not in self.excluded)
        return self.fork.choices

    @property
    def said(self) -> str:
        """The numbers by which the choice was named when it was asked."""
        if self.fork.several:
            numbers = [n for n, choice in enumerate(self.fork.choices, 1) if choice.reads[0] in self.members]
            return ", ".join(map(str, numbers))
        return str(next(n for n, choice in enumerate(self.offered, 1) if choice.index == self.key))

    def copy(self) -> JournalEntry:
        """The same entry for another walk, which may choose something else here."""
        return copy(self)

    def find(self, key: ChoiceKey, table: ChoiceTable, left: float) -> Choice | None:
        """The choice that ``key`` stands for, members noted, with ``left`` more moves; None where there is none."""
        if not self.fork.several:
            return next((choice for choice in self.fork.choices if choice.index == key), None)
        if not isinstance(key, frozenset):
            return None
        self.members = key
        return table.subset(self.configuration, key, left)

    def only(self, table: ChoiceTable, left: float) -> Choice | None:
        """The one choice that is left, of a selection that of the one set that is left; None where there are more.

        Also None where there is none, and where it is not known whether there are more. Arguments as above.
        """
        if not self.fork.several:
            return self.offered[0] if len(self.offered) == 1 else None
        few, all_of_them = table.few_subsets(self.configuration, left, 1, self.excluded)
        return self.find(few[0].names, table, left) if few and all_of_them else None

    def is_dead(self, table: ChoiceTable, left: float) -> bool:
        """Whether nothing is left to choose; arguments as above."""
        if not self.fork.several:
            return not self.offered
        return table.few_subsets(self.configuration, left, 0, self.excluded) == ([], True)


def shares(answer: Answer, count: int) -> tuple[float, ...] | None:
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


def log_probability(entries: Iterable[JournalEntry]) -> float | None:
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
