"""Decision models: asked for a distribution over named options, or for the probability of a statement, not for text.

Two protocols have this in nearly the same form, OpenAI's decisions and System One. What their adapters share stands
here: the wording of what is asked, and the checked reading of what comes back.

A question with one answer is one question over the options "1", "2", ... A question with several is one statement for
each option: those that are more likely true than not are chosen, or the likeliest alone where none is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from formal_llm.llms.hosted.adapter import invalid
from formal_llm.llms.question import Answer, Option, Question
from formal_llm.llms.usage import TokenUsage

#: The most options that a question over named options may have, in both protocols.
MOST_OPTIONS = 255
#: What is asked over the options.
INSTRUCTIONS = "Choose the option that answers the last question."
#: By how much the probabilities of all options may miss a sum of 1: servers round them.
_ROUNDING = 0.02


def statement(option: Option) -> str:
    """The statement that ``option`` belongs to the answer."""
    return f"The answer to the last question includes option {option.number}: {option.text}"


def read_choice(question: Question, value: object, probabilities: Mapping[object, object], usage: TokenUsage) -> Answer:
    """The answer that chose ``value``.

    Args:
        question: the question.
        value: the name of the chosen option; anything, since it comes from a server.
        probabilities: that of each option by its name.
        usage: what it cost.

    Raises:
        InvalidAnswer: ``value`` is the name of no option.
    """
    names = {str(option.number): option.number for option in question.options}
    if not isinstance(value, str) or value not in names:
        raise invalid(question, f"{str(value)[:60]!r} is not the number of an option", str(value)[:1000], usage)
    found = _distribution(probabilities, names)
    return question.check(Answer((names[value],), found, value, usage))


def read_several(question: Question, probabilities: Sequence[object], usage: TokenUsage) -> Answer:
    """The answer to a question with several, from the probability of each option to belong to it.

    Options that may not be chosen together are thinned out: the least likely goes first.

    Args:
        question: the question.
        probabilities: for each option, in order, the probability of its statement.
        usage: what it cost.

    Raises:
        InvalidAnswer: what is given are no probabilities.
    """
    likely: dict[int, float] = {}
    for option, given in zip(question.options, probabilities, strict=True):
        share = _share(given)
        if share is None:
            said = f"option {option.number}: {str(given)[:60]}"
            raise invalid(question, f"the probability of option {option.number} is none", said, usage)
        likely[option.number] = share
    # The first of equals, as everywhere.
    ranked = sorted(likely, key=lambda number: -likely[number])
    chosen = [number for number in ranked if likely[number] >= 0.5] or ranked[:1]
    while len(chosen) > 1 and question.problem(tuple(sorted(chosen))):
        chosen.pop()
    numbers = tuple(sorted(chosen))
    return question.check(Answer(numbers, likely, ", ".join(map(str, numbers)), usage))


def with_mass(answer: Answer, given: object) -> Answer:
    """An answer with the label mass that a server sent with it; as it is where that is no probability."""
    mass = _share(given)
    return answer if mass is None else replace(answer, label_mass=mass)


def _share(given: object) -> float | None:
    """``given`` if it is a probability; None otherwise."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1 + _ROUNDING:
        return None
    return min(float(given), 1.0)


def _distribution(given: Mapping[object, object], names: Mapping[str, int]) -> dict[int, float] | None:
    """``given`` as probabilities of the options; None if it is no distribution over them."""
    # An option that is left out has 0, if the others make up the whole.
    told = {number: _share(given.get(name, 0.0)) for name, number in names.items()}
    found = {number: share for number, share in told.items() if share is not None}
    total = math.fsum(found.values())
    if len(found) < len(told) or abs(total - 1) > _ROUNDING:
        return None
    return {number: share / total for number, share in found.items()}
