"""Random texts and vocabularies for masks, and the slow answers: by all the texts of a language."""

from __future__ import annotations

from hypothesis import strategies as st

from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary

#: What labels are made of; the end token of :func:`vocabularies`, and a special one that is never text.
LETTERS = "xy ,"
END, SPECIAL = 0, 1

labels = st.text(LETTERS, min_size=1, max_size=4)
separators = st.sampled_from(["", " ", ",", ", ", "x", "xy"])


@st.composite
def vocabularies(draw: st.DrawFn) -> TokenVocabulary:
    """Each letter, some longer tokens (some twice), special tokens, and more logits than tokens."""
    more = draw(st.lists(st.text(LETTERS, min_size=2, max_size=7), max_size=12))
    pieces = [b"</s>", b"", *(letter.encode() for letter in LETTERS), *(piece.encode() for piece in more), b"z"]
    return TokenVocabulary(pieces, [END], len(pieces) + draw(st.integers(0, 40)))
