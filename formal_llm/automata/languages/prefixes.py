"""Which prefixes of a word can still be completed, and what could have come next.

A prefix is *viable* when some word of the language, within the limits, begins with it: when its front
(:mod:`formal_llm.automata.languages.fronts`) is not empty.
"""

from __future__ import annotations

from formal_llm.automata.languages.fronts import ConfigurationSets
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Word
from formal_llm.automata.models.pda import PDA
from formal_llm.errors import AutomatonError


class ViablePrefixes:
    """The viable prefixes of one automaton.

    Args:
        lookahead: knows the automaton (a pushdown automaton, with or without limits) and what can be completed.
        max_configurations: how many configurations after one prefix are followed one by one (see
            :class:`ConfigurationSets`).
        search_time: the seconds of search that each question may take; None for no bound.

    Raises:
        AutomatonError: the automaton is no pushdown automaton.
    """

    def __init__(
        self, lookahead: Lookahead, *, max_configurations: int | None = None, search_time: float | None = None
    ) -> None:
        if lookahead.pda is None:
            raise AutomatonError("prefixes are known for grammars and pushdown automata, not for other automata")
        self.pda: PDA = lookahead.pda
        self._time = search_time
        self.fronts = ConfigurationSets(lookahead, max_configurations=max_configurations)

    def is_viable(self, prefix: Word) -> bool | None:
        """Whether some word within the limits begins with ``prefix``; None where the budget of states ran out."""
        with self.fronts.lookahead.work.limit_seconds(self._time):
            return self.fronts.after_word(prefix).is_viable

    def longest_viable(self, word: Word) -> tuple[int, bool]:
        """(length of the longest viable prefix of ``word``, whether that is certain).

        The length is -1 where not even the empty prefix is viable. Where the budget of states ran out, it is that of
        the longest prefix which is certainly viable.
        """
        with self.fronts.lookahead.work.limit_seconds(self._time):
            return self._walk_to_longest(word)

    def _walk_to_longest(self, word: Word) -> tuple[int, bool]:
        sure, front = -1, self.fronts.start
        for end in range(len(word) + 1):
            front = front.after_terminal(word[end - 1]) if end else front
            if front.word is not None:
                return self._bisect_longest(word, sure)
            if front.is_viable:
                sure = end
            elif front.is_viable is False:
                return sure, sure == end - 1
        return sure, sure == len(word)

    def _bisect_longest(self, word: Word, low: int) -> tuple[int, bool]:
        """Each prefix of a viable prefix is viable, so the longest one is found by halving."""
        high = len(word) + 1
        while high - low > 1:
            middle = (low + high) // 2
            found = self.is_viable(word[:middle])
            if found is None:
                return low, False
            low, high = (middle, high) if found else (low, middle)
        return low, True

    def next_terminals(self, prefix: Word) -> tuple[Word, bool, bool]:
        """How a prefix can go on.

        Returns:
            The terminals that keep it viable, in the order of the alphabet; whether it is a word as it is; whether it
            is certain that there are no more such terminals.
        """
        work, found = self.fronts.lookahead.work, dict[str, bool | None]()
        with work.limit_seconds(self._time):
            front = self.fronts.after_word(prefix)
            for place, name in enumerate(names := list(front.next_terminals)):
                work.share_among(len(names) - place)
                found[name] = front.can_continue_with(name)
        return tuple(name for name in found if found[name]), front.may_stop, None not in found.values()
