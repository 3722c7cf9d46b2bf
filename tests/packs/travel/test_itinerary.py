import json

import pytest

from formal_llm.packs.travel.itinerary import days_of
from formal_llm.packs.travel.plan_days import read_plan, to_text
from formal_llm.packs.travel.trip import Trip
from tests.packs.travel.given_cases import large_query, large_world

TRIP = Trip(large_query(days=5, cities=2), large_world())
WORD = TRIP.find_cheapest() or ()


def test_the_days_are_those_of_the_word():
    days = days_of(TRIP, WORD)
    first, second, ways = WORD[0], WORD[1], WORD[3:6]
    assert [day.days for day in days] == [1, 2, 3, 4, 5]
    nights = int(WORD[2][0])
    cities = [f"from Home to {first}", *[first] * (nights - 1), f"from {first} to {second}"]
    cities += [second] * (4 - nights - 1) + [f"from {second} to Home"]
    assert [day.current_city for day in days] == cities
    travelled = [day.transportation for day in days if day.transportation != "-"]
    assert [text.split(",")[0] for text in travelled] == list(ways)
    named = {day.breakfast for day in days} | {day.lunch for day in days} | {day.dinner for day in days}
    named |= {day.accommodation for day in days} | {day.attraction.rstrip(";") for day in days}
    assert named == {*WORD[6:], "-"}
    assert days[-1].accommodation == "-"
    assert len({day.accommodation for day in days[:nights]}) == 1


def test_what_is_written_is_read_back():
    days = days_of(TRIP, WORD)
    assert read_plan(json.loads(to_text(days))) == days


@pytest.mark.parametrize("word", [(), WORD[:-1], (*WORD[:-1], "Nowhere"), (*WORD, "-")])
def test_no_days_of_what_is_no_trip(word):
    with pytest.raises(ValueError, match="no word of the trip"):
        days_of(TRIP, word)
