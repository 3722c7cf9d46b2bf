"""What tests of languages share: the order of words, the distance of two by its definition, edits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hypothesis import strategies as st

from formal_llm.automata import Word
from formal_llm.automata.languages.nearest_words import Edit, EditWeights
from tests.strategies import LETTERS

words = st.lists(st.sampled_from(LETTERS), max_size=4).map(tuple)
weights = st.builds(EditWeights, st.integers(0, 3), st.integers(0, 3), st.integers(0, 4))


def distance(word: Word, other: Word, weights: EditWeights) -> float:
    """The recursive definition of the weighted Levenshtein distance."""
    if not word or not other:
        return len(word) * weights.delete + len(other) * weights.insert
    return min(
        distance(word[1:], other[1:], weights) + (0 if word[0] == other[0] else weights.substitute),
        distance(word[1:], other, weights) + weights.delete,
        distance(word, other[1:], weights) + weights.insert,
    )


def apply_edits(edits: Sequence[Edit], word: Word) -> Word:
    made = list(word)
    for edit in reversed(edits):  # from the end on, so that the places before stay what they are
        end = edit.position + (edit.kind != "insert")
        assert made[edit.position : end] == ([] if edit.old is None else [edit.old])
        made[edit.position : end] = [] if edit.new is None else [edit.new]
    return tuple(made)


def in_order(found: Iterable[Word], terminals: Iterable[str]) -> list[Word]:
    """The order in which words are listed."""
    ranks = {name: rank for rank, name in enumerate(terminals)}
    return sorted(found, key=lambda word: (len(word), [ranks[name] for name in word]))
