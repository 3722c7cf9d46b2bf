"""Names of steps in phrases."""

from __future__ import annotations

import pytest

from formal_llm.authoring.names import NoName, name_of, singular, spelled_alike, stem, steps_of


@pytest.mark.parametrize(
    ("phrase", "name"),
    [
        ("the order", "order"), ("check the stock", "check_stock"), ("please do the dishes", "dishes"),
        ("two payments", "payment"),
        ("all questions", "question"), ("every answer", "answer"), ("use the drill", "drill"),
        ("the step wash", "wash"),
        ('"Rm -rf"', "Rm_-rf"), ("a", "a"), ("bus", "bus"), ("log in", "log_in"),
    ],
)  # fmt: skip
def test_names(phrase: str, name: str) -> None:
    assert name_of(phrase) == name


@pytest.mark.parametrize(
    "phrase",
    ["", "the", "wash it", "wash before dry", "never", "one two three four of the many words", "a, b", "of these"],
)
def test_what_is_no_name(phrase: str) -> None:
    with pytest.raises(NoName):
        name_of(phrase)


def test_lists() -> None:
    assert steps_of("wash") == (("wash",),)
    assert steps_of("wash, dry and iron") == (("wash",), ("dry",), ("iron",))
    assert steps_of("either wash or the dryer") == (("wash", "dryer"),)
    for text in ("wash and dry or iron", "wash, dry", "wash and wash"):
        with pytest.raises(NoName):
            steps_of(text)


def test_forms_of_one_name() -> None:
    assert [singular(word) for word in ("boxes", "queries", "glass", "bus", "tests")] == [
        "box",
        "query",
        "glass",
        "bus",
        "test",
    ]
    assert stem("ironing") == stem("iron") == stem("ironed")
    assert stem("baking") == stem("bake")
    assert stem("planning") == stem("plans")
    assert stem("wash") != stem("watch")
    assert spelled_alike(["questions", "question", "dry"]) == {
        "questions": "question",
        "question": "question",
        "dry": "dry",
    }
    assert spelled_alike(["test"], ["tests", "testing"]) == {"tests": "tests", "testing": "testing", "test": "tests"}
