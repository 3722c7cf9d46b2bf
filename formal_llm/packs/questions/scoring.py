"""The scoring of answers by the published method of each data set.

``text`` (HotpotQA, our own): exact match and F1 over words, in the normal form of SQuAD (Rajpurkar et al. 2016): no
letter case, no punctuation, no articles. As in HotpotQA's script, yes and no have no partial score. ``aliases``
(TriviaQA): the best over all names of the answer, in TriviaQA's normal form. ``number`` (GSM8K): the number after
``####``, else the last one. ``label`` (FEVER): one of three labels.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

from formal_llm.packs.questions.loading import QuizQuestion

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = frozenset(string.punctuation)
_NUMBER = re.compile(r"-?(?:[0-9][0-9,]*(?:\.[0-9]+)?|\.[0-9]+)(?:/[0-9]+)?")
_UNDIVIDED = frozenset(["yes", "no", "noanswer"])
#: The maximum number of characters to read of an answer, in case a model does not stop.
MOST_CHARACTERS = 10_000


class AnswerScore(NamedTuple):
    """The score of an answer.

    Attributes:
        f1: the harmonic mean of precision and recall of its words, from 0 to 1; 0 or 1 for numbers and labels.
    """

    exact: bool
    f1: float


def score_answer(question: QuizQuestion, answer: str) -> AnswerScore:
    """Score an answer to a question.

    Raises:
        ValueError: the question has no answer: it is from a test set whose answers are not published.
    """
    if not question.answers:
        raise ValueError(f"the question {question.id} comes without an answer, as those of test sets do")
    answer = answer[:MOST_CHARACTERS]
    if question.measure == "number":
        expected = number_of(question.answers[0])
        return _make_score(expected is not None and expected == number_of(answer))
    if question.measure == "label":
        return _make_score(_normalize_label(question.answers[0]) == _normalize_label(answer))
    normal: Callable[[str], str] = trivia_form if question.measure == "aliases" else squad_form
    scores = [_score_texts(normal(answer), normal(gold)) for gold in question.answers]
    return AnswerScore(any(score.exact for score in scores), max(score.f1 for score in scores))


def mean_score(scores: Iterable[AnswerScore]) -> tuple[float, float]:
    """Return the mean exact match and F1 of several answers, in percent; 0 if there are none."""
    all_scores = list(scores)
    count = max(1, len(all_scores))
    return 100 * sum(score.exact for score in all_scores) / count, 100 * sum(score.f1 for score in all_scores) / count


def squad_form(text: str) -> str:
    """Return the normal form of SQuAD and HotpotQA: lower case, then no punctuation, no articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", "".join(sign for sign in text.lower() if sign not in _PUNCTUATION)).split())


def trivia_form(text: str) -> str:
    """Return the normal form of TriviaQA: as SQuAD's, but punctuation marks and underscores separate words."""
    plain = "".join(" " if sign in _PUNCTUATION or sign in "‘’´`" else sign for sign in text.lower())
    return " ".join(_ARTICLES.sub(" ", plain).split())


def number_of(text: str) -> Fraction | None:
    """Return the number in an answer: after ``####`` if present, else the last one; None if there is none."""
    answer = text.rpartition("####")[2] if "####" in text else text
    found = _NUMBER.findall(answer[-1_000:] if answer is text else answer[:1_000])
    if not found:
        return None
    try:
        return Fraction((found[0] if answer is not text else found[-1]).replace(",", ""))
    except ZeroDivisionError:
        return None


def _score_texts(answer: str, gold: str) -> AnswerScore:
    if answer != gold and (answer in _UNDIVIDED or gold in _UNDIVIDED):
        return AnswerScore(False, 0.0)
    ours, theirs = answer.split(), gold.split()
    common = sum((Counter(ours) & Counter(theirs)).values())
    if not common:
        return _make_score(answer == gold)
    precision, recall = common / len(ours), common / len(theirs)
    return AnswerScore(answer == gold, 2 * precision * recall / (precision + recall))


def _normalize_label(text: str) -> str:
    return re.sub(r"[\s_]+", " ", text).strip(" .\"'").upper()


def _make_score(right: bool) -> AnswerScore:
    return AnswerScore(right, float(right))
