"""What the tests of lookahead share: sources, automata of one's own, and the slow reference at a configuration."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from formal_llm import Lookahead
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.limited import LimitedConfiguration
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import PendingSymbols
from formal_llm.automata.models.automaton import Configuration
from tests.oracles import Reference
from tests.strategies import limited_automata, limited_grammars

#: A grammar or an automaton, and limits on top of its own.
sources = st.one_of(limited_grammars().map(lambda cfg: (cfg, None)), limited_automata())


def parts(configuration: Any) -> tuple[Any, tuple[str, ...]]:
    """(state, stack as a tuple) of a configuration, with or without counters."""
    inner = getattr(configuration, "inner", configuration)
    return inner.state, tuple(inner.stack)


def reference(lookahead: Lookahead) -> Reference:
    assert lookahead.pda is not None
    return Reference(lookahead.pda, lookahead.limits)


def pieces(lookahead: Lookahead, now: Any) -> tuple[Configuration, int, int]:
    """The configuration without counters, what is left, what is needed."""
    inner = lookahead.uncounted(now)
    return (inner, now.remaining, now.needed) if isinstance(now, LimitedConfiguration) else (inner, 0, 0)


def search_of(lookahead: Lookahead, max_states: int = 20_000) -> CompletionSearch:
    """A search of the same rules that has found nothing yet, without CP-SAT."""
    assert lookahead.pda is not None
    grammar = FlowGrammar(lookahead.pda, Counters(lookahead.bounds))
    return CompletionSearch(PendingSymbols(grammar), max_states)


class Plain:
    """A finite automaton that is no PDA: words over a and b with an even number of a."""

    terminals = ("a", "b")
    fingerprint = "even"

    class Step:
        def __init__(self, read: str) -> None:
            self.read = read

    steps = (Step("a"), Step("b"))

    def start(self) -> int:
        return 0

    def moves(self, configuration: int) -> tuple[Any, ...]:
        return self.steps

    def step(self, configuration: int, move: Any) -> int:
        return (configuration + bool(move.read == "a")) % 2

    def accepting(self, configuration: int) -> bool:
        return configuration == 0
