"""Terminals that no word uses."""

from __future__ import annotations

from collections.abc import Container

from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.limits import Limits

#: With so many terminals it is asked of each whether a word can use it.
_MANY = 100
#: The states of a search that is soon decided.
_SOON = 1_000


def find_unused_terminals(lookahead: Lookahead, max_states: int = 20_000, used: Container[str] = ()) -> list[str]:
    """The terminals that no word uses, as far as the lookahead can tell.

    Args:
        lookahead: of the language.
        max_states: the budget of each question.
        used: terminals that are known to be used.
    """
    usable = lookahead.detours(lookahead.automaton.start())
    terminals = list(lookahead.automaton.terminals)
    if len(terminals) > _MANY:
        return [name for name in terminals if name not in usable]

    def none_with(name: str) -> bool:
        required, least = lookahead.source, Limits(at_least={name: 1})
        # To load the solver takes as long as a hundred searches that are soon decided.
        verdict = Lookahead(required, least, max_states=min(_SOON, max_states), solver=False).completable()
        if verdict.value == "unknown":
            verdict = Lookahead(required, least, max_states=max_states).completable()
        return verdict.value == "no"

    return [name for name in terminals if name not in usable or (name not in used and none_with(name))]
