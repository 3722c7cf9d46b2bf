"""Filling in decisions: from the steps of a plan to the word of an automaton that also reads what was decided.

The word of a flowchart tells every decision, and a plan as it is printed tells only the steps. The steps are a finite
automaton, a chain that reads them one after the other and any decisions between them; what it has in common with the
flowchart are the words that the steps may stand for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from formal_llm.automata import PDA, Lookahead, Transition, Word
from formal_llm.automata.models.product import product
from formal_llm.errors import Undecided


def fill_decisions(steps: Sequence[tuple[str, ...]], pda: PDA) -> Word:
    """A shortest word of an automaton that has these steps, and between them decisions.

    Where there is none, a word that has decisions filled in as far as some word begins with the steps; the other steps
    follow as they are.

    Args:
        steps: for each step the terminals that it may be.
        pda: the automaton; its transitions say which of them are decisions.
    """
    found = _shortest(pda, steps, ends=True)
    if found is not None:
        return found
    low, high = 0, len(steps) + 1
    begun: Word = ()
    # Each beginning of the steps that can be gone on with has only beginnings with which that is so: halving.
    while high - low > 1:
        middle = (low + high) // 2
        word = _shortest(pda, steps[:middle], ends=False)
        if word is None:
            high = middle
        else:
            low, begun = middle, _up_to(word, steps[:middle])
    return (*begun, *(names[0] for names in steps[low:]))


def _shortest(pda: PDA, steps: Sequence[tuple[str, ...]], *, ends: bool) -> Word | None:
    """A shortest word that has the steps; it may go on after them unless it ``ends`` there. None for no such word."""
    both = product(pda, _chain(steps, _decisions(pda), () if ends else pda.terminals))
    try:
        return Lookahead(both).shortest_word()
    except Undecided:
        return None


def _decisions(pda: PDA) -> dict[str, None]:
    return dict.fromkeys(t.read for t in pda.transitions if t.decision and t.read is not None)


def _chain(steps: Sequence[tuple[str, ...]], decisions: Iterable[str], after: Iterable[str]) -> PDA:
    """The finite automaton that reads the steps, decisions between them, and after them anything of ``after``."""
    end = len(steps)
    moves = [Transition(at, name, None, at + 1) for at, names in enumerate(steps) for name in names]
    moves += [Transition(at, name, None, at) for at in range(end + 1) for name in decisions]
    moves += [Transition(end, name, None, end) for name in after]
    return PDA(moves, start=0, accepting=[end], check=False)


def _up_to(word: Word, steps: Sequence[tuple[str, ...]]) -> Word:
    """The beginning of a word that ends with the last of the steps."""
    at = 0
    for place, name in enumerate(word):
        if at == len(steps):
            return word[:place]
        at += name in steps[at]
    return word
