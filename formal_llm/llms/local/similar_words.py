"""``builtin:minilm``: words and a sentence encoder together.

The encoder reads single words: a word of the task and one of a terminal are alike as far as the cosine of their
vectors. So "photo" speaks for what takes an image, and the plan is found as the built-in answerer finds it: each word
is to be covered once, and each terminal costs something. Words that some terminal has, and names, are not compared in
this way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from formal_llm.llms.builtin import content_words, equal_stems
from formal_llm.llms.local.encoders import BiEncoderScorer
from formal_llm.llms.local.loading import Placement, load
from formal_llm.llms.local.minilm import find_minilm
from formal_llm.llms.question import Term

if TYPE_CHECKING:
    import torch

#: Cosines of words that have nothing to do with each other, and of words that mean the same.
UNLIKE, ALIKE = 0.4, 0.8


class SimilarWords:
    """As :func:`~formal_llm.llms.builtin.equal_stems`; words that no terminal has speak for those with similar ones.

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
        said = [_common(content_words(term.label.casefold()) + content_words(term.description)) for term in terms]
        known = list(dict.fromkeys(word for some in said for word in some))
        if not words or not known:
            return found
        place = {word: number for number, word in enumerate(known)}
        heard = {number for some in found for number in some}
        unsaid = {number: word for number, word in enumerate(words) if number not in heard and _common((word,))}
        asked = list(dict.fromkeys(unsaid.values()))
        if not asked:
            return found
        with self._lock, torch.inference_mode():
            cosines = self._vectors(asked) @ self._vectors(known).T
        shares = ((cosines - UNLIKE) / (ALIKE - UNLIKE)).clamp(0, 1).tolist()
        row = dict(zip(asked, shares, strict=True))
        for some, spoken in zip(said, found, strict=True):
            for number, word in unsaid.items():
                if (share := max((row[word][place[one]] for one in some), default=0.0)) > 0:
                    spoken[number] = share
        return found


def _common(words: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are no names: to an encoder English and German are much alike, but one is not the other."""
    return tuple(word for word in words if word == word.casefold())


_HERE = Placement("cpu", "auto", None, True)
