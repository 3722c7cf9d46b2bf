"""The scores of options: the ways to ask a model that writes.

A model may be asked how probable it is that it writes the *number* of an option. Small models have favourite numbers,
whatever the options are. Two things help: to score the *text* of the option instead of its number, and to ask the model
twice, once to find out what it would have answered anyway:

``number``
    The log-probability of the option's number and of the token that ends an answer.
``text``
    The same for the option's text: the sum over its tokens, so long texts score low.
``calibrated``
    ``text`` minus the score of the same text for an unknown task: its pointwise mutual information with the task
    (Holtzman et al. 2021, arXiv 2104.08315, section 3).

The softmax over the options gives their probabilities, and gradients flow through everything.

**Selections.** Where any set of options is an answer, each option has a probability of its own to belong to it. Its log
odds are what the task adds to the log-probability of its text: the score of ``calibrated``, not normalised. Without a
prior for an unknown task, the prior is that all options are equally probable.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from formal_llm.errors import did_you_mean
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.usage import TokenUsage

#: How options are scored.
Mode = Literal["number", "text", "calibrated"]
#: The task in whose place a text is scored for ``calibrated``.
UNKNOWN = "an unknown task"
#: The modes that need no list of options in a question, and the name of the wording without one.
BY_TEXT, UNLISTED = frozenset({"text", "calibrated"}), "unlisted"
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Reading:
    """A chat and answers to it, whose log-probabilities are part of the options' scores.

    Attributes:
        messages: the chat.
        answers: the texts of the answers, all different.
        of: for each option the index of its answer.
        weight: the factor of the log-probabilities.
        prior: whether it is the same for all tasks, and therefore worth caching.
    """

    messages: tuple[Message, ...]
    answers: tuple[str, ...]
    of: tuple[int, ...]
    weight: float = 1.0
    prior: bool = field(default=False, kw_only=True)


def known_mode(scoring: str) -> str:
    """Return a mode as it is.

    Raises:
        ValueError: there is no such mode.
    """
    if scoring not in MODES:
        near = did_you_mean(scoring, MODES)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(MODES)}"
        raise ValueError(f"{scoring!r} is no way of scoring; {hint}")
    return scoring


def readings(question: Question, mode: str) -> list[Reading]:
    """Return the readings of one mode, whose log-probabilities add up to the scores of the options."""
    count = len(question.options)
    messages = tuple(question.messages)
    numbers = tuple(str(number) for number in range(1, count + 1))
    if mode == "number":
        return [Reading(messages, numbers, tuple(range(count)))]
    texts = [option.text for option in question.options]
    answers = tuple(dict.fromkeys(texts))
    places = {text: place for place, text in enumerate(answers)}
    of = tuple(places[text] for text in texts)
    found = [Reading(messages, answers, of)]
    if mode == "calibrated" and question.task:
        # Only whole words: the task "go" is no part of "goods".
        task = re.compile(rf"(?<!\w){re.escape(question.task)}(?!\w)")
        unknown = tuple(message._replace(content=task.sub(UNKNOWN, message.content)) for message in messages)
        if unknown != messages:  # a prompt without the task cannot reveal a preference for an option
            found.append(Reading(unknown, answers, of, -1.0, prior=True))
    return found


def is_selected_at_once(question: Question, mode: str) -> bool:
    """Return whether the texts of all options of a selection are scored, and any set of them is an answer."""
    return question.several and question.objection is None and mode in BY_TEXT


def weigh_options(question: Question, mode: str, report: Callable[[Reading], Sequence[float]]) -> list[float]:
    """Compute the log odds of the options of a selection from the log-probabilities of answers.

    Args:
        question: the question.
        mode: a mode that scores texts.
        report: returns the logarithm of the probability of each answer of a reading.
    """
    scores = [0.0] * len(question.options)
    has_prior = False
    for reading in readings(question, mode):
        logs = report(reading)
        scores = [score + reading.weight * logs[place] for score, place in zip(scores, reading.of, strict=True)]
        has_prior |= reading.prior
    return scores if has_prior else [score + math.log(len(scores)) for score in _normalise_scores(scores)]


def read_log_odds(question: Question, odds: Sequence[float], usage: TokenUsage) -> Answer:
    """Return the selection that follows from the log odds of the options to belong to it."""
    return question.select_likely({number: 0.5 + 0.5 * math.tanh(log / 2) for number, log in enumerate(odds, 1)}, usage)


def _normalise_scores(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    total = top + math.log(math.fsum(math.exp(score - top) for score in scores))
    return [score - total for score in scores]
