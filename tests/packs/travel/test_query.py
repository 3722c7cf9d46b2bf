"""Queries by their fields, and those that a model fills into the form."""

import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import InvalidAnswer, NotationError, QueryError
from formal_llm.llms.doubles import TEXTS, FunctionLLM, ScriptedLLM
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import Constraints, constraints_of, dollars, query_of
from formal_llm.packs.travel.reading import QueryReading, read_query_with
from tests.packs.travel.made import random_query

FIELDS = {
    "org": "St. Petersburg", "dest": "Rockford", "days": 3, "visiting_city_number": 1, "people_number": 1,
    "date": ["2022-03-16", "2022-03-17", "2022-03-18"], "budget": 1700, "query": "Please ...",
    "local_constraint": {"house rule": "pets", "cuisine": ["French"], "room type": None, "transportation": "no flight"},
}  # fmt: skip


def test_the_fields_of_the_data_set_are_read() -> None:
    query = query_of(FIELDS)
    assert (query.org, query.dest, query.people, query.budget) == ("St. Petersburg", "Rockford", 1, 1700)
    assert query.dates == (date(2022, 3, 16), date(2022, 3, 17), date(2022, 3, 18))
    assert query.constraints == Constraints("pets", ("French",), None, "no flight")


def test_lists_and_objects_may_be_printed_as_in_the_csv_files() -> None:
    printed = {**FIELDS, "date": str(FIELDS["date"]), "local_constraint": str(FIELDS["local_constraint"])}
    assert query_of(printed) == query_of(FIELDS)


@given(st.integers(0, 10_000))
def test_what_is_written_is_read_back(seed: int) -> None:
    query = random_query(World.shipped(), seed)
    assert query_of(query.to_json()) == query


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"org": None}, "'org' should be a text"),
        ({"days": "three"}, "'days' should be a whole number"),
        ({"days": 4}, "3 dates for 4 days"),
        ({"people_number": 0}, "'people_number' should be a whole number of at least 1"),
        ({"date": ["2022-02-31"] * 3}, "not '2022-02-31'"),
        ({"budget": "much"}, "no amount of money: 'much'"),
        ({"budget": -1}, "no amount of money"),
        ({"local_constraint": "x"}, "should be an object"),
        ({"local_constraint": {"room type": "privat room"}}, "did you mean 'private room'"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], told: str) -> None:
    with pytest.raises(NotationError, match=told.replace("(", r"\(")):
        query_of({**FIELDS, **change})


def test_a_misspelling_of_the_published_files_is_known() -> None:
    assert constraints_of({"house rule": "parities"}).house_rule == "parties"


def test_money_is_whole_where_it_is() -> None:
    assert dollars("$1,700.00") == 1700 and isinstance(dollars(1700.0), int)
    assert dollars("12.50") == Decimal("12.5")


WORLD = World.shipped()
TEXT = "Quiero ir de Lindhaven a Oriel del 10 al 12 de marzo de 2022, dos personas, 900 dólares, cocina francesa"
FORM = {
    "org": "lindhaven", "dest": "Oriel", "days": None, "first_day": "2022-03-10", "last_day": "2022-03-12",
    "cities": None, "people": 2, "budget": 900, "house_rule": None, "cuisines": ["french", "Japanese"],
    "room_type": None, "transportation": "no flight", "not_understood": ["con piscina"],
}  # fmt: skip


def read(**change: object) -> QueryReading:
    return read_query_with(
        FunctionLLM(lambda _: json.dumps({**FORM, **change}), can=TEXTS, choose=lambda _: 1), TEXT, WORLD
    )


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
    llm = ScriptedLLM(texts=[json.dumps({**FORM, "first_day": "2022-02-31"}), json.dumps(FORM)])
    assert read_query_with(llm, TEXT, WORLD).query.dates[0] == date(2022, 3, 10)
    with pytest.raises(InvalidAnswer, match="first_day is '2022-02-31'"):
        read(first_day="2022-02-31")


def test_the_model_is_shown_text_and_day() -> None:
    seen = []
    read_query_with(
        FunctionLLM(lambda asked: seen.append(asked.prompt) or json.dumps(FORM), can=TEXTS, choose=lambda _: 1),
        TEXT,
        WORLD,
        date(2022, 1, 5),
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
        read_query_with(ScriptedLLM(texts=[]), " ", WORLD)
