from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import NotationError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import Constraints, constraints_of, dollars, query_of
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
