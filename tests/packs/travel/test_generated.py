from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.generated import random_query, write_query
from formal_llm.packs.travel.reading import read_query

WORLD = World.shipped()


@given(st.integers(0, 1_000_000), st.integers(0, 1_000))
def test_what_is_said_is_read_back(seed: int, otherwise: int) -> None:
    query = random_query(WORLD, seed)
    reading = read_query(query.text, WORLD, date(2022, 1, 1))
    assert reading.query == query
    assert not reading.not_understood
    again = read_query(write_query(query, otherwise), WORLD, date(2022, 1, 1)).query
    assert (again.org, again.dest, again.dates, again.people, again.budget, again.constraints) == (
        query.org, query.dest, query.dates, query.people, query.budget, query.constraints,
    )  # fmt: skip


def test_a_trip_over_the_end_of_a_year_is_said_with_both_years() -> None:
    query = random_query(WORLD, 3, date(2022, 12, 30), date(2023, 1, 6))
    assert query.dates[0].year == 2022 and read_query(query.text, WORLD).query.dates == query.dates
