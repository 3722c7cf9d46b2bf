"""The sentences about steps that are read without a model: some fifty patterns, each with an example and its meaning.

A pattern is one or more forms of a sentence after :func:`~formal_llm.authoring.sentences.plain`. In a form, ``{A}``
is a phrase that names steps, ``{n}`` a number, ``<v>`` a verb that adds nothing ("happens", "must be done"), ``<must>``
the same without "may", and what stands in brackets may be left out. A form fits only where every phrase is a name
(:mod:`formal_llm.authoring.names`), so a longer sentence than was thought of is not understood, rather than half of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from formal_llm.authoring import meanings as mean
from formal_llm.authoring.clauses import read_steps
from formal_llm.authoring.meanings import Group
from formal_llm.authoring.names import NoName
from formal_llm.automata import Formula, Limits
from formal_llm.automata.languages.spelling import spelling_key

#: What a sentence asks: formulas, and limits; both of none for a sentence that only names steps.
Asked = Sequence[Formula | Limits]

_NUMBER = r"(?:\d{1,6}|one|two|three|four|five|six|seven|eight|nine|ten)"
_NUMBERS = {
    word: number
    for number, word in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    )
}
_VERB = (
    r"(?: (?:may|must|can|should|shall|will|only))*"
    r"(?: (?:be|is|are)(?: (?:done|used|called|run|performed|made|taken|executed|needed))?"
    r"|(?: (?:happens?|occurs?|comes?|stands?)))?"
)
#: The same where "may" and "can" would say something else: "may happen before" is no rule.
_MUST = _VERB.replace("may|must|can|", "must|")
_EVERY = r"(?:(?:every|each|any|all|all the) )?"


class Misread(ValueError):
    """A sentence that fits a pattern and makes no sense there; says why."""


@dataclass(frozen=True)
class Found:
    """What stands in the places of a pattern: steps by place, and numbers."""

    steps: Mapping[str, tuple[Group, ...]]
    numbers: Mapping[str, int]


@dataclass(frozen=True)
class Pattern:
    """A pattern of sentences.

    Attributes:
        name: what it is called.
        forms: how it is written.
        example: a sentence.
        meaning: what that sentence means, in more words.
        ask: what it asks of plans.
        lists: whether ``{A}`` is a list of steps to be taken together, and not one thing said of each.
    """

    name: str
    forms: tuple[str, ...]
    example: str
    meaning: str
    ask: Callable[[Found], Asked]
    lists: bool = False

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        # Where there is a comma it parts the phrases, and no shorter phrase does.
        forms = [variant for form in self.forms for variant in dict.fromkeys((form.replace(",? ", ", "), form))]
        return tuple(map(_compile, forms))

    def read(self, sentence: str) -> Found | None:
        """What stands in the places of the pattern; None where the sentence has another form."""
        for form in self._compiled:
            for found in _matches(form, sentence):
                return found
        return None

    def asked(self, found: Found) -> Asked:
        """What a sentence asks of plans.

        Raises:
            Misread: it speaks of a step and itself, or of numbers that contradict each other.
        """
        numbers = found.numbers
        if "m" in numbers and numbers["n"] > numbers["m"]:
            raise Misread(f"at least {numbers['n']} and at most {numbers['m']} times is impossible")
        if self.lists:
            return self.ask(found)
        asked: list[Formula | Limits] = []
        for row in product(*found.steps.values()):
            keys = [{spelling_key(name) for name in group} for group in row]
            if any(a & b for number, a in enumerate(keys) for b in keys[number + 1 :]):
                raise Misread("the sentence speaks of a step and of itself")
            asked += self.ask(Found({place: (group,) for place, group in zip(found.steps, row, strict=True)}, numbers))
        return asked


def _compile(form: str) -> re.Pattern[str]:
    text = re.sub(r"\[([^\]]*)\]", r"(?:\1)?", form)
    text = text.replace(" <v>", _VERB).replace(" <must>", _MUST).replace("<every> ", _EVERY)
    text = re.sub(r"\{([A-Z])\}", r"(?P<\1>.+?)", text)
    text = re.sub(r"\{([nm])\}", lambda found: f"(?P<{found[1]}>{_NUMBER})", text)
    return re.compile(text)


def _matches(form: re.Pattern[str], sentence: str) -> Iterator[Found]:
    match = form.fullmatch(sentence)
    if match is None:
        return
    steps, numbers = {}, {}
    for place, text in match.groupdict().items():
        if place.islower():
            numbers[place] = _NUMBERS[text] if text in _NUMBERS else int(text)
            continue
        try:
            steps[place] = read_steps(text)
        except NoName:
            return
    yield Found(steps, numbers)


def one_of(found: Found, place: str) -> Group:
    """The one step, or the steps of which any will do, at a place."""
    return found.steps[place][0]


def formula_of(make: Callable[..., Formula], places: str, numbers: str = "") -> Callable[[Found], Asked]:
    """A formula of the steps at these places, in this order, and of these numbers."""
    return lambda found: [
        make(*(one_of(found, place) for place in places), *(found.numbers[number] for number in numbers))
    ]


def counts(group: Group, least: int, most: int | None) -> Formula | Limits:
    """How often a step happens: a limit, which planners know best; of several together a formula."""
    if len(group) > 1:
        return mean.counted(group, least, most)
    name = group[0]
    return Limits({name: most} if most is not None else {}, {name: least} if least else {})
