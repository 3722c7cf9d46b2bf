"""A walk along a draft: choices that a text has made already are taken without a question.

A draft is a whole plan that the answerer wrote at once. What becomes of it is decided by others
(:mod:`formal_llm.planning.drivers.draft`); the walk knows how far it has been used, so that its checkpoint knows it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from formal_llm.automata.models.automaton import Move
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.walks.budget import Budget
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry
from formal_llm.planning.walks.trail import Trail
from formal_llm.planning.walks.wording import Wording


@dataclass(frozen=True, slots=True)
class WalkDraft:
    """A draft of a plan.

    Attributes:
        text: as it was written.
        at: how many of its steps are done with.
    """

    text: str
    at: int = 0


class DraftFollower:
    """What a walk does with a draft.

    Attributes:
        draft: the draft that it goes along; None where there is none, or where another one is due.
    """

    draft: WalkDraft | None = None
    budget: Budget
    wording: Wording
    _trail: Trail

    @abstractmethod
    def _advance_walk(self) -> None:
        """Go on to the next question or to the end."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the plan is finished."""

    @property
    @abstractmethod
    def left(self) -> float:
        """The moves that may still be made."""

    @property
    def choice(self) -> JournalEntry | None:
        """The choice to make now, whether or not the budget leaves a question; None when the plan is finished.

        Raises:
            BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
        """
        if not isinstance(self._trail.state, JournalEntry):
            _ = self.done  # which goes on as far as it can
        return self._trail.state if isinstance(self._trail.state, JournalEntry) else None

    @property
    def moves(self) -> list[Move]:
        """The moves that were made; not to be changed."""
        return self._trail.moves

    @property
    def decisions(self) -> int:
        """How many choices were asked, those that are split into pages once each."""
        return sum(e.asked and (e.chosen is None or e.chosen.menu is None) for e in self._trail.journal)

    @property
    def backtracks(self) -> int:
        """Dead ends from which the walk went back."""
        return self._trail.meter.backtracks

    def take(self, key: ChoiceKey) -> bool:
        """Make the choice that a draft has made; False where it is not offered now.

        Args:
            key: the index of a choice, or of a selection the names of its members.

        Raises:
            BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
        """
        entry = self.choice
        chosen = (
            None if entry is None or key in entry.excluded else entry.find_choice(key, self._trail.table, self.left)
        )
        if entry is None or chosen is None:
            return False
        entry.drafted = True
        self._trail.meter.drafted += 1
        self._trail.take_checked(entry, chosen)
        self._advance_walk()
        return True

    def note(self, text: str) -> None:
        """Have the question that is asked now say this besides; it is told anew where that was something else."""
        entry = self.choice
        if entry is not None and entry.note != text:
            entry.note, entry.question = text, None

    def count_draft(self, tokens: TokenUsage) -> None:
        """Count a draft that came, and what it cost."""
        self._trail.meter.drafts += 1
        self._trail.meter.tokens += tokens
