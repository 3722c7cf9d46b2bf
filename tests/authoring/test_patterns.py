"""Each pattern: its example is read as itself, and means what an independent reading of its sentence says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pytest

from formal_llm.authoring.english import read_english, split_sentences
from formal_llm.authoring.patterns import PATTERNS, Misread, Pattern
from formal_llm.errors import NotationError, NotUnderstood

Plan = Sequence[str]
Says = Callable[[Plan], bool]


def before(plan: Plan, at: int) -> Plan:
    return plan[:at]


def each(plan: Plan, name: str, says: Callable[[Plan, Plan], bool]) -> bool:
    """Whether at every use of a step something holds of what stands before it and behind it."""
    return all(says(plan[:at], plan[at + 1 :]) for at, one in enumerate(plan) if one == name)


def open_at(past: Plan, opening: str, closing: str) -> bool:
    last = [one for one in past if one in (opening, closing)]
    return bool(last) and last[-1] == opening


#: A sentence of each pattern over the steps a, b and c, and what it says of a plan, written without formulas.
SAYS: dict[str, tuple[str, Says]] = {
    "the steps": ("The steps are a, b and c.", lambda p: True),
    "may": ("a is optional.", lambda p: True),
    "each step, at most": ("Each step at most once.", lambda p: all(p.count(x) <= 1 for x in "abc")),
    "each step, at least": ("Everything happens at least once.", lambda p: all(x in p for x in "abc")),
    "each step, exactly": ("Every step exactly once.", lambda p: sorted(p) == ["a", "b", "c"]),
    "length, between": ("The plan has between 1 and 3 steps.", lambda p: 1 <= len(p) <= 3),
    "length, at most": ("At most two steps in all.", lambda p: len(p) <= 2),
    "length, at least": ("The plan has at least 2 steps.", lambda p: len(p) >= 2),
    "exactly one of": ("Exactly one of a, b and c.", lambda p: len(set(p)) == 1),
    "at most one of": ("Never both a and b.", lambda p: not {"a", "b"} <= set(p)),
    "at least one of": ("At least one of a and b.", lambda p: bool({"a", "b"} & set(p))),
    "go together": ("a and b go together.", lambda p: ("a" in p) == ("b" in p)),
    "alternate": (
        "a and b alternate, starting with b.",
        lambda p: "".join(x for x in p if x != "c") in ("", "b", "ba", "bab", "baba"),
    ),
    "in this order, once each": ("a, b and c in this order, each exactly once.", lambda p: list(p) == ["a", "b", "c"]),
    "in any order, once each": (
        "a and b in any order, each exactly once.",
        lambda p: p.count("a") == p.count("b") == 1,
    ),
    "in this order": ("a, b and c in this order.", lambda p: list(p) == sorted(p)),
    "in a row, at most": ("a at most 2 times in a row.", lambda p: "aaa" not in "".join(p)),
    "in a row, never": ("Never a twice in a row.", lambda p: "aa" not in "".join(p)),
    "no two in a row": ("No two a in a row.", lambda p: "aa" not in "".join(p)),
    "together, at most": ("a and b together at most 2 times.", lambda p: p.count("a") + p.count("b") <= 2),
    "together, at least": ("a and b together at least 2 times.", lambda p: p.count("a") + p.count("b") >= 2),
    "together, exactly": ("a and b together exactly 2 times.", lambda p: p.count("a") + p.count("b") == 2),
    "needs n first": (
        "a only after at least 2 b.",
        lambda p: each(p, "a", lambda past, _: past.count("b") >= 2),
    ),
    "between n and m times": ("a between one and two times.", lambda p: 1 <= p.count("a") <= 2),
    "at most": ("a or b at most twice.", lambda p: p.count("a") + p.count("b") <= 2),
    "never n times": ("Never a three times.", lambda p: p.count("a") < 3),
    "at least": ("a must happen at least twice.", lambda p: p.count("a") >= 2),
    "exactly": ("a and b exactly once.", lambda p: p.count("a") == p.count("b") == 1),
    "begin and end with": ("Start with a and end with b.", lambda p: p[:1] == ("a",) and p[-1:] == ("b",)),
    "begin with": ("The first step is a or b.", lambda p: p[:1] in (("a",), ("b",))),
    "end with": ("Finish with a.", lambda p: p[-1:] == ("a",)),
    "nothing after": ("After a nothing else happens.", lambda p: "a" not in p[:-1]),
    "nothing before": ("Nothing happens before a.", lambda p: p[:1] in ((), ("a",))),
    "never directly after": ("b must not come directly after a.", lambda p: "ab" not in "".join(p)),
    "directly followed": (
        "Every a is immediately followed by b.",
        lambda p: each(p, "a", lambda _, rest: rest[:1] == ("b",)),
    ),
    "directly preceded": ("b only directly after a.", lambda p: each(p, "b", lambda past, _: past[-1:] == ("a",))),
    "at least n steps between": (
        "Between a and b there are at least 2 steps.",
        lambda p: all(y - x > 2 for x, one in enumerate(p) for y in range(x + 1, len(p)) if one == "a" and p[y] == "b"),
    ),
    "within n steps": (
        "b must come within 2 steps after every a.",
        lambda p: each(p, "a", lambda _, rest: "b" in rest[:2]),
    ),
    "between any two": (
        "Between any two a there is b.",
        lambda p: all("b" in p[x:y] for x, y in product(range(len(p)), repeat=2) if x < y and p[x] == p[y] == "a"),
    ),
    "between": (
        "There must be b between a and c.",
        lambda p: all(
            "b" in p[x:y] for x, y in product(range(len(p)), repeat=2) if x < y and p[x] == "a" and p[y] == "c"
        ),
    ),
    "never between": (
        "Never a between b and c.",
        lambda p: each(p, "a", lambda past, _: not open_at(past, "b", "c")),
    ),
    "only between": ("a only between b and c.", lambda p: each(p, "a", lambda past, _: open_at(past, "b", "c"))),
    "only that after": ("After b only a.", lambda p: each(p, "b", lambda _, rest: set(rest) <= {"a"})),
    "never after": ("Never a after b.", lambda p: each(p, "a", lambda past, _: "b" not in past)),
    "all before": ("Every a before every b.", lambda p: each(p, "a", lambda past, _: "b" not in past)),
    "before": ("No b before a.", lambda p: each(p, "b", lambda past, _: "a" in past)),
    "followed": ("If a happens, then b must happen later.", lambda p: each(p, "a", lambda _, rest: "b" in rest)),
    "followed, unless": (
        "After a, b must happen unless c happens.",
        lambda p: "c" in p or each(p, "a", lambda _, rest: "b" in rest),
    ),
    "must, unless": ("a must happen unless b happens.", lambda p: "a" in p or "b" in p),
    "excludes": ("If a happens, b is forbidden.", lambda p: not {"a", "b"} <= set(p)),
    "requires": ("a requires b.", lambda p: "a" not in p or "b" in p),
    "must": ("a is required.", lambda p: "a" in p),
    "never": ("a is not allowed.", lambda p: "a" not in p),
}


def test_there_are_forty_and_more_and_each_has_its_sentence_here() -> None:
    assert len(PATTERNS) >= 40
    assert {pattern.name for pattern in PATTERNS} == set(SAYS)
    assert len({pattern.example for pattern in PATTERNS}) == len(PATTERNS)


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_the_example_is_read_as_its_own_kind(pattern: Pattern) -> None:
    more = "" if pattern.name == "the steps" else " Extra is optional."
    assert read_english(pattern.example + more).clauses[0].pattern == pattern.name


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@pytest.mark.parametrize("name", SAYS)
def test_a_sentence_allows_just_the_plans_that_it_speaks_of(name: str) -> None:
    sentence, says = SAYS[name]
    read = read_english(f"{sentence} The steps are a, b and c." if name != "the steps" else sentence)
    assert read.clauses[0].pattern == name
    for length in range(5):
        for plan in product("abc", repeat=length):
            assert read.behaviour.accepts(plan) == says(plan), plan


def test_phrases_with_words_of_sentences_in_them_are_no_names() -> None:
    for text in (
        "Never wash after it.",
        "Wash unless dry before iron.",
        "At most 3 times is enough",
        "Do wash if dry.",
    ):
        one = next(iter(split_sentences(text)))
        assert all(pattern.match_sentence(one.plain) is None for pattern in PATTERNS), text


def test_a_list_of_one_is_misread() -> None:
    pattern = next(one for one in PATTERNS if one.name == "exactly one of")
    found = pattern.match_sentence("exactly one of a")
    assert found is not None
    with pytest.raises(Misread, match="two steps or more"):
        pattern.constrain_plans(found)


def test_who_begins_is_one_of_the_two() -> None:
    pattern = next(one for one in PATTERNS if one.name == "alternate")
    found = pattern.match_sentence("lock and unlock alternate, starting with knock")
    assert found is not None
    with pytest.raises(Misread, match="neither of the two"):
        pattern.constrain_plans(found)


def test_never_both_or_neither() -> None:
    with pytest.raises(NotationError, match="never both a and b"):
        read_english("Never wash and dry.")
    assert not read_english("Never wash or dry. Iron is allowed.").behaviour.accepts(["wash"])


@pytest.mark.parametrize(
    "sentence",
    [
        "Dry after wash.",  # only after it, or always after it
        "Every third wash is followed by dry.",
        "Wash unless clean.",
        "Before it, wash.",
        "Wash before dry and iron after dry.",
    ],
)
def test_sentences_that_may_mean_two_things_are_not_understood(sentence: str) -> None:
    with pytest.raises(NotUnderstood):
        read_english(sentence)


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@pytest.mark.parametrize(
    "sentence",
    [
        "Dry only after wash.", "No dry before wash.", "Never dry before wash.", "Before every dry, wash.",
        "Dry needs wash first.",
        "Every dry must be preceded by a wash.", "Dry may only happen after wash.",
        "Dry is only allowed after wash.",
        "Only after wash may dry be done.",
        "If dry happens, wash must happen first.", "Washing must come before drying.",
        "You must not dry before you wash.", "Do not dry before the wash!", "Wash prior to every dry.",
    ],
)  # fmt: skip
def test_ways_to_say_before(sentence: str) -> None:
    (clause,) = read_english(sentence).clauses
    assert clause.pattern == "before"
    first, then = sorted(clause.steps, key=lambda name: not name.startswith("wash"))
    behaviour = read_english(sentence).behaviour
    assert behaviour.accepts([first, then, first]) and behaviour.accepts([])
    assert not behaviour.accepts([then, first])
