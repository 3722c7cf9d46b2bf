"""``minilm-planner``: a sentence encoder with a head that reads which tools a sentence calls for.

The encoder is MiniLM, as it is (:mod:`formal_llm.llms.packaged`). The head (:mod:`formal_llm.llms.local.step_head`, 90
kB in this package) was trained on sentences with the tools of OpenAGI that they call for (``make planner``). It reads
the sentence once and scores all steps, so one question for all steps is enough, and it is best asked so
(``search="exact"``). Other questions are answered by the same scores: an option is worth what it uses, and what it
still allows.

Steps that the head does not know, those of other rules, are chosen by the encoder and by words together: the score of
an option is the logarithm of its probability by the encoder plus :data:`WEIGHT` times its value by words, a product of
experts (Hinton 2002).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm import authored
from formal_llm.errors import ModelError
from formal_llm.llms.builtin import Likeness, content_words, equal_stems, worths
from formal_llm.llms.llm import LLM, outcome_of
from formal_llm.llms.local.encoders import BiEncoderScorer, EncoderLLM
from formal_llm.llms.local.loading import Placement, load
from formal_llm.llms.local.step_head import StepHead
from formal_llm.llms.packaged import find_minilm
from formal_llm.llms.question import Answer, Outlook, Question, Term

if TYPE_CHECKING:
    import torch

#: The cosines of unrelated words, and of words with the same meaning.
UNLIKE, ALIKE = 0.4, 0.8


def load_encoder() -> BiEncoderScorer:
    """Load the encoder MiniLM.

    Raises:
        MissingDependency: the encoder, torch or transformers are not installed.
    """
    return BiEncoderScorer(*load(str(find_minilm()), "encoder", Placement("cpu", "auto", None, True)))


class SimilarWords:
    """Like :func:`~formal_llm.llms.builtin.equal_stems`; other words match terminals with similar words.

    Args:
        vectors: returns a vector of length 1 for each of distinct texts; by default those of MiniLM.

    Raises:
        MissingDependency: MiniLM is required and not installed.
    """

    def __init__(self, vectors: Callable[[Sequence[str]], torch.Tensor] | None = None) -> None:
        self._lock = threading.Lock()
        self._vectors = vectors or load_encoder().vectors

    def __call__(self, words: tuple[str, ...], terms: tuple[Term, ...]) -> list[dict[int, float]]:
        """Measure the likeness, see :data:`~formal_llm.llms.builtin.Likeness`."""
        import torch

        found = equal_stems(words, terms)
        term_words = [
            _drop_names(content_words(term.label.casefold()) + content_words(term.description)) for term in terms
        ]
        known = list(dict.fromkeys(word for some in term_words for word in some))
        if not words or not known:
            return found
        place = {word: number for number, word in enumerate(known)}
        matched = {number for some in found for number in some}
        unmatched = {
            number: word for number, word in enumerate(words) if number not in matched and _drop_names((word,))
        }
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


def _drop_names(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that are no names: to an encoder English and German are similar, but not the same."""
    return tuple(word for word in words if word == word.casefold())


#: The weight of words. Of 4, 6, 8, 12 and 20, all from 6 on worked well on the validation sentences.
WEIGHT = 10.0
#: The minimum probability of an option.
_LEAST = 1e-12
#: The number of sentences whose scores are kept.
_KEPT = 10_000


class SentenceScorer:
    """Scores the steps that a sentence calls for, by an encoder and a head.

    Args:
        encoder: gives the states of tokens; by default MiniLM.

    Raises:
        MissingDependency: MiniLM is required and not installed.
    """

    def __init__(self, head: StepHead, encoder: BiEncoderScorer | None = None) -> None:
        self.head = head
        self.encoder = encoder or load_encoder()
        self._lock = threading.Lock()
        self.score = lru_cache(maxsize=_KEPT)(self._score_sentence)

    def _score_sentence(self, sentence: str) -> Mapping[str, float]:
        import torch

        with self._lock, torch.inference_mode():
            (states,) = self.encoder.token_states([sentence])
        return self.head.score(states.cpu().numpy())

    def knows(self, names: Iterable[str]) -> bool:
        """Whether the head scores all of these steps."""
        return {*self.head.steps, *self.head.neutral}.issuperset(names)


