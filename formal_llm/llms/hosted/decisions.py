"""Decision models: they return a distribution over named options, or the probability of a statement, and no text.

A question with one answer is one question over the options "1", "2", ... A question with several is one statement for
each option: the statements that are more likely true than not are chosen, or the likeliest one if there is none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from formal_llm.llms.hosted.adapter import invalid
from formal_llm.llms.question import Answer, Option, Question
from formal_llm.llms.usage import TokenUsage

#: The maximum number of named options of a question.
MOST_OPTIONS = 255
#: The question over the options.
INSTRUCTIONS = "Choose the option that answers the last question."
#: How much the sum of all options' probabilities may differ from 1, since servers round them.
_ROUNDING = 0.02


def statement(option: Option) -> str:
    """Return the statement that ``option`` belongs to the answer."""
    return f"The answer to the last question includes option {option.number}: {option.text}"


def read_choice(question: Question, value: object, probabilities: Mapping[object, object], usage: TokenUsage) -> Answer:
    """Create the answer that chose ``value``.

    Args:
        question: the question.
        value: the name of the chosen option; may be anything, since it comes from a server.
        probabilities: the probability of each option by its name.
        usage: the tokens that it cost.

    Raises:
        InvalidAnswer: ``value`` is not the name of an option.
    """
    names = {str(option.number): option.number for option in question.options}
    if not isinstance(value, str) or value not in names:
        raise invalid(question, f"{str(value)[:60]!r} is not the number of an option", str(value)[:1000], usage)
    found = _read_distribution(probabilities, names)
    return question.check(Answer((names[value],), found, value, usage))


def read_several(question: Question, probabilities: Sequence[object], usage: TokenUsage) -> Answer:
    """Create the answer to a question with several, from the probability of each option to belong to it.

    If options may not be chosen together, the least likely ones are removed first.

    Args:
        question: the question.
        probabilities: for each option, in order, the probability of its statement.
        usage: the tokens that it cost.

    Raises:
        InvalidAnswer: a value is no probability.
    """
    likely: dict[int, float] = {}
    for option, value in zip(question.options, probabilities, strict=True):
        share = _read_share(value)
        if share is None:
            text = f"option {option.number}: {str(value)[:60]}"
            raise invalid(question, f"the probability of option {option.number} is none", text, usage)
        likely[option.number] = share
    return question.select_likely(likely, usage)


def _read_share(given: object) -> float | None:
    """Return ``given`` if it is a probability, else None."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1 + _ROUNDING:
        return None
    return min(float(given), 1.0)


def _read_distribution(given: Mapping[object, object], names: Mapping[str, int]) -> dict[int, float] | None:
    """Return ``given`` as probabilities of the options, or None if it is no distribution over them."""
    # A missing option has probability 0, if the others sum to 1.
    shares = {number: _read_share(given.get(name, 0.0)) for name, number in names.items()}
    found = {number: share for number, share in shares.items() if share is not None}
    total = math.fsum(found.values())
    if len(found) < len(shares) or abs(total - 1) > _ROUNDING:
        return None
    return {number: share / total for number, share in found.items()}
