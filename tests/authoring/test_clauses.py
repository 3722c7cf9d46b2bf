"""Clauses of simplified sentences."""

from __future__ import annotations

import pytest

from formal_llm.authoring.clauses import read_main, read_steps, split_count, split_mode, steps_in, with_verb
from formal_llm.authoring.events import EventReader
from formal_llm.authoring.names import NoName


@pytest.mark.parametrize(
    ("phrase", "steps"),
    [
        ("wash", (("wash",),)),
        ("wash, dry and iron", (("wash",), ("dry",), ("iron",))),
        ("either wash or the dryer", (("wash", "dryer"),)),
        ("check the passport and the ticket", (("check_passport",), ("check_ticket",))),
        ("the clerk VERB check and stamp the form", (("check_form",), ("stamp_form",))),
        ("the dough be kneaded or rolled", (("knead_dough", "roll_dough"),)),
        ("logs be captured and a heap dump taken", (("capture_logs",), ("take_heap_dump",))),
        ("the safe and the drawer be opened", (("open_safe",), ("open_drawer",))),
        ("both the safe and the drawer", (("safe",), ("drawer",))),
    ],
)
def test_lists_share_a_subject_a_verb_or_an_object(phrase: str, steps: tuple[tuple[str, ...], ...]) -> None:
    assert read_steps(phrase) == steps


@pytest.mark.parametrize(
    "phrase",
    [
        "wash and dry or iron",
        "wash, dry",
        "wash and wash",
        "accept the terms and conditions",
        "a hearing and a hearing by phone",
    ],
)
def test_lists_that_may_mean_two_things(phrase: str) -> None:
    with pytest.raises(NoName):
        read_steps(phrase)


def test_how_often() -> None:
    assert split_count("wash at most 3 times") == (None, 3, "wash")
    assert split_count("more than 2 times") == (3, None, "")
    assert split_count("play at most 3 encores in total") == (None, 3, "play encore")
    assert split_count("a single test MUST be run") == (1, 1, "test MUST be run")
    assert split_count("at least one of them") == (None, None, "at least one of them")


@pytest.mark.parametrize(
    ("text", "mode", "clause"),
    [
        ("the label MAY be printed", "MAY", "the label be printed"),
        ("the nurse MUST sign it", "MUST", "the nurse VERB sign it"),
        ("never go", "NOT", "go"),
        ("never rolls back", "NOT", "roll back"),
        ("no funds are paid", "NOT", "funds are paid"),
        ("smoking FORBIDDEN in the hall", "NOT", "smoking in the hall"),
        ("nothing is merged", "NOT", "merge"),
        ("NEVER reception disclose it", "NOT", "reception VERB disclose it"),
        ("wash", "DO", "wash"),
        ("you MUST have signed in", "MUST", "sign in"),
        ("neither a nor b MAY be sold", "NOT", "a nor b be sold"),
    ],
)
def test_what_a_clause_obliges_to_allows_or_forbids(text: str, mode: str, clause: str) -> None:
    assert split_mode(text) == (mode, clause)


def test_more_than_once_is_forbidden_from_the_second_time_on() -> None:
    clause = read_main("no sample MUST be thawed more than 2 times", EventReader())
    assert (clause.mode, clause.steps, clause.least, clause.most) == ("NOT", (("thaw_sample",),), None, 2)
    with pytest.raises(NoName, match="it may, so it need not"):
        read_main("wash MAY happen 3 times", EventReader())


def test_a_helping_verb_before_the_subject() -> None:
    assert with_verb("the canary fail, go") == "the canary VERB fail, go"
    assert with_verb("two samples be mixed") == "two samples be mixed"
    with pytest.raises(NoName):
        with_verb("nothing at all")


def test_steps_of_a_sentence_that_is_not_read() -> None:
    assert steps_in("Ship the goods sometime after payment, will you?")[0] == "ship_goods"
