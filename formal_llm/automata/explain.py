"""Why nothing can be completed."""

from __future__ import annotations

from collections import deque
from typing import Any

from formal_llm.automata.limited import LimitedAutomaton, limited, split
from formal_llm.automata.limits import Limits
from formal_llm.automata.lookahead import Lookahead
from formal_llm.automata.pda import PDA


def clash(automaton: Any, *, max_states: int = 20_000) -> list[str]:
    """Limits that together leave no word, each of them needed for that: dropping any one leaves a word.

    Found by leaving out one limit after the other while none of the rest allows a word (deletion filter). A limit of
    which lookahead cannot tell that within ``max_states`` is kept.

    Returns:
        The limits as lines of the grammar notation; empty where the automaton has no word even without limits.
    """
    inner, limits = split(automaton)
    if Lookahead(inner, max_states=max_states).completable().value == "no":
        return []
    needed: list[str] = []
    while isinstance(now := limited(inner, limits), LimitedAutomaton):
        candidates = [bound.line for bound in now.counters.bounds if bound.line not in needed]
        if not candidates:
            break
        less = limits.without(candidates[0])
        if Lookahead(inner, less, max_states=max_states).completable().value == "no":
            limits = less
        else:
            needed.append(candidates[0])
    return needed


def remedy(automaton: Any, *, max_states: int = 20_000, max_tries: int = 60) -> list[str]:
    """A smallest set of limits without which there is a word; empty where there is none even without any limit.

    Each such set takes one limit out of every clash, so the sets are looked for by taking out, clash by clash, each of
    its limits in turn, fewest first (the hitting-set tree of Reiter 1987).

    Args:
        automaton: one without any word.
        max_states: the budget of each question to lookahead.
        max_tries: how many sets are tried; then the first clash as a whole is returned, which always is enough for it.
    """
    inner, limits = split(automaton)
    first = clash(automaton, max_states=max_states)
    todo: deque[tuple[tuple[str, ...], Limits]] = deque([((), limits)])
    seen: set[frozenset[str]] = set()
    while todo and len(seen) < max_tries:
        dropped, kept = todo.popleft()
        lines = clash(limited(inner, kept), max_states=max_states) if dropped else first
        if dropped and Lookahead(inner, kept, max_states=max_states).completable().value == "yes":
            return list(dropped)
        for line in lines:
            following = (*dropped, line)
            if frozenset(following) not in seen:
                seen.add(frozenset(following))
                todo.append((following, kept.without(line)))
    return first


def why_empty(automaton: Any, *, max_states: int = 20_000) -> tuple[str, list[str], list[str], list[str]]:
    """(the reason in words, symbols to blame, limits that clash, limits to drop) for an automaton without any word."""
    inner, _ = split(automaton)
    lines = clash(automaton, max_states=max_states)
    if lines:
        way_out = remedy(automaton, max_states=max_states)
        enough = "" if way_out == lines else f"; there is a plan without {' and '.join(way_out)}"
        return f"these limits clash: {'; '.join(lines)}{enough}", [], lines, way_out
    cfg = inner.cfg if isinstance(inner, PDA) else None
    if cfg is not None and cfg.start not in cfg.productive:
        stuck = [name for name in cfg.nonterminals if name in cfg.reachable and name not in cfg.productive]
        return f"no word can be derived from {', '.join(stuck)}", stuck, [], []
    return "no run of the automaton accepts", [], [], []
