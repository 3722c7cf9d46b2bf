"""The journal of a walk: its choices, each with the configuration to go back to."""

from __future__ import annotations

from typing import Any

from formal_llm.llms.question import Question
from formal_llm.planning.choices import Choice, Fork


class Entry:
    """A choice in the journal, or the one that is asked now.

    Attributes:
        configuration: where the walk stood.
        fork: what could be chosen.
        moves: how many moves the walk had made before.
        excluded: what is ruled out here: indices of choices, or of a selection the sets of members.
        chosen: what was chosen; None while it is asked.
        members: of a selection, the members that were chosen.
        asked: whether it was asked, or left without a question after the others had been ruled out.
        question: the question, once it has been looked at.
    """

    __slots__ = ("asked", "chosen", "configuration", "excluded", "fork", "members", "moves", "question")

    def __init__(self, configuration: Any, fork: Fork, moves: int) -> None:
        self.configuration = configuration
        self.fork = fork
        self.moves = moves
        self.excluded: set[Any] = set()
        self.chosen: Choice | None = None
        self.members: frozenset[str] = frozenset()
        self.asked = False
        self.question: Question | None = None

    @property
    def key(self) -> Any:
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
        return str([choice.index for choice in self.offered].index(self.key) + 1)
