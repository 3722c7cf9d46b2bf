"""The kinds of sentences about steps that are read without a model, and their requirements on plans.

``patterns.toml`` has their names, examples, meanings and forms, which apply to sentences processed by
:func:`~formal_llm.authoring.english.normalize_text`. A form matches only if every phrase is a name
(:mod:`formal_llm.authoring.names`), so an unforeseen longer sentence is not understood, instead of only half of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from formal_llm.authored.tables import parse_toml
from formal_llm.authoring import meanings as mean
from formal_llm.authoring.clauses import read_steps
from formal_llm.authoring.meanings import Group
from formal_llm.authoring.names import NoName
from formal_llm.authoring.verbs import read_words
from formal_llm.authoring.word_forms import spelling_key
from formal_llm.automata import Formula, Limits

#: The requirements of a sentence: formulas and limits; neither for a sentence that only names steps.
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
#: The same without "may" and "can", which would change the meaning: "may happen before" is no rule.
_MUST = _VERB.replace("may|must|can|", "must|")
_EVERY = r"(?:(?:every|each|any|all|all the) )?"


class Misread(ValueError):
    """Raised for a sentence that matches a pattern but makes no sense; the message is the reason."""


@dataclass(frozen=True)
class Found:
    """A match of a pattern: the steps by place, and the numbers."""

    steps: Mapping[str, tuple[Group, ...]]
    numbers: Mapping[str, int]


@dataclass(frozen=True)
class Pattern:
    """A pattern of sentences.

    Attributes:
        meaning: the meaning of the example, in more words.
        ask: returns its requirements on plans.
        lists: whether ``{A}`` is a list of steps to be taken together, instead of a requirement on each.
    """

    name: str
    forms: Sequence[str]
    example: str
    meaning: str
    ask: Callable[[Found], Asked]
    lists: bool = False

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], ...]:
        # If there is a comma, it separates the phrases, and no shorter phrase does.
        forms = [variant for form in self.forms for variant in dict.fromkeys((form.replace(",? ", ", "), form))]
        return tuple(map(_compile_form, forms))

    def match_sentence(self, sentence: str) -> Found | None:
        """Match a sentence; return None if it has another form."""
        for form in self._compiled:
            for found in _match_form(form, sentence):
                return found
        return None

    def constrain_plans(self, found: Found) -> Asked:
        """Return the requirements of a matched sentence.

        Raises:
            Misread: the sentence relates a step to itself, or its numbers contradict each other.
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


def _compile_form(form: str) -> re.Pattern[str]:
    text = re.sub(r"\[([^\]]*)\]", r"(?:\1)?", form)
    text = text.replace(" <v>", _VERB).replace(" <must>", _MUST).replace("<every> ", _EVERY)
    text = re.sub(r"\{([A-Z])\}", r"(?P<\1>.+?)", text)
    text = re.sub(r"\{([nm])\}", lambda found: f"(?P<{found[1]}>{_NUMBER})", text)
    return re.compile(text)


def _match_form(form: re.Pattern[str], sentence: str) -> Iterator[Found]:
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
    """Return the step at a place, or the alternative steps there."""
    return found.steps[place][0]


def formula_of(make: Callable[..., Formula], places: str, numbers: str = "") -> Callable[[Found], Asked]:
    """Return a function that applies a formula to the steps at these places, in order, and these numbers."""
    return lambda found: [
        make(*(one_of(found, place) for place in places), *(found.numbers[number] for number in numbers))
    ]


def limit_count(group: Group, least: int, most: int | None) -> Formula | Limits:
    """Bound the occurrences of a step: a limit, which planners handle best, or a formula for alternative steps."""
    if len(group) > 1:
        return mean.bound_count(group, least, most)
    name = group[0]
    return Limits({name: most} if most is not None else {}, {name: least} if least else {})


# -- the requirements of each kind -------------------------------------------------------------------------------------


def _limit_each(low: str, high: str) -> Callable[[Found], Asked]:
    def ask_count(found: Found) -> Asked:
        least = found.numbers[low] if low else 0
        return [limit_count(one_of(found, "A"), least, found.numbers[high] if high else None)]

    return ask_count


def _limit_together(low: str, high: str) -> Callable[[Found], Asked]:
    def ask_count(found: Found) -> Asked:
        group = tuple(name for each in found.steps["A"] for name in each)
        return [mean.bound_count(group, found.numbers[low] if low else 0, found.numbers[high] if high else None)]

    return ask_count


def _list_parts(found: Found) -> tuple[Group, ...]:
    """Return the steps of a list, each alone, whether ``and`` or ``or`` precedes the last."""
    groups = found.steps["A"]
    parts = tuple((name,) for group in groups for name in group)
    if len(parts) < 2:
        raise Misread("a list of two steps or more is needed here")
    return parts


def _limit_kinds(least: int, most: int | None) -> Callable[[Found], Asked]:
    return lambda found: [mean.of_kinds(_list_parts(found), least, most)]


def _once_each(found: Found) -> list[Formula | Limits]:
    names = [name for group in _list_parts(found) for name in group]
    return [Limits(dict.fromkeys(names, 1), dict.fromkeys(names, 1))]


def _no_two(found: Found) -> Asked:
    return [mean.not_directly_after(one_of(found, "A"), one_of(found, "A"))]


