"""Names of steps in phrases."""

from __future__ import annotations

import pytest

from formal_llm.authoring.names import NoName, find_similar, name_of, singularize_noun, spelled_alike, stem_name


@pytest.mark.parametrize(
    ("phrase", "name"),
    [
        ("the order", "order"),
        ("check the stock", "check_stock"),
        ("please do the dishes", "dishes"),
        ("two payments", "payment"),
        ("all questions", "question"),
        ("every answer", "answer"),
        ("use the drill", "drill"),
        ("the step wash", "wash"),
        ('"Rm -rf"', "Rm_-rf"),
        ("a", "a"),
        ("bus", "bus"),
        ("log in", "log_in"),
    ],
)
def test_names(phrase: str, name: str) -> None:
    assert name_of(phrase) == name


@pytest.mark.parametrize(
    "phrase",
    [
        "",
        "the",
        "wash it",
        "wash before dry",
        "never",
        "one two three four of the many words",
        "a, b",
        "of these",
        "approval of its own",
        "rollback again",
        "call first",
        "wait 5 minutes",
        "carefully pour",
        "lock up at the end",
    ],
)
def test_what_is_no_name(phrase: str) -> None:
    with pytest.raises(NoName):
        name_of(phrase)


def test_forms_of_one_name() -> None:
    assert [singularize_noun(word) for word in ("boxes", "queries", "glass", "bus", "tests")] == [
        "box",
        "query",
        "glass",
        "bus",
        "test",
    ]
    assert stem_name("ironing") == stem_name("iron") == stem_name("ironed")
    assert stem_name("baking") == stem_name("bake")
    assert stem_name("planning") == stem_name("plans")
    assert stem_name("wash") != stem_name("watch")
    assert spelled_alike(["questions", "question", "dry"]) == {
        "questions": "question",
        "question": "question",
        "dry": "dry",
    }
    assert spelled_alike(["test"], ["tests", "testing"]) == {"tests": "tests", "testing": "testing", "test": "tests"}


def test_names_that_may_be_one_step_are_found_by_their_words() -> None:
    assert find_similar(["rate", "rate_seller", "log_in"]) == [("rate", "rate_seller")]
    assert find_similar(["approve_order", "approval_of_order", "order_is_large=yes"]) == [
        ("approve_order", "approval_of_order")
    ]
    assert find_similar(["notify_customer", "notify_customer_by_email"]) and not find_similar(
        ["open_door", "close_door"]
    )
    assert not find_similar(["switch_on_power", "switch_off_power", "check_in", "check_out"])