class PlannerLLM(LLM):
    """Answers by the scores of steps; where they are not known, by an encoder and by words together.

    Args:
        scorer: scores steps.
        encoder: returns probabilities.
        likeness: measures how well terminals match words.
        weight: the weight of words relative to the logarithm of probabilities.
    """

    def __init__(
        self, scorer: SentenceScorer, encoder: LLM, likeness: Likeness, name: str, weight: float = WEIGHT
    ) -> None:
        self.scorer = scorer
        self.encoder = encoder
        self.likeness = likeness
        self.name = name
        self.weight = weight
        self.at_once = encoder.at_once

    @classmethod
    def from_file(cls, file: str | Path | None = None) -> PlannerLLM:
        """Create the planner of a head; by default that of this package.

        Args:
            file: the file of a head.

        Raises:
            MissingDependency: the encoder, torch or transformers are not installed; explains how to install them.
            ResourceNotFound, ModelError: there is no such file, or it is no head, or one for another encoder.
        """
        folder = find_minilm()  # checked before anything heavy is loaded
        head = StepHead.load(file or shipped_head())
        if head.encoder != "minilm":
            raise ModelError(f"{file} is for another encoder, {head.encoder}")
        encoder = EncoderLLM(str(folder), local_files_only=True)
        assert isinstance(encoder.scorer, BiEncoderScorer)
        name = f"minilm-planner@{head.fingerprint}"
        return cls(SentenceScorer(head, encoder.scorer), encoder, SimilarWords(encoder.scorer.vectors), name)

    @property
    def identity(self) -> dict[str, object]:  # type: ignore[override]
        """The settings that determine the answers, as JSON data: part of the key of an answer cache."""
        return {"llm": self.name, "weight": self.weight}

    def knows_steps(self, names: Iterable[str]) -> bool:
        """Whether all of these steps can be scored at once."""
        return self.scorer.knows(names)

    def answer_all(self, questions: Sequence[Question], /) -> list[Answer | Exception]:
        """Answer all questions; a question that is too long gets its ``LLMError`` instead of an answer."""
        found: list[Answer | Exception | None] = [self._answer_by_steps(question) for question in questions]
        other = [place for place, answer in enumerate(found) if answer is None]
        read = [outcome_of(one) for one in self.encoder.submit([questions[place] for place in other])] if other else []
        for place, answer in zip(other, read, strict=True):
            found[place] = self._answer_by_words(questions[place], answer)
        return [answer for answer in found if answer is not None]

    def _answer_by_steps(self, question: Question) -> Answer | None:
        """Answer by the scores of steps; None if they are not all known."""
        outlook = question.outlook
        names = [] if outlook is None else _list_steps(outlook)
        if outlook is None or not names or not self.knows_steps(names):
            return None
        scores = self.scorer.score(question.task)
        values = _value_options(outlook, scores)
        if question.several:
            likely = {number: 1 / (1 + math.exp(-value)) for number, value in enumerate(values, 1)}
            wanted = [number for number, share in likely.items() if share > 0.5]
            return Answer(question.nearest(wanted or [max(likely, key=likely.__getitem__)]), likely)
        return _choose_highest(values)

    def _answer_by_words(self, question: Question, answer: Answer | Exception) -> Answer | Exception:
        """Add the value by words to the encoder's answer, except for selections, or if values are unknown."""
        if isinstance(answer, Exception) or question.several or answer.probabilities is None:
            return answer
        values = worths(question, self.likeness)
        if values is None:
            return answer
        scores = [
            math.log(max(answer.probabilities.get(number, 0.0), _LEAST)) + self.weight * worth
            for number, worth in enumerate(values, 1)
        ]
        return replace(_choose_highest(scores), usage=answer.usage)


def _choose_highest(scores: Sequence[float]) -> Answer:
    """The option with the highest score, the first of equals, and the softmax of all scores."""
    top = max(scores)
    shares = [math.exp(score - top) for score in scores]
    return Answer((scores.index(top) + 1,), {number: share / sum(shares) for number, share in enumerate(shares, 1)})


def _list_steps(outlook: Outlook) -> list[str]:
    """List the steps that the options use, and those that they still allow."""
    used = [term.name for prospect in outlook.prospects for term in prospect.uses]
    return used + [term.name for prospect in outlook.prospects for term, _ in prospect.allows]


def _value_options(outlook: Outlook, scores: Mapping[str, float]) -> list[float]:
    """Return for each option the scores of the steps that it uses, and of the wanted ones that it still allows."""
    taken = {term.name for term in outlook.so_far}
    values = []
    for prospect in outlook.prospects:
        uses = {term.name for term in prospect.uses}
        later = {term.name for term, _ in prospect.allows} - uses - taken
        wanted = sum(max(scores.get(name, 0.0), 0.0) for name in later)
        values.append(sum(scores[name] for name in uses) + wanted)
    return values


def shipped_head() -> Path:
    """Return the file of the head in this package."""
    return authored.find("training", "heads/minilm-planner", (".safetensors",))
