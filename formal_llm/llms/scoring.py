"""What the score of an option is: ways to ask a model that writes, and how they are put together.

A model may be asked how probable it is that it writes the *number* of an option. Small models have favourite numbers,
whatever stands behind them. Two things help. The *text* of the option may be scored instead of its number; and a model
may be asked twice, once in a way that shows what it would have answered anyway:

``number``
    The log-probability of the option's number and what ends an answer.
``text``
    That of the option's text and what ends an answer: the sum over its tokens, so long texts score low.
``mean``
    The same divided by the number of tokens.
``calibrated``
    ``text`` less the score of the same text under an unknown task: how much the task speaks for it, its
    pointwise mutual information with the task (Holtzman et al. 2021, arXiv 2104.08315, section 3).
``rotated``
    The mean of ``number`` over all rotations of the options. Each option stands once in each place, so what a model
    adds to a place is added to all options alike.

A mixture is the weighted sum of such scores, each normalised over the options first. Whatever is mixed, the softmax
over the options stands for their probabilities, and gradients flow through all of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from formal_llm.errors import ModelError, did_you_mean
from formal_llm.llms.question import Message, Question

Mode = Literal["number", "text", "mean", "calibrated", "rotated"]
#: How options are scored: a mode, or several with their weights.
Scoring: TypeAlias = "Mode | Mapping[Mode, float] | str"
#: What stands for the task where a text is scored under an unknown one.
UNKNOWN = "an unknown task"
#: The modes that need no list of options in a question, and what the wording without one is called.
BY_TEXT, UNLISTED = frozenset({"text", "mean", "calibrated"}), "unlisted"
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Reading:
    """A chat, and the answers to it whose log-probabilities are a part of the options' scores.

    Attributes:
        messages: the chat.
        answers: the texts of the answers, all different.
        of: for each option the place of its answer.
        weight: by what the log-probabilities are multiplied.
        mean: whether each is divided by its number of tokens.
        prior: whether it is the same for all tasks, and worth keeping.
    """

    messages: tuple[Message, ...]
    answers: tuple[str, ...]
    of: tuple[int, ...]
    weight: float = 1.0
    mean: bool = field(default=False, kw_only=True)
    prior: bool = field(default=False, kw_only=True)


def weights(scoring: Scoring) -> dict[str, float]:
    """The weight of each mode.

    Args:
        scoring: a mode; modes with weights; or a text such as ``calibrated+0.5*number``.

    Raises:
        ValueError: what stands there is no mode, no weight, or nothing.
    """
    parts: list[tuple[float, str]] = []
    if isinstance(scoring, str):
        for part in scoring.split("+"):
            number, _, name = part.rpartition("*")
            try:
                parts.append((float(number) if number else 1.0, name.strip()))
            except ValueError as error:
                raise ValueError(f"{number!r} is no weight; write scoring such as calibrated+0.5*number") from error
    else:
        parts = [(float(weight), name) for name, weight in scoring.items()]
    for weight, name in parts:
        if name not in MODES:
            near = did_you_mean(name, MODES)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(MODES)}"
            raise ValueError(f"{name!r} is no way of scoring; {hint}")
        if not 0 < weight < float("inf"):
            raise ValueError(f"the weight of {name} is above 0, not {weight}")
    found = {name: weight for weight, name in parts}
    if len(found) < len(parts) or not found:
        raise ValueError("each way of scoring is named once, and at least one is")
    return found


def readings(question: Question, mode: str) -> list[Reading]:
    """What is read for one mode; the scores of the options are the sum of what is read.

    Raises:
        ModelError: the options cannot be rotated, since the prompt does not list them one by one.
    """
    count = len(question.options)
    messages = tuple(question.messages)
    numbers = tuple(str(number) for number in range(1, count + 1))
    if mode == "number":
        return [Reading(messages, numbers, tuple(range(count)))]
    if mode == "rotated":
        # The option with index i stands in place (i - by) of the list that begins with index `by`.
        return [
            Reading(_rotated(question, by), numbers, tuple((i - by) % count for i in range(count)), 1 / count)
            for by in range(count)
        ]
    texts = [option.text for option in question.options]
    answers = tuple(dict.fromkeys(texts))
    places = {text: place for place, text in enumerate(answers)}
    of = tuple(places[text] for text in texts)
    found = [Reading(messages, answers, of, mean=mode == "mean")]
    if mode == "calibrated" and question.task:
        unknown = tuple(
            message._replace(content=message.content.replace(question.task, UNKNOWN)) for message in messages
        )
        if unknown != messages:  # a prompt without the task is no evidence for or against an option by itself
            found.append(Reading(unknown, answers, of, -1.0, prior=True))
    return found


def _rotated(question: Question, by: int) -> tuple[Message, ...]:
    """The chat with the list of options beginning at another one; the numbers stay in their places."""
    messages = tuple(question.messages)
    if not by:
        return messages
    texts = [option.text for option in question.options]
    prompt = messages[-1].content
    parts: list[str] = []
    at = 0
    for place, text in enumerate(texts):
        line = re.compile(rf"^[^\w\n]*{place + 1}\W+?(?={re.escape(text)})", re.MULTILINE)
        found = line.search(prompt, at)
        if found is None:
            raise ModelError(
                f"the options cannot be rotated: the prompt has no line with {place + 1} and {text!r}; "
                "score by 'number', 'text' or 'calibrated'"
            )
        parts += (prompt[at : found.end()], texts[(place + by) % len(texts)])
        at = found.end() + len(text)
    return (*messages[:-1], messages[-1]._replace(content="".join([*parts, prompt[at:]])))


def combined(
    question: Question, scoring: Mapping[str, float], told: Callable[[Reading], Sequence[tuple[float, int]]]
) -> list[float]:
    """The logarithms of the options' probabilities, by a scorer of whole answers.

    Args:
        question: the question.
        scoring: the weight of each mode.
        told: returns for each answer of a reading the logarithm of its probability, and its number of tokens.
    """
    total = [0.0] * len(question.options)
    for mode, weight in scoring.items():
        scores = [0.0] * len(question.options)
        for reading in readings(question, mode):
            logs = [log / count if reading.mean else log for log, count in told(reading)]
            scores = [score + reading.weight * logs[place] for score, place in zip(scores, reading.of, strict=True)]
        total = [sum_ + weight * log for sum_, log in zip(total, _normalised(scores), strict=True)]
    return _normalised(total)


def _normalised(scores: Sequence[float]) -> list[float]:
    top = max(scores)
    total = top + math.log(math.fsum(math.exp(score - top) for score in scores))
    return [score - total for score in scores]


def named(scoring: Mapping[str, float]) -> str:
    """A scoring as a text, as :func:`weights` reads it."""
    return "+".join(name if weight == 1 else f"{weight:g}*{name}" for name, weight in scoring.items())
