"""Queries that a model fills into the form."""

import json
from datetime import date

import pytest

from formal_llm.errors import InvalidAnswer, QueryError
from formal_llm.llms.text_doubles import FunctionTextLLM, ScriptedTextLLM
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import Constraints
from formal_llm.packs.travel.reading import QueryReading, read_query_with

WORLD = World.shipped()
TEXT = "Quiero ir de Lindhaven a Oriel del 10 al 12 de marzo de 2022, dos personas, 900 dólares, cocina francesa"
FORM = {
    "org": "lindhaven", "dest": "Oriel", "days": None, "first_day": "2022-03-10", "last_day": "2022-03-12",
    "cities": None, "people": 2, "budget": 900, "house_rule": None, "cuisines": ["french", "Japanese"],
    "room_type": None, "transportation": "no flight", "not_understood": ["con piscina"],
}  # fmt: skip


def read(**change: object) -> QueryReading:
    return read_query_with(FunctionTextLLM(lambda _: json.dumps({**FORM, **change})), TEXT, WORLD)


def test_a_form_becomes_a_query() -> None:
    reading = read()
    query, days = reading.query, tuple(date(2022, 3, day) for day in (10, 11, 12))
    assert (query.org, query.dest, query.days, query.visiting_city_number) == ("Lindhaven", "Oriel", 3, 1)
    assert (query.dates, query.people, query.budget) == (days, 2, 900)
    assert query.constraints == Constraints(cuisines=("French",), transportation="no flight")
    assert query.text == TEXT
    assert reading.not_understood == ("con piscina", "Japanese: no restaurant of this world has it")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"org": "Lindhafen"}, "did you mean Lindhaven"),
        ({"dest": None}, "where the trip goes"),
        ({"days": 4}, "are 3 days, not 4"),
        ({"people": 0}, "0 people cannot travel"),
        ({"first_day": None, "last_day": None}, "how many days"),
        ({"org": None}, "in which city the trip begins"),
        ({"org": "Arvenia"}, "Arvenia is a state; the trip begins in a city"),
        ({"dest": "Lindhaven"}, "the trip begins and ends in Lindhaven"),
        ({"last_day": "2022-03-08"}, "the trip ends on 2022-03-08, before it begins on 2022-03-10"),
        ({"first_day": None, "last_day": None, "days": 3}, "when the trip begins"),
        ({"cities": 2}, "2 cities are to be visited, and Oriel is one city; name their state"),
        ({"dest": "Belloro", "cities": 9}, "9 cities are to be visited, and Belloro has 3"),
    ],
)
def test_what_a_model_filled_in_is_checked(change: dict, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        read(**change)


def test_a_day_that_is_none_is_asked_again() -> None:
    llm = ScriptedTextLLM([json.dumps({**FORM, "first_day": "2022-02-31"}), json.dumps(FORM)])
    assert read_query_with(llm, TEXT, WORLD).query.dates[0] == date(2022, 3, 10)
    with pytest.raises(InvalidAnswer, match="first_day is '2022-02-31'"):
        read(first_day="2022-02-31")


def test_the_model_is_shown_text_and_day() -> None:
    seen = []
    read_query_with(
        FunctionTextLLM(lambda asked: seen.append(asked.prompt) or json.dumps(FORM)), TEXT, WORLD, date(2022, 1, 5)
    )
    assert TEXT in seen[0] and "Today is 2022-01-05" in seen[0]


def test_what_the_form_cannot_hold_stays_as_it_is() -> None:
    """No sentence becomes a wish: what the form has no place for is reported."""
    reading = read(not_understood=["no flights before 9 am", "Chinese food, been there done that"], cuisines=[])
    assert reading.query.constraints == Constraints(transportation="no flight")
    assert reading.not_understood == ("no flights before 9 am", "Chinese food, been there done that")


def test_missing_facts_follow_from_others_and_are_told() -> None:
    reading = read(dest="Belloro", first_day=None, last_day="2022-03-14", days=5, people=None, budget=None)
    assert (reading.query.dates[0], reading.query.visiting_city_number) == (date(2022, 3, 10), 2)
    assert reading.assumed == (
        "2 cities are visited in 5 days", "one person travels", "money does not matter, since no budget is told",
    )  # fmt: skip
    assert read(dest="Dunmere").query.visiting_city_number == 1  # a city called like its state


def test_no_text_asks_nobody() -> None:
    with pytest.raises(QueryError, match="there is no text"):
        read_query_with(ScriptedTextLLM([]), " ", WORLD)
