"""Patterns of sentences about what there is, which of it happens, and how often."""

from __future__ import annotations

from collections.abc import Callable

from formal_llm.authoring import meanings as mean
from formal_llm.authoring.meanings import Group
from formal_llm.authoring.patterns import Asked, Found, Misread, Pattern, counts, formula_of, one_of
from formal_llm.automata import Formula, Limits
from formal_llm.automata.languages.spelling import spelling_key


def _count(low: str, high: str) -> Callable[[Found], Asked]:
    def ask(found: Found) -> Asked:
        least = found.numbers[low] if low else 0
        return [counts(one_of(found, "A"), least, found.numbers[high] if high else None)]

    return ask


def _together(low: str, high: str) -> Callable[[Found], Asked]:
    def ask(found: Found) -> Asked:
        group = tuple(name for each in found.steps["A"] for name in each)
        return [mean.counted(group, found.numbers[low] if low else 0, found.numbers[high] if high else None)]

    return ask


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
    return [mean.not_directly_after(one_of(found, "A"), one_of(found, "A"))]


def _all(found: Found) -> list[Group]:
    return [(name,) for groups in found.steps.values() for group in groups for name in group]


def _alternate(found: Found) -> Formula:
    one, other, *begins = (one_of(found, place) for place in found.steps)
    if begins and spelling_key(begins[0][0]) not in (spelling_key(one[0]), spelling_key(other[0])):
        raise Misread(f"{begins[0][0]} is neither of the two")
    return (
        mean.alternating(other, one)
        if begins and spelling_key(begins[0][0]) == spelling_key(other[0])
        else mean.alternating(one, other)
    )


