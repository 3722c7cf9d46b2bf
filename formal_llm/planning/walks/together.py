"""Which members of a selection may be chosen together: what its question objects to, as values.

A question may be pickled and answered elsewhere, and has to refuse there what it refuses here. So these carry what they
decide by, the automaton with the walk's configuration; what the lookahead has worked out stays behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """What is wrong with choosing some options of a selection together.

    Attributes:
        table: the choices of the automaton.
        configuration: where the walk stands.
        members: what the options read, in their order.
        excluded: the sets of members that are ruled out.
        left: how many more moves may be made.
    """

    table: ChoiceTable
    configuration: object
    members: tuple[str, ...]
    excluded: frozenset[ChoiceKey]
    left: float

    @classmethod
    def at(cls, table: ChoiceTable, entry: JournalEntry, left: float) -> Together:
        """That of a selection in the journal."""
        members = tuple(choice.reads[0] for choice in entry.fork.choices)
        return cls(table, entry.configuration, members, entry.excluded, left)

    def __call__(self, numbers: tuple[int, ...]) -> str:
        """Why the options of these numbers cannot be chosen together; empty where they can."""
        names = frozenset(self.members[number - 1] for number in numbers)
        if names in self.excluded:
            return "this selection is ruled out"
        possible = self.table.subset(self.configuration, names, self.left) is not None
        return "" if possible else "these cannot be chosen together under the rules"

    def __deepcopy__(self, memo: object) -> Together:
        return self  # nothing of it changes

    def __reduce__(self) -> tuple[Callable[..., Together], tuple[object, ...]]:
        table = self.table
        return _rebuild, (table.lookahead, table.look, self.configuration, self.members, self.excluded, self.left)

    def _key(self) -> tuple[object, ...]:
        automaton = self.table.automaton.fingerprint
        return automaton, self.table.look, self.configuration, self.members, self.excluded, self.left

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Together) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True)
class SomeTogether:
    """Whether options can be chosen together with some of those after them.

    Attributes:
        rule: what is wrong with sets; none is ruled out by itself, since that says nothing of the sets around it.
    """

    rule: Together

    def __call__(self, numbers: tuple[int, ...]) -> bool:
        """Whether the options of these numbers can be chosen, with higher ones or alone."""
        rule = self.rule
        must = frozenset(rule.members[number - 1] for number in numbers)
        may = must | frozenset(rule.members[max(numbers) :])
        return rule.table.some_subset(rule.configuration, must, may, rule.left)


def _rebuild(
    lookahead: Lookahead,
    look: bool,
    configuration: object,
    members: tuple[str, ...],
    excluded: frozenset[ChoiceKey],
    left: float,
) -> Together:
    return Together(ChoiceTable(lookahead, look=look), configuration, members, excluded, left)
