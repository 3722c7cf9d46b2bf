"""Languages by the slow reference: which traces have an end, and how far it is."""

from __future__ import annotations

from typing import Any

from formal_llm import PDA
from formal_llm.automata.models.product import product
from tests.oracles import INF, Reference, Word, keeps, runs


class Words:
    """The words of an automaton within its limits, asked one prefix at a time."""

    def __init__(self, pda: PDA) -> None:
        self.pda = pda
        self._known: dict[Word, int | None] = {}

    def shortest(self, prefix: Word) -> int | None:
        """The least number of letters that complete a prefix; None where none do."""
        if prefix not in self._known:
            end = len(prefix)
            steps = [(at, name, None, at + 1) for at, name in enumerate(prefix)]
            loops = [(end, name, None, end) for name in self.pda.terminals]
            begins = PDA([*steps, *loops], start=0, accepting=[end], check=False)
            both = product(self.pda.without_limits, begins)
            found = Reference(both, self.pda.limits, self.pda.terminals).length(both.start_state, both.start_stack)
            self._known[prefix] = None if found == INF else int(found) - end
        return self._known[prefix]

    def __contains__(self, word: Word) -> bool:
        return self.pda.accepts(word)


def accepted(pda: PDA, limits: Any, word: Word) -> bool:
    """Whether an automaton without a stack accepts a word, and the word keeps the limits."""
    return bool(runs(pda, word)) and keeps(word, limits, pda.terminals, pda.symbols)