NUMBER: tuple[Pattern, ...] = (
    # -- what there is ------------------------------------------------------------------------------------------------
    Pattern(
        "the steps",
        (r"the [only ](?:steps|actions|tools|activities) are:? {A}", r"(?:steps|actions|tools|activities): {A}"),
        "The steps are wash, dry and iron.",
        "There are these steps; a sentence that speaks of another one has a slip.",
        lambda _: [],
        lists=True,
    ),
    Pattern(
        "may",
        (
            r"{A} (?:is|are) (?:optional|allowed|possible)[ at any time| freely]",
            r"{A} (?:may|can) <v>(?: freely| at any time)",
            r"{A} (?:may|can) <v>",
            r"{A} <v> freely",
            r"{A} (?:may|can) be repeated",
        ),
        "Iron is optional.",
        "There is such a step; it may happen any number of times.",
        lambda _: [],
    ),
    # -- which --------------------------------------------------------------------------------------------------------
    Pattern(
        "in this order, once each",
        (r"{A} <v> in this order, (?:each )?exactly 1 times[ each]",),
        "Breakfast, lunch and supper in this order, each exactly once.",
        "One after the other, each once; other steps may stand between them.",
        lambda found: [mean.in_order(_parts(found)), *_once_each(found)],
        lists=True,
    ),
    Pattern(
        "in any order, once each",
        (r"{A} <v> in any order, (?:each )?exactly 1 times[ each]",),
        "Measure, cut and glue in any order, each exactly once.",
        "Each once, whichever comes first; other steps may stand between them.",
        _once_each,
        lists=True,
    ),
    Pattern(
        "in this order",
        (r"{A} <v> in (?:this|that) order", r"the order is:? {A}"),
        "Plan, build and test in this order.",
        "No earlier one after a later one; each as often as you like, or never.",
        lambda found: [mean.in_order(_parts(found))],
        lists=True,
    ),
    Pattern(
        "exactly one of",
        (r"[do ](?:exactly|only) one of {A} <v>", r"either {A} <v>, (?:but )?(?:not|never) both"),
        "Exactly one of cash and card.",
        "One of them happens, as often as you like; the others never do.",
        _kinds(1, 1),
        lists=True,
    ),
    Pattern(
        "at most one of",
        (
            r"[do ]at most one of {A} <v>",
            r"(?:not|never) more than one of {A} <v>",
            r"{A} exclude each other",
            r"never {A} both",
        ),
        "At most one of train, plane and bus.",
        "Where one of them happens, the others never do.",
        _kinds(0, 1),
        lists=True,
    ),
    Pattern(
        "at least one of",
        (r"[do ]at least one of {A} <v>", r"[do ]any of {A}"),
        "At least one of email, phone and letter.",
        "One of them happens, or several.",
        _kinds(1, None),
        lists=True,
    ),
    Pattern(
        "go together",
        (r"{A} go together", r"all or none of {A} <v>"),
        "Review and merge go together.",
        "Where one of them happens, all do.",
        lambda found: [mean.requires(a, b) for a in _all(found) for b in _all(found) if a != b],
        lists=True,
    ),
    Pattern(
        "alternate",
        (r"{A} and {B} alternate, (?:starting|beginning|begin|start) with {C}", r"{A} and {B} alternate"),
        "Lock and unlock alternate, starting with lock.",
        "They take turns, and the first one named begins.",
        lambda found: [_alternate(found)],
        lists=True,
    ),
    # -- how often ----------------------------------------------------------------------------------------------------
    Pattern(
        "each step, at most",
        (r"(?:<every> (?:step|tool|action)|everything|all steps) <v> at most {n} times",),
        "Each step at most once.",
        "No step happens more often than that, those of other sentences included.",
        lambda found: [Limits(default=found.numbers["n"])],
    ),
    Pattern(
        "each step, at least",
        (r"(?:<every> (?:step|tool|action)|everything|all steps) <v> at least {n} times",),
        "Each step at least once.",
        "Every step that any sentence names happens so often.",
        lambda _: [Limits()],
    ),
    Pattern(
        "each step, exactly",
        (r"(?:<every> (?:step|tool|action)|everything|all steps) <v> exactly {n} times",),
        "Each step exactly once.",
        "Every step that any sentence names happens so often.",
        lambda found: [Limits(default=found.numbers["n"])],
    ),
    Pattern(
        "length, between",
        (r"(?:the|a|every) plan has [between ]{n} (?:to|and|-) {m} steps",),
        "The plan has between 3 and 5 steps.",
        "Plans of so many steps.",
        lambda found: [mean.length(found.numbers["n"], found.numbers["m"])],
    ),
    Pattern(
        "length, at most",
        (r"(?:the|a|every) plan has at most {n} steps", r"at most {n} steps[ in all| altogether]"),
        "At most 5 steps in all.",
        "Plans of at most so many steps.",
        lambda found: [mean.length(0, found.numbers["n"])],
    ),
    Pattern(
        "length, at least",
        (r"(?:the|a|every) plan has at least {n} steps", r"at least {n} steps[ in all| altogether]"),
        "At least 2 steps in all.",
        "Plans of at least so many steps.",
        lambda found: [mean.length(found.numbers["n"], None)],
    ),
    Pattern(
        "in a row, at most",
        (
            r"never {A} more than {n} times in a row",
            r"{A} never <v> more than {n} times in a row",
            r"{A} <v> at most {n} times in a row",
        ),
        "Retry at most 2 times in a row.",
        "After so many of them one after the other comes another step.",
        formula_of(mean.in_a_row, "A", "n"),
    ),
    Pattern(
        "in a row, never",
        (r"never {A} {n} times in a row", r"{A} never <v> {n} times in a row"),
        "Never retry twice in a row.",
        "So many of them never stand one after the other.",
        lambda found: [
            mean.in_a_row(one_of(found, "A"), found.numbers["n"] - 1)
            if found.numbers["n"] > 1
            else mean.never(one_of(found, "A"))
        ],
    ),
    Pattern(
        "no two in a row",
        (r"no (?P<A>(?:two|2) .+?) in a row", r"never repeat {A} directly"),
        "No two retries in a row.",
        "It never stands directly after itself.",
        _no_two,
    ),
    Pattern(
        "together, at most",
        (r"{A} together <v> at most {n} times", r"{A} <v> at most {n} times (?:together|in all|in total)"),
        "Walk and swim together at most 3 times.",
        "The uses of all of them are counted together.",
        _together("", "n"),
        lists=True,
    ),
    Pattern(
        "together, at least",
        (r"{A} together <v> at least {n} times", r"{A} <v> at least {n} times (?:together|in all|in total)"),
        "Walk and swim together at least 3 times.",
        "The uses of all of them are counted together.",
        _together("n", ""),
        lists=True,
    ),
    Pattern(
        "together, exactly",
        (r"{A} together <v> exactly {n} times", r"{A} <v> exactly {n} times (?:together|in all|in total)"),
        "Walk and swim together exactly 3 times.",
        "The uses of all of them are counted together.",
        _together("n", "n"),
        lists=True,
    ),
    Pattern(
        "needs so many first",
        (
            r"{B} <v> only after {A} at least {n} times",
            r"{B} (?:needs|requires) at least {n} {A} first",
            r"{B} <v> only after at least {n} {A}",
        ),
        "Sign only after review at least 2 times.",
        "Before the first of the one there are so many of the other.",
        formula_of(mean.preceded, "AB", "n"),
    ),
    Pattern(
        "between so and so many times",
        (
            r"{A} <v>[ each] [between ]{n} (?:to|and|or|-) {m} times",
            r"{A} <v>[ each] at least {n}(?: times)?,? (?:and|but) at most {m} times",
        ),
        "Upgrade 1 to 2 times.",
        "At least the one number, at most the other.",
        _count("n", "m"),
    ),
    Pattern(
        "at most",
        (
            r"{A} <v>[ each] at most {n} times",
            r"{A} never <v> more than {n} times",
        ),
        "Iron at most 2 times.",
        "Not more often than that.",
        _count("", "n"),
    ),
    Pattern(
        "never so often",
        (r"never {A} {n} times", r"{A} never <v> {n} times"),
        "Never pay twice.",
        "Less often than that.",
        lambda found: [counts(one_of(found, "A"), 0, max(found.numbers["n"] - 1, 0))],
    ),
    Pattern(
        "at least",
        (r"{A} <v>[ each] at least {n} times",),
        "Deploy at least once.",
        "Not less often than that.",
        _count("n", ""),
    ),
    Pattern(
        "exactly",
        (
            r"{A} <v>[ each] exactly {n} times",
            r"{A} <must>[ each] {n} times",
        ),
        "Open exactly once.",
        "Neither more nor less often than that.",
        _count("n", "n"),
    ),
)
