from datetime import date

import pytest

from formal_llm.errors import QueryError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.reading.draft import QueryDraft

WORLD = World.shipped()
FIRST = date(2022, 3, 10)


def draft(**more: object) -> QueryDraft:
    return QueryDraft(**({"org": "Lindhaven", "dest": "Oriel", "days": 3, "first": FIRST} | more))


def test_days_follow_from_first_and_last() -> None:
    query = draft(days=None, last=date(2022, 3, 14), dest="Belloro").make_reading("t", WORLD).query
    assert (query.days, query.visiting_city_number) == (5, 2)


def test_the_first_day_follows_from_the_last() -> None:
    assert draft(first=None, last=date(2022, 3, 12)).make_reading("t", WORLD).query.dates[0] == FIRST


def test_a_city_that_is_called_like_its_state() -> None:
    assert draft(dest="Dunmere").make_reading("t", WORLD).query.visiting_city_number == 1
    assert draft(dest="Dunmere", days=7).make_reading("t", WORLD).query.visiting_city_number == 3


@pytest.mark.parametrize(
    "more",
    [{"days": 0}, {"days": 100}, {"people": 0}, {"people": 5000}, {"cities": 9}, {"dest": "Nowhere"}, {"org": None}],
)
def test_what_does_not_fit_is_an_error(more: dict) -> None:
    with pytest.raises(QueryError):
        draft(**more).make_reading("t", WORLD)
