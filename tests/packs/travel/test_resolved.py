from datetime import date

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import Day
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import bill, resolve_plan, total_of
from formal_llm.packs.travel.rows import Accommodation, Flight, Restaurant, Road

DAY = date(2022, 3, 10)
WORLD = World(
    [
        Flight("F1", "York to Go", "Ham", DAY, "9:05", "10:00", 100),
        Flight("F1", "Ham", "York to Go", DAY, "9", "10", 7),
    ],
    [Road("York to Go", "Ham", "2 hours", "120 km", 120.0)],
    [Accommodation("Bed", "Ham", 50, "Private room", (), 1, 2)],
    [
        Restaurant("Soup, and more", "Ham", 10, ("Tea",)), Restaurant("Soup", "Ham", 12, ("Tea",)),
        Restaurant("Soup", "Ham", 9, ("Cafe",)),
    ],
    cities={"Kent": ("Ham", "York to Go")},
)  # fmt: skip
QUERY = TravelQuery("York to Go", "Ham", 1, 1, (DAY,), people=3)


def resolved(**fields):
    return resolve_plan([Day(1, "from York to Go to Ham(Kent)", **fields)], QUERY, WORLD)


def test_a_name_with_a_to_of_its_own():
    (day,) = resolved(transportation="taxi ,  from York to Go to Ham, duration: 2 hours")
    assert [where.city for where in day.cities] == ["York to Go", "Ham"]
    assert day.cities[1].state == "Kent"
    assert (day.journey.mode, day.journey.drive.cost) == ("taxi", 120)


def test_a_city_and_the_way_between_two():
    ways = [Day(1, "from Ham to Hove"), Day(2, "Hove"), Day(3, "-")]
    assert [day.cities and [where.city for where in day.cities] for day in resolve_plan(ways, QUERY, WORLD)] == [
        ["Ham", "Hove"], ["Hove"], None,
    ]  # fmt: skip


def test_the_flight_of_that_direction_and_its_times():
    (day,) = resolved(
        transportation="Flight Number: F1, from York to Go to Ham, Departure Time: 9:05, Arrival Time: 10:00"
    )
    assert [flight.price for flight in day.journey.flights] == [100]
    assert day.journey.times == (("departure", "09:05"), ("arrival", "10:00"))


def test_a_way_that_is_none():
    (day,) = resolved(transportation="Drive, from York to Go to Ham")
    assert day.journey.mode is None
    assert bill([day], QUERY)[0].total is None


def test_the_bill_counts_rooms_cars_and_the_dearer_of_two():
    lines = bill(
        resolved(
            transportation="Self-driving, from York to Go to Ham", lunch="Soup, and more, Ham", dinner="Soup , Ham",
            accommodation="Bed, Ham(Kent)",
        ),
        QUERY,
    )  # fmt: skip
    assert [(line.field, line.total) for line in lines] == [
        ("transportation", 6), ("lunch", 30), ("dinner", 36), ("accommodation", 100),
    ]  # fmt: skip
    assert total_of(lines) == 172


def test_attractions_without_a_last_semicolon_are_read():
    (day,) = resolved(attraction="Tower, Ham; Bridge, Ham")
    assert [stop.named.name for stop in day.sights] == ["Tower", "Bridge"]
