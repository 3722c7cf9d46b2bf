"""A front: where a word has led, and how it can go on.

How the set of configurations behind it is found and kept is told in :mod:`formal_llm.automata.languages.fronts`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.frozen import FrozenDict


class Allowed(NamedTuple):
    """What is known of a terminal that may come next.

    Attributes:
        shortest: how many terminals follow it at least until the word may end; None where that was not decided within
            the budget of states.
        certain: whether there certainly is a way to an end after it. False where the budget of states ran out before
            one was found, and before it was known that there is none.
    """

    shortest: int | None
    certain: bool = True


class ConfigurationSet(ABC):
    """Where a word has led. Made by :class:`~formal_llm.automata.languages.fronts.ConfigurationSets`.

    Attributes:
        word: the word, where there are too many configurations to follow them; else None.
    """

    __slots__ = ("_allowed", "_known", "_next", "_shortest", "word")

    def __init__(self) -> None:
        self._next: dict[str, ConfigurationSet] = {}
        self._allowed: Mapping[str, Allowed] | None = None
        self._known = False
        self._shortest: int | None = None
        self.word: Word | None = None

    @property
    @abstractmethod
    def may_stop(self) -> bool:
        """Whether the word may end here."""

    @property
    @abstractmethod
    def is_viable(self) -> bool | None:
        """Whether some word within the limits goes on from here; None where the budget of states ran out."""

    @property
    @abstractmethod
    def next_terminals(self) -> Iterable[str]:
        """The terminals that can be read next, in the order of the alphabet; they may lead to a dead end."""

    @property
    @abstractmethod
    def readable_terminals(self) -> Collection[str]:
        """The terminals that the automaton can read next where nobody looks ahead, dead ends among them."""

    @property
    def shortest_length(self) -> int | None:
        """The least number of terminals to an end; None where there is none, or the budget of states ran out."""
        if not self._known:
            self._shortest = 0 if self.may_stop else self._find_shortest()
            self._known = True
        return self._shortest

    @property
    def allowed_terminals(self) -> Mapping[str, Allowed]:
        """The terminals after which the word can still be completed, in the order of the alphabet."""
        if self._allowed is None:
            found = {}
            for name in self.next_terminals:
                front = self.after_terminal(name)
                if front.is_viable is not False:
                    found[name] = Allowed(front.shortest_length, front.is_viable is True)
            self._allowed = FrozenDict(found)
        return self._allowed

    def can_continue_with(self, name: str) -> bool | None:
        """Whether some word goes on with a terminal; None where that is not known."""
        return self.after_terminal(name).is_viable

    def after_terminal(self, name: str) -> ConfigurationSet:
        """The front after one more terminal; one that is not viable where it cannot stand here."""
        found = self._next.get(name)
        return self._follow_terminal(name) if found is None else found

    @abstractmethod
    def _find_shortest(self) -> int | None:
        """What :attr:`shortest_length` is where the word may not end here."""

    @abstractmethod
    def _follow_terminal(self, name: str) -> ConfigurationSet:
        """What :meth:`after_terminal` gives, made and kept."""

    def forget_followers(self) -> None:
        """Let go of the fronts after this one; they are made anew where they are asked for."""
        self._next = {}
        self._allowed = None
