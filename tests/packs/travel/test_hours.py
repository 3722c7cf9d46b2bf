from datetime import date

import pytest

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.hours import (
    count_after,
    count_before,
    find_impossible,
    find_times,
    parse_clock,
    parse_hours,
)
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import resolve_plan
from formal_llm.packs.travel.rows import Drive, Flight, Restaurant

DAY = date(2022, 3, 1)


def flight(departure, arrival, duration=None):
    return Flight("F1", "A", "B", DAY, departure, arrival, 1, duration)


@pytest.mark.parametrize(
    ("text", "hours"),
    [("2 hours 24 minutes", 2.4), ("1 hour", 1), ("30 mins", 0.5), ("1 day 2 hours", 26), (None, 0), ("?", 0)],
)
def test_durations(text, hours):
    assert parse_hours(text) == pytest.approx(hours)


@pytest.mark.parametrize(
    ("row", "arrival"),
    [
        (flight("22:00", "01:30", "3 hours 30 minutes"), 25.5),
        (flight("22:00", "01:30"), 25.5),
        (flight("12:30", "12:25", "55 minutes"), 12 + 25 / 60),  # to the west
        (flight("10:00", "19:00", "6 hours"), 19),  # to the east
    ],
)
def test_a_flight_arrives_on_the_day_that_its_duration_tells(row, arrival):
    assert find_times(row, 1) == pytest.approx((parse_clock(row.departure), arrival))


def test_who_drives_leaves_after_the_meals_and_is_home_in_the_evening():
    drive = Drive("taxi", "A", "B", "5 hours", "400 km", 400)
    for meals in (1, 2, 3):
        leaving, arrival = find_times(drive, meals)
        assert count_before(leaving)[0] == meals
        assert arrival == leaving + 5
    assert find_times(drive, None) == (15, 20)


def test_hours_decide_what_is_possible():
    assert count_before(parse_clock("5:32")) == (0, 0)
    assert count_before(parse_clock("13:40")) == (2, 1)
    assert count_after(parse_clock("23:54")) == (0, 0)
    assert count_after(25.5) == (0, 0)
    assert count_after(parse_clock("12:00")) == (2, 1)


def test_meals_without_time_are_found():
    tables = [Restaurant(name, city, 1, ()) for city in "AB" for name in ("Inn", "Bar")]
    world = World([flight("05:32", "21:54", "16 hours 22 minutes")], restaurants=tables, cities={"S": "AB"})
    query = TravelQuery("A", "B", 1, 1, (DAY,))
    plan = [Day(1, "from A to B", "Flight Number: F1, from A to B", "Inn, A", "Bar, A", "Inn, B")]
    found = list(find_impossible(resolve_plan(plan, query, world)))
    assert found == [(1, "breakfast"), (1, "lunch"), (1, "dinner")]
