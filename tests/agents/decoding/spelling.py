"""Random texts and vocabularies for masks, and the slow answers: by all the texts of a language."""

from __future__ import annotations

from hypothesis import strategies as st

from formal_llm import CFG, Limits
from formal_llm.agents.decoding.plan_texts import PlanTexts
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from tests.oracles import alphabet, keeps, language
from tests.strategies import limited_grammars, tool_grammars

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


@st.composite
def bounded_grammars(draw: st.DrawFn) -> CFG:
    """Grammars with limits and sums in which every plan is short."""
    cfg = draw(limited_grammars() | tool_grammars())
    most = Limits(at_most=dict.fromkeys(cfg.terminals, 2 if len(cfg.terminals) < 4 else 1))
    return CFG(cfg.productions, cfg.start, cfg.symbols, cfg.limits & most, cfg.order)


def plans_of(cfg: CFG) -> list[tuple[str, ...]]:
    """All the words of a grammar whose terminals may each be used twice at most."""
    letters = alphabet(cfg)
    most = 2 * len(letters) if len(letters) < 4 else len(letters)
    return sorted(word for word in language(cfg, most) if keeps(word, cfg.limits, letters, cfg.symbols))


def legal_tokens(vocabulary: TokenVocabulary, texts: set[bytes], written: bytes) -> set[int]:
    """The tokens after which a text of the language can still come about."""
    found = {END} if written in texts else set()
    for token, piece in enumerate(vocabulary.pieces):
        if piece and any(text.startswith(written + piece) for text in texts):
            found.add(token)
    return found


def written(texts: PlanTexts, words: list[tuple[str, ...]]) -> set[bytes]:
    return {texts.write_word(word).encode() for word in words}
