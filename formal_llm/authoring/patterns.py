"""The sentences about steps that are read without a model: forty patterns, each with an example and its meaning.

A pattern is one or more forms of a sentence after :func:`~formal_llm.authoring.sentences.plain`. In a form, ``{A}`` is a phrase
that names steps, ``{n}`` a number, ``<v>`` a verb that adds nothing ("happens", "must be done"), and what stands in
brackets may be left out. A form fits only where every phrase is a name (:mod:`formal_llm.authoring.names`), so a longer
sentence than was thought of is not understood, rather than half of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from formal_llm.authoring import meanings as mean
from formal_llm.authoring.meanings import Group
from formal_llm.authoring.names import NoName, stem, steps_of
from formal_llm.automata import Formula, Limits

#: What a sentence asks: formulas, and limits; both of none for a sentence that only names steps.
Asked = Sequence[Formula | Limits]

_NUMBER = r"(?:\d{1,6}|one|two|three|four|five|six|seven|eight|nine|ten)"
_NUMBERS = {word: number for number, word in enumerate("zero one two three four five six seven eight nine ten".split())}
_VERB = (
    r"(?: (?:may|must|can|should|shall|will|only))*"
    r"(?: (?:be|is|are)(?: (?:done|used|called|run|performed|made|taken|executed|needed))?"
    r"|(?: (?:happens?|occurs?|comes?|stands?)))?"
)
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
        return tuple(map(_compile, self.forms))

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
            stems = [{stem(name) for name in group} for group in row]
            if any(a & b for number, a in enumerate(stems) for b in stems[number + 1 :]):
                raise Misread("the sentence speaks of a step and of itself")
            asked += self.ask(Found({place: (group,) for place, group in zip(found.steps, row, strict=True)}, numbers))
        return asked


def _compile(form: str) -> re.Pattern[str]:
    text = re.sub(r"\[([^\]]*)\]", r"(?:\1)?", form)
    text = text.replace(" <v>", _VERB).replace("<every> ", _EVERY)
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
            steps[place] = steps_of(text)
        except NoName:
            return
    yield Found(steps, numbers)


def _counts(group: Group, least: int, most: int | None) -> Formula | Limits:
    """How often a step happens: a limit, which planners know best; of several together a formula."""
    if len(group) > 1:
        return mean.counted(group, least, most)
    name = group[0]
    return Limits({name: most} if most is not None else {}, {name: least} if least else {})


def _count(low: str, high: str) -> Callable[[Found], Asked]:
    def ask(found: Found) -> Asked:
        least = found.numbers[low] if low else 0
        return [_counts(_one(found, "A"), least, found.numbers[high] if high else None)]

    return ask


def _together(low: str, high: str) -> Callable[[Found], Asked]:
    def ask(found: Found) -> Asked:
        group = tuple(name for each in found.steps["A"] for name in each)
        return [mean.counted(group, found.numbers[low] if low else 0, found.numbers[high] if high else None)]

    return ask


def _one(found: Found, place: str) -> Group:
    return found.steps[place][0]


def _of(make: Callable[..., Formula], places: str, numbers: str = "") -> Callable[[Found], Asked]:
    """A formula of the steps at these places, in this order, and of these numbers."""
    return lambda found: [
        make(*(_one(found, place) for place in places), *(found.numbers[number] for number in numbers))
    ]


def _parts(found: Found) -> tuple[Group, ...]:
    """The steps of a list, each alone, whether ``and`` or ``or`` stands before the last."""
    groups = found.steps["A"]
    parts = tuple((name,) for group in groups for name in group)
    if len(parts) < 2:
        raise Misread("a list of two steps or more is needed here")
    return parts


def _kinds(least: int, most: int | None) -> Callable[[Found], Asked]:
    return lambda found: [mean.of_kinds(_parts(found), least, most)]


def _once_each(found: Found) -> list[Formula | Limits]:
    names = [name for group in _parts(found) for name in group]
    return [Limits(dict.fromkeys(names, 1), dict.fromkeys(names, 1))]


def _no_two(found: Found) -> Asked:
    return [mean.not_directly_after(_one(found, "A"), _one(found, "A"))]


PATTERNS: tuple[Pattern, ...] = (
    # -- what there is ------------------------------------------------------------------------------------------------
    Pattern("the steps", (r"the [only ](?:steps|actions|tools|activities) are:? {A}", r"(?:steps|actions|tools|activities): {A}"),
            "The steps are wash, dry and iron.", "There are these steps; a sentence that speaks of another one has a slip.",
            lambda found: [], lists=True),
    Pattern("may", (r"{A} (?:is|are) (?:optional|allowed|possible)[ at any time]", r"{A} (?:may|can) <v>", r"{A} <v> freely", r"{A} (?:may|can) be repeated"),
            "Iron is optional.", "There is such a step; it may happen any number of times.", lambda found: []),
    # -- which --------------------------------------------------------------------------------------------------------
    Pattern("in this order, once each", (r"{A} <v> in this order, (?:each )?exactly 1 times[ each]",), "Breakfast, lunch and supper in this order, each exactly once.",
            "One after the other, each once; other steps may stand between them.", lambda found: [mean.in_order(_parts(found)), *_once_each(found)], lists=True),
    Pattern("in any order, once each", (r"{A} <v> in any order, (?:each )?exactly 1 times[ each]",), "Measure, cut and glue in any order, each exactly once.",
            "Each once, whichever comes first; other steps may stand between them.", _once_each, lists=True),
    Pattern("in this order", (r"{A} <v> in (?:this|that) order", r"the order is:? {A}"), "Plan, build and test in this order.",
            "No earlier one after a later one; each as often as you like, or never.", lambda found: [mean.in_order(_parts(found))], lists=True),
    Pattern("exactly one of", (r"[do ](?:exactly|only) one of {A} <v>", r"either {A} <v>, (?:but )?(?:not|never) both"), "Exactly one of cash and card.",
            "One of them happens, as often as you like; the others never do.", _kinds(1, 1), lists=True),
    Pattern("at most one of", (r"[do ]at most one of {A} <v>", r"never both {A}", r"(?:not|never) more than one of {A} <v>", r"{A} exclude each other", r"never {A} both"), "At most one of train, plane and bus.",
            "Where one of them happens, the others never do.", _kinds(0, 1), lists=True),
    Pattern("at least one of", (r"[do ]at least one of {A} <v>", r"[do ]any of {A}"), "At least one of email, phone and letter.",
            "One of them happens, or several.", _kinds(1, None), lists=True),
    Pattern("go together", (r"{A} go together", r"all or none of {A} <v>", r"{A} if and only if {B}"), "Review and merge go together.",
            "Where one of them happens, all do.",
            lambda found: [mean.requires(a, b) for a in _all(found) for b in _all(found) if a != b], lists=True),
    Pattern("alternate", (r"{A} and {B} alternate, (?:starting|beginning|begin|start) with {C}", r"{A} and {B} alternate"), "Lock and unlock alternate, starting with lock.",
            "They take turns, and the first one named begins.", lambda found: [_alternate(found)], lists=True),
    # -- how often ----------------------------------------------------------------------------------------------------
    Pattern("each step, at most", (r"(?:<every> step|everything|all steps) <v> at most {n} times",),
            "Each step at most once.", "No step happens more often than that, those of other sentences included.",
            lambda found: [Limits(default=found.numbers["n"])]),
    Pattern("each step, at least", (r"(?:<every> step|everything|all steps) <v> at least {n} times",), "Each step at least once.",
            "Every step that any sentence names happens so often.", lambda found: [Limits()]),
    Pattern("each step, exactly", (r"(?:<every> step|everything|all steps) <v> exactly {n} times",), "Each step exactly once.",
            "Every step that any sentence names happens so often.", lambda found: [Limits(default=found.numbers["n"])]),
    Pattern("length, between", (r"(?:the|a|every) plan has [between ]{n} (?:to|and|-) {m} steps",), "The plan has between 3 and 5 steps.",
            "Plans of so many steps.", lambda found: [mean.length(found.numbers["n"], found.numbers["m"])]),
    Pattern("length, at most", (r"(?:the|a|every) plan has at most {n} steps", r"at most {n} steps[ in all| altogether]"), "At most 5 steps in all.",
            "Plans of at most so many steps.", lambda found: [mean.length(0, found.numbers["n"])]),
    Pattern("length, at least", (r"(?:the|a|every) plan has at least {n} steps", r"at least {n} steps[ in all| altogether]"), "At least 2 steps in all.",
            "Plans of at least so many steps.", lambda found: [mean.length(found.numbers["n"], None)]),
    Pattern("in a row, at most", (r"never {A} more than {n} times in a row", r"{A} never <v> more than {n} times in a row", r"{A} <v> at most {n} times in a row"),
            "Retry at most 2 times in a row.", "After so many of them one after the other comes another step.", _of(mean.in_a_row, "A", "n")),
    Pattern("in a row, never", (r"never {A} {n} times in a row", r"{A} never <v> {n} times in a row"), "Never retry twice in a row.",
            "So many of them never stand one after the other.",
            lambda found: [mean.in_a_row(_one(found, "A"), found.numbers["n"] - 1) if found.numbers["n"] > 1 else mean.never(_one(found, "A"))]),
    Pattern("no two in a row", (r"no (?P<A>(?:two|2) .+?) in a row", r"never (?P<A>(?:two|2) .+?) in a row", r"never repeat {A} directly"), "No two retries in a row.",
            "It never stands directly after itself.", _no_two),
    Pattern("together, at most", (r"{A} together <v> at most {n} times", r"{A} <v> at most {n} times (?:together|in all|in total)"), "Walk and swim together at most 3 times.",
            "The uses of all of them are counted together.", _together("", "n"), lists=True),
    Pattern("together, at least", (r"{A} together <v> at least {n} times", r"{A} <v> at least {n} times (?:together|in all|in total)"), "Walk and swim together at least 3 times.",
            "The uses of all of them are counted together.", _together("n", ""), lists=True),
    Pattern("together, exactly", (r"{A} together <v> exactly {n} times", r"{A} <v> exactly {n} times (?:together|in all|in total)"), "Walk and swim together exactly 3 times.",
            "The uses of all of them are counted together.", _together("n", "n"), lists=True),
    Pattern("needs so many first", (r"{B} <v> only after {A} at least {n} times", r"{B} (?:needs|requires) at least {n} {A} first", r"{B} <v> only after at least {n} {A}"),
            "Sign only after review at least 2 times.", "Before the first of the one there are so many of the other.", _of(mean.preceded, "AB", "n")),
    Pattern("between so and so many times", (r"{A} <v>[ each] [between ]{n} (?:to|and|or|-) {m} times", r"{A} <v>[ each] at least {n} and at most {m} times"), "Upgrade 1 to 2 times.",
            "At least the one number, at most the other.", _count("n", "m")),
    Pattern("at most", (r"{A} <v>[ each] at most {n} times", r"at most {n} times {A}", r"never {A} more than {n} times", r"{A} never <v> more than {n} times", r"at most {n} {A}[ is allowed| happens]"),
            "Iron at most 2 times.", "Not more often than that.", _count("", "n")),
    Pattern("at least", (r"{A} <v>[ each] at least {n} times", r"at least {n} times {A}", r"at least {n} {A}[ is needed| happens]"), "Deploy at least once.",
            "Not less often than that.", _count("n", "")),
    Pattern("exactly", (r"{A} <v>[ each] exactly {n} times", r"{A} <v>[ each] {n} times", r"exactly {n} times {A}", r"exactly {n} {A}[ happens]"), "Open exactly once.",
            "Neither more nor less often than that.", _count("n", "n")),
    # -- where --------------------------------------------------------------------------------------------------------
    Pattern("begin and end with", (r"begin with {A} and end with {B}",), "Start with open and end with close.", "The first step and the last.",
            lambda found: [mean.begins(_one(found, "A")), mean.ends(_one(found, "B"))]),
    Pattern("begin with", (r"begin with {A}", r"{A} is the first step", r"the first step is {A}", r"{A} comes first"), "Begin with plan.", "It is the first step, and there is one.", _of(mean.begins, "A")),
    Pattern("end with", (r"end with {A}", r"{A} is the last step", r"the last step is {A}", r"{A} comes last"), "End with a receipt.", "It is the last step, and there is one.", _of(mean.ends, "A")),
    Pattern("nothing after", (r"nothing(?: else)? <v> after {A}", r"after {A},? nothing(?: else)? <v>", r"after {A},? never anything[ else]"), "After cancel nothing else happens.",
            "Where it stands, it is the last step.", _of(mean.nothing_after, "A")),
    Pattern("nothing before", (r"nothing(?: else)? <v> before {A}", r"before {A},? nothing(?: else)? <v>"), "Nothing happens before login.", "A plan with any step begins with it.", _of(mean.nothing_before, "A")),
    # -- neighbours ---------------------------------------------------------------------------------------------------
    Pattern("never directly after", (r"never {A} directly after {B}", r"no {A} directly after {B}", r"{A} never <v> directly after {B}", r"{A} never directly follows? {B}", r"{A} directly after {B} is forbidden",
             r"never {B} directly before {A}", r"{B} never directly followed by {A}"), "Never eat directly after swimming.", "It is not the next step.", _of(mean.not_directly_after, "AB")),
    Pattern("directly followed", (r"<every> {A} (?:is|must be) directly followed by {B}", r"directly after <every> {A},? [there is |must |comes |must come ]{B}[ must happen| happens| follows]", r"{B} must directly follow {A}",
             r"if {A} happens,? (?:then )?{B} must happen directly[ after]", r"{B} must <v> directly after <every> {A}"), "Every withdrawal is immediately followed by a log.", "The next step is that.", _of(mean.directly_answered, "AB")),
    Pattern("directly preceded", (r"<every> {A} (?:is|must be) directly preceded by {B}", r"{A} <v> only directly after {B}", r"{B} <v> directly before <every> {A}", r"directly before <every> {A},? [there is |must |comes |must come ]{B}[ must happen| happens]"),
            "Backup immediately before every upgrade.", "The step before it is that.", _of(mean.directly_preceded, "AB")),
    Pattern("at least so many steps between", (r"at least {n} (?:other )?steps [must ]?(?:be |stand )?between {A} and {B}", r"between {A} and {B},? (?:there are |are )?at least {n} (?:other )?steps"), "At least 2 steps between eat and swim.",
            "From each of the one to each later one of the other.", _of(mean.apart, "AB", "n")),
    Pattern("within so many steps", (r"{B} <v> within {n} steps after <every> {A}", r"within {n} steps after <every> {A},? [there is |must |comes ]{B}[ must happen| happens]", r"<every> {A} is followed by {B} within {n} steps"), "Reply within 2 steps after every question.",
            "It is one of the next so many steps.", _of(mean.answered_within, "AB", "n")),
    # -- far apart ----------------------------------------------------------------------------------------------------
    Pattern("between any two", (r"between (?:any |every )?(?P<A>(?:two|2) .+?),? [there is |must be |there must be |comes ]{B}[ happens| must happen]", r"{B} <v> between (?:any |every )?(?P<A>(?:two|2) .+?)"), "Between any two payments there is a receipt.",
            "The one does not come again before the other came.", _of(mean.between_two, "AB")),
    Pattern("never between", (r"never {A} between {B} and {C}", r"no {A} between {B} and {C}", r"{A} never <v> between {B} and {C}"), "Never edit between lock and unlock.", "Not after the one until the other came.", _of(mean.never_between, "ABC")),
    Pattern("only between", (r"{A} <v> only between {B} and {C}",), "Read only between open and close.", "Only where the one came, and the other not since.", _of(mean.only_between, "ABC")),
    Pattern("only that after", (r"after {B},? only {A} <v>", r"only {A} <v> after {B}"), "After close only archive may happen.", "Nothing but that, from there to the end.", _of(mean.only_after, "AB")),
    Pattern("never after", (r"never {A} after {B}", r"no {A} after {B}", r"{A} never <v> after {B}", r"{A} never follows? {B}", r"{A} after {B} is forbidden", r"after {B},? never {A}", r"after {B},? no {A}", r"after {B},? {A} (?:never <v>|is forbidden)"),
            "Never deploy after freeze.", "Once the other has happened, it does not happen any more.", _of(mean.not_after, "AB")),
    Pattern("all before", (r"(?:every|all|each|all the) {A} <v> before <every> {B}",), "Every question before every answer.", "None of the one after any of the other.", _of(mean.not_after, "AB")),
    Pattern("before", (r"{A} <v> before <every> {B}", r"{B} <v> only after {A}", r"no {B} before {A}", r"never {B} before {A}", r"{B} never <v> before {A}", r"only after {A} (?:may|can|must) {B} <v>", r"<every> {B} (?:is|must be) preceded by {A}",
             r"{B} (?:needs|requires) {A} first", r"before <every> {B},? [there is |must |there must be ]{A}[ must happen| happens]", r"if {B} happens,? (?:then )?{A} must (?:have happened|happen) (?:before|first)"),
            "Wash before dry.", "There is one of the first before any of the second; not every one of them needs its own.", _of(mean.preceded, "AB")),
    Pattern("followed", (r"<every> {A} (?:is|must be) (?:later )?followed by {B}[ later]", r"after <every> {A},? (?:there is |there must be |must come ){B}[ later]", r"after <every> {A},? {B} must (?:happen|follow|come|be done)[ later]",
             r"{B} must follow <every> {A}", r"{B} must <v> after <every> {A}", r"if {A} happens,? (?:then )?{B} must (?:happen later|follow|happen afterwards|later happen|happen after)"), "Every login is followed by a logout.",
            "There is one later on; not every one of them needs its own.", _of(mean.answered, "AB")),
    # -- whether ------------------------------------------------------------------------------------------------------
    Pattern("excludes", (r"if {A} happens,? (?:then )?never {B}", r"if {A} happens,? (?:then )?{B} (?:never <v>|is forbidden)", r"{A} excludes {B}", r"never {A} with {B}"), "If cash happens, card must not happen.",
            "Not both in one plan.", lambda found: [mean.of_kinds([_one(found, "A"), _one(found, "B")], 0, 1)]),
    Pattern("requires", (r"{A} requires {B}", r"(?:never|no) {A} without {B}", r"{A} never <v> without {B}", r"if {A} happens,? (?:then )?{B} must(?: also)? happen[ too]"), "Pay requires pick.",
            "Where the one happens, the other does too, before it or after it.", _of(mean.requires, "AB")),
    Pattern("must", (r"{A} must <v>", r"{A} (?:is|are) (?:required|needed|necessary|mandatory|a must)", r"there must be {A}", r"always {A}"), "Hotel must happen.", "At least once.",
            lambda found: [_counts(_one(found, "A"), 1, None)]),
    Pattern("never", (r"never {A}", r"no {A}", r"{A} never <v>", r"{A} is forbidden"), "Never skip the review.", "Not at all.", lambda found: [_counts(_one(found, "A"), 0, 0)]),
)  # fmt: skip


def _all(found: Found) -> list[Group]:
    return [(name,) for groups in found.steps.values() for group in groups for name in group]


def _alternate(found: Found) -> Formula:
    one, other, *begins = (_one(found, place) for place in found.steps)
    if begins and stem(begins[0][0]) not in (stem(one[0]), stem(other[0])):
        raise Misread(f"{begins[0][0]} is neither of the two")
    return mean.alternating(other, one) if begins and stem(begins[0][0]) == stem(other[0]) else mean.alternating(one, other)