def _list_groups(found: Found) -> list[Group]:
    return [(name,) for groups in found.steps.values() for group in groups for name in group]


def _build_alternation(found: Found) -> Formula:
    one, other, *begins = (one_of(found, place) for place in found.steps)
    if begins and spelling_key(begins[0][0]) not in (spelling_key(one[0]), spelling_key(other[0])):
        raise Misread(f"{begins[0][0]} is neither of the two")
    return (
        mean.require_alternation(other, one)
        if begins and spelling_key(begins[0][0]) == spelling_key(other[0])
        else mean.require_alternation(one, other)
    )


def _forbid_step(found: Found) -> Asked:
    if len(found.steps["A"]) > 1:
        raise Misread("it may mean each of them, or not both; write: never a or b, or: never both a and b")
    return [limit_count(one_of(found, "A"), 0, 0)]


#: The requirements of each kind.
_ASK: dict[str, Callable[[Found], Asked]] = {
    "the steps": lambda _: [],
    "may": lambda _: [],
    "in this order, once each": lambda found: [mean.in_order(_list_parts(found)), *_once_each(found)],
    "in any order, once each": _once_each,
    "in this order": lambda found: [mean.in_order(_list_parts(found))],
    "exactly one of": _limit_kinds(1, 1),
    "at most one of": _limit_kinds(0, 1),
    "at least one of": _limit_kinds(1, None),
    "go together": lambda found: [
        mean.require_with(a, b) for a in _list_groups(found) for b in _list_groups(found) if a != b
    ],
    "alternate": lambda found: [_build_alternation(found)],
    "each step, at most": lambda found: [Limits(default=found.numbers["n"])],
    "each step, at least": lambda _: [Limits()],
    "each step, exactly": lambda found: [Limits(default=found.numbers["n"])],
    "length, between": lambda found: [mean.bound_length(found.numbers["n"], found.numbers["m"])],
    "length, at most": lambda found: [mean.bound_length(0, found.numbers["n"])],
    "length, at least": lambda found: [mean.bound_length(found.numbers["n"], None)],
    "in a row, at most": formula_of(mean.in_a_row, "A", "n"),
    "in a row, never": lambda found: [
        mean.in_a_row(one_of(found, "A"), found.numbers["n"] - 1)
        if found.numbers["n"] > 1
        else mean.forbid_step(one_of(found, "A"))
    ],
    "no two in a row": _no_two,
    "together, at most": _limit_together("", "n"),
    "together, at least": _limit_together("n", ""),
    "together, exactly": _limit_together("n", "n"),
    "needs n first": formula_of(mean.require_before, "AB", "n"),
    "between n and m times": _limit_each("n", "m"),
    "at most": _limit_each("", "n"),
    "never n times": lambda found: [limit_count(one_of(found, "A"), 0, max(found.numbers["n"] - 1, 0))],
    "at least": _limit_each("n", ""),
    "exactly": _limit_each("n", "n"),
    "begin and end with": lambda found: [mean.require_first(one_of(found, "A")), mean.require_last(one_of(found, "B"))],
    "begin with": formula_of(mean.require_first, "A"),
    "end with": formula_of(mean.require_last, "A"),
    "nothing after": formula_of(mean.nothing_after, "A"),
    "nothing before": formula_of(mean.nothing_before, "A"),
    "never directly after": formula_of(mean.not_directly_after, "AB"),
    "directly followed": formula_of(mean.directly_answered, "AB"),
    "directly preceded": formula_of(mean.directly_preceded, "AB"),
    "at least n steps between": formula_of(mean.require_distance, "AB", "n"),
    "within n steps": formula_of(mean.answered_within, "AB", "n"),
    "between any two": formula_of(mean.between_two, "AB"),
    "between": formula_of(mean.require_between, "ABC"),
    "never between": formula_of(mean.never_between, "ABC"),
    "only between": formula_of(mean.only_between, "ABC"),
    "only that after": formula_of(mean.only_after, "AB"),
    "never after": formula_of(mean.not_after, "AB"),
    "all before": formula_of(mean.not_after, "AB"),
    "before": formula_of(mean.require_before, "AB"),
    "followed": formula_of(mean.require_response, "AB"),
    "followed, unless": lambda found: [
        mean.except_with(mean.require_response(one_of(found, "A"), one_of(found, "B")), one_of(found, "C"))
    ],
    "must, unless": lambda found: [mean.except_with(mean.require_step(one_of(found, "A")), one_of(found, "B"))],
    "excludes": lambda found: [mean.of_kinds([one_of(found, "A"), one_of(found, "B")], 0, 1)],
    "requires": formula_of(mean.require_with, "AB"),
    "must": lambda found: [limit_count(one_of(found, "A"), 1, None)],
    "never": _forbid_step,
}


_TABLE = parse_toml(read_words("patterns.toml"))
#: The kinds of sentences, in the order in which their forms are tried.
PATTERNS = tuple(Pattern(**row, ask=_ASK[row["name"]]) for row in _TABLE["pattern"])
#: Examples of sentences that describe a procedure, and their meanings.
PROCEDURES = tuple((row["example"], row["meaning"]) for row in _TABLE["procedure"])
