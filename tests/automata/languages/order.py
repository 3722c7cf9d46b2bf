"""The order in which words are listed."""

from __future__ import annotations

from collections.abc import Iterable

from formal_llm.automata import Word


def in_order(found: Iterable[Word], terminals: Iterable[str]) -> list[Word]:
    ranks = {name: rank for rank, name in enumerate(terminals)}
    return sorted(found, key=lambda word: (len(word), [ranks[name] for name in word]))
