"""``builtin:minilm``: words and a sentence encoder together.

The encoder reads single words: a word of the task and one of a terminal are alike as the cosine of their vectors says.
So "photo" speaks for what takes an image, and the plan is found as the built-in answerer finds it: each word is to be
covered once, and each terminal costs something.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from formal_llm.llms.builtin import content_words, equal_stems, told
from formal_llm.llms.local.encoders import BiEncoderScorer
from formal_llm.llms.local.loading import Placement, load
from formal_llm.llms.local.minilm import find_minilm
from formal_llm.llms.question import Term

if TYPE_CHECKING:
    import torch

#: Cosines of words that have nothing to do with each other, and of words that mean the same.
UNLIKE, ALIKE = 0.4, 0.8


class SimilarWords:
    """As :func:`~formal_llm.llms.builtin.equal_stems`, and a share for words that are similar.

    Args:
        vectors: for distinct texts a vector of length 1 each; those of MiniLM where left out.

    Raises:
        MissingDependency: MiniLM is wanted and not installed.
    """

    def __init__(self, vectors: Callable[[Sequence[str]], torch.Tensor] | None = None) -> None:
        self._lock = threading.Lock()
        self._vectors = vectors or BiEncoderScorer(*load(str(find_minilm()), "encoder", _HERE)).vectors

    def __call__(self, words: tuple[str, ...], terms: tuple[Term, ...]) -> list[dict[int, float]]:
        """As :data:`~formal_llm.llms.builtin.Likeness`."""
        import torch

        found = equal_stems(words, terms)
        said = [content_words(told(term)) for term in terms]
        known = list(dict.fromkeys(word for some in said for word in some))
        if not words or not known:
            return found
        place = {word: number for number, word in enumerate(known)}
        asked = list(dict.fromkeys(words))
        with self._lock, torch.inference_mode():
            cosines = self._vectors(asked) @ self._vectors(known).T
        shares = ((cosines - UNLIKE) / (ALIKE - UNLIKE)).clamp(0, 1).tolist()
        row = dict(zip(asked, shares, strict=True))
        for some, spoken in zip(said, found, strict=True):
            for number, word in enumerate(words):
                share = max((row[word][place[one]] for one in some), default=0.0)
                if share > spoken.get(number, 0.0):
                    spoken[number] = share
        return found


_HERE = Placement("cpu", "auto", None, True)
