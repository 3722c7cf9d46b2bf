"""Why nothing can be completed."""

from __future__ import annotations

from typing import Any

from formal_llm.automata.limited import LimitedAutomaton, limited, split
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


def why_empty(automaton: Any, *, max_states: int = 20_000) -> tuple[str, list[str], list[str]]:
    """(the reason in words, the symbols to blame, the limits to blame) for an automaton without any word."""
    inner, _ = split(automaton)
    lines = clash(automaton, max_states=max_states)
    if lines:
        return f"these limits clash: {'; '.join(lines)}", [], lines
    cfg = inner.cfg if isinstance(inner, PDA) else None
    if cfg is not None and cfg.start not in cfg.productive:
        stuck = [name for name in cfg.nonterminals if name in cfg.reachable and name not in cfg.productive]
        return f"no word can be derived from {', '.join(stuck)}", stuck, []
    return "no run of the automaton accepts", [], []
