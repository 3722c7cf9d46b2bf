import pytest

from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.passages import Passage
from formal_llm.packs.travel.reading.people import read_budget, read_people


def read(text: str) -> QueryDraft:
    draft, passage = QueryDraft(), Passage(text)
    read_people(passage, draft)
    read_budget(passage, draft)
    return draft


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("for 4 people", 4), ("a group of seven", 7), ("a party of 5", 5), ("for two, please", 2), ("just me", 1),
        ("a solo trip", 1), ("for a couple", 2), ("my wife and I", 2), ("with three friends", 4), ("we are 6", 6),
        ("2 adults and 2 children", 4), ("my two kids and I", 3), ("there are three of us", 3), ("a family of 5", 5),
        ("for 3 days", None), ("for 2,300 dollars", None), ("mum, dad and our two teenagers", 4), ("2ppl", 2),
        ("we are two couples", 4), ("a family of four with a toddler", 4),
        ("me and my three kids", 4), ("half a dozen of us", 6),
    ],
)  # fmt: skip
def test_how_many_travel(text: str, people: int | None) -> None:
    assert read(text).people == people


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("a budget of $1,700", 1700),
        ("2022-03-11 $800", 800), ("1.5k dollars", 1500), ("USD 900", 900), ("900$", 900),
        ("two thousand dollars", 2000),
        ("our budget is 850", 850), ("for 3 days", None),
    ],
)  # fmt: skip
def test_how_much_may_be_spent(text: str, budget: int | None) -> None:
    assert read(text).budget == budget


def test_amounts_that_differ_are_not_chosen_among() -> None:
    assert "several amounts" in read("$900, or perhaps $1,000").problems[0][1]
    assert read("$900 at most, so $900").budget == 900
    assert read("$900, and another $100 on top").budget == 1000
    assert read("$900 without the flights").not_understood == ["$900 without the flights"]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("$300 per person", {"person"}), ("$300 each", {"person"}), ("$300 a day", {"day"}),
        ("a daily budget of $300", {"day"}), ("$300 per day per person", {"day", "person"}), ("$300 in total", set()),
        ("we each have $300", {"person"}), ("everyone pays $300", {"person"}),
        ("$300 per day and person", {"day", "person"}),
        ("three friends, each with $300", {"person"}), ("$300. The $300 is for each of us", {"person"}),
    ],
)  # fmt: skip
def test_what_an_amount_is_for(text: str, units: set[str]) -> None:
    assert (read(text).budget, read(text).budget_units) == (300, units)
