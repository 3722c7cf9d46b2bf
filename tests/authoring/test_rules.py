"""What clauses ask for."""

from __future__ import annotations

import pytest

from formal_llm.authoring.clauses import ParsedClause
from formal_llm.authoring.names import RefusedSentence, Unclear
from formal_llm.authoring.rules import ask_between, each_mark, rules_of

WASH, DRY = (("wash",),), (("dry",),)


@pytest.mark.parametrize(
    ("clause", "pattern"),
    [
        (ParsedClause("MUST", WASH, join="BEFORE", other=DRY), "before"),
        (ParsedClause("NOT", DRY, join="UNTIL", other=WASH), "before"),
        (ParsedClause("NOT", DRY, join="AFTER", other=WASH), "never after"),
        (ParsedClause("MUST", DRY, join="WHEN", other=WASH), "followed"),
        (ParsedClause("MUST", DRY, join="WHEN", other=WASH, marks=frozenset({"NEXT"})), "directly followed"),
        (ParsedClause("MUST", DRY, join="UNLESS", other=WASH), "must, unless"),
        (ParsedClause("MAY", DRY, most=2), "at most"),
    ],
)
def test_the_kind_follows_from_the_mode_and_the_join(clause: ParsedClause, pattern: str) -> None:
    assert [one.pattern for one in rules_of(clause)] == [pattern]


def test_what_may_mean_two_things_is_refused() -> None:
    with pytest.raises(RefusedSentence, match="only after wash"):
        rules_of(ParsedClause("MUST", DRY, join="AFTER", other=WASH))
    with pytest.raises(Unclear):
        rules_of(ParsedClause("DO", DRY, join="UNLESS", other=WASH))


def test_each_and_every_are_marks() -> None:
    assert (each_mark("each restart"), each_mark("every restart"), each_mark("a restart")) == (
        {"EACH"},
        {"EVERY"},
        set(),
    )


def test_a_duty_that_has_its_place_is_still_a_duty() -> None:
    """When it rains, close the window before you go."""
    rules = ask_between("WHEN", (("rain",),), ParsedClause("DO", WASH, join="BEFORE", other=DRY))
    assert [one.pattern for one in rules] == ["followed", "between"]
