"""The run by which an automaton reads a word."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.automata import PDA, Lookahead, Transition
from formal_llm.automata.models.product import product
from formal_llm.errors import AutomatonError, FormalLLMError


def run_of(pda: PDA, word: Sequence[str]) -> tuple[Transition, ...]:
    """The transitions by which an automaton reads a word, few of them where there are several ways.

    The automaton that reads this word and no other is put on top: its lookahead knows which moves lead to the end.

    Raises:
        AutomatonError: the word is none of the language.
    """
    chain = PDA([(at, name, None, at + 1) for at, name in enumerate(word)], start=0, accepting=[len(word)], check=False)
    both = product(pda, chain)
    lookahead = Lookahead(both)
    here = both.start()
    moves: list[Transition] = []
    left = lookahead.completable().steps or 0
    while not both.accepting(here):
        found = [(lookahead.completable(both.step(here, move)), n) for n, move in enumerate(both.moves(here))]
        able = [(left if verdict.steps is None else verdict.steps, n) for verdict, n in found if verdict.possible]
        if not able:
            raise AutomatonError(
                f"this is no plan of these rules, so it is not drawn; verify it to see why: {' '.join(word) or 'ε'}"
            )
        left, place = min(able)
        move = both.moves(here)[place]
        here = both.step(here, move)
        moves.append(move)
        if len(moves) > 100 * (len(word) + 10):
            raise FormalLLMError("the way of this plan through the rules was not found")
    # A state of the product is a pair: the first is that of the automaton that is drawn.
    known = {transition.parts(): transition for transition in pda.transitions}
    return tuple(known[m.state[0], m.read, m.pop, m.target[0], m.push] for m in moves)  # type: ignore[index]
