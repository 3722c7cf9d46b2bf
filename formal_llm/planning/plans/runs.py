"""The run by which an automaton reads a word."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.automata import PDA, Lookahead, Transition
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.models.automaton import Configuration
from formal_llm.automata.models.product import product
from formal_llm.errors import AutomatonError

#: The moves that are left where they are not known: more than any that are.
_UNKNOWN = 1e18


def find_run(pda: PDA, word: Sequence[str]) -> tuple[Transition, ...]:
    """The transitions by which an automaton reads a word, few of them where there are several ways.

    The automaton that reads this word and no other is put on top: its lookahead knows which moves lead to the end.

    Raises:
        AutomatonError: the word is none of the language.
        Undecided: it was not found within the budget of states.
    """
    chain = PDA([(at, name, None, at + 1) for at, name in enumerate(word)], start=0, accepting=[len(word)], check=False)
    both = product(pda, chain)
    lookahead = Lookahead(both)
    here = both.start()
    moves: list[Transition] = []
    left: float = INFINITE
    exact = False
    while not both.accepting(here):
        after = [both.step(here, move) for move in both.moves(here)]
        found = [_count_moves_left(lookahead, one, exact) for one in after]
        if not exact and min(found, default=INFINITE) >= left < INFINITE:
            # The completions that are known from here are longer than that from before: it could go round in circles.
            exact, left = True, INFINITE
            continue
        left = min(found, default=INFINITE)
        if left == INFINITE:
            raise AutomatonError(
                f"this is no plan of these rules, so it is not drawn; verify it to see why: {' '.join(word) or 'ε'}"
            )
        place = found.index(left)
        moves.append(both.moves(here)[place])
        here = after[place]
    # A state of the product is a pair: the first is that of the automaton that is drawn.
    known = {transition.parts(): transition for transition in pda.transitions}
    return tuple(known[m.state[0], m.read, m.pop, m.target[0], m.push] for m in moves)  # type: ignore[index]


def _count_moves_left(lookahead: Lookahead, configuration: Configuration, exact: bool) -> float:
    """The moves of a completion: of some that is found, or of the shortest one; infinite where there is none."""
    if exact:
        least = lookahead.fewest_moves(configuration)
        return INFINITE if least is None else least
    verdict = lookahead.completable(configuration)
    return INFINITE if not verdict.possible else _UNKNOWN if verdict.steps is None else verdict.steps
