"""What the tests of lookahead share: sources, automata of one's own, and the slow reference at a configuration."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from formal_llm import Limits, Lookahead
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.limited import LimitedConfiguration
from formal_llm.automata.lookahead.search import CompletionSearch
from formal_llm.automata.lookahead.stacks import PendingSymbols
from formal_llm.automata.models.automaton import Configuration, Word
from formal_llm.errors import Undecided
from tests.oracles import INF, Reference
from tests.strategies import direct_automata, limited_automata, limited_grammars, tool_grammars

#: A grammar or an automaton, and limits on top of its own.
sources = st.one_of(
    limited_grammars().map(lambda cfg: (cfg, None)),
    limited_automata(),
    tool_grammars().map(lambda cfg: (cfg, None)),
    direct_automata().map(lambda pda: (pda, Limits(default=1))),
)


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


def judge(lookahead: Lookahead, now: Any, word: Word | None = None, *, sure: bool = True) -> None:
    """Compare all answers at a configuration with those of the reference.

    Args:
        lookahead: what is asked.
        now: the configuration.
        word: what was read on the way there; None where the start does not lead there.
        sure: whether it has to know; else "unknown" is right, too.
    """
    slow = reference(lookahead)
    moves, length = slow.moves(*parts(now), word or ()), slow.length(*parts(now), word or ())
    found = lookahead.completable(now)
    assert found.value == ("no" if moves == INF else "yes") or (found.value == "unknown" and not sure)
    assert (found.steps is not None) == (found.value == "yes")
    assert found.steps is None or found.steps >= moves
    for steps in {0, 1, 3, 9, *((int(moves) - 1, int(moves)) if 0 < moves < INF else ())}:
        within = lookahead.completable(now, steps=steps)
        assert within.value == ("yes" if moves <= steps else "no") or (within.value == "unknown" and not sure)
        assert within.steps is None or moves <= within.steps <= steps
    assert lookahead.least_steps(now) <= moves
    for tries in (0, 50, 4_000):
        assert lookahead.least_length(now, tries=tries) <= length
    for ask, least in ((lookahead.fewest_moves, moves), (lookahead.shortest, length)):
        try:
            assert ask(now) == (None if least == INF else least)
        except Undecided:
            assert not sure
    try:
        rest = lookahead.shortest_word(now)
    except Undecided:
        assert not sure
    else:
        assert (rest is None) == (length == INF)
        assert rest is None or len(rest) == length
        assert rest is None or word is None or lookahead.automaton.accepts(word + rest)


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
