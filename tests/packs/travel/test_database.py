from datetime import date

from hypothesis import given

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.rows import Restaurant, Road
from tests.packs.travel.given import FOLDER, cases, needs_data
from tests.packs.travel.worlds import worlds


def test_the_shipped_world_is_found() -> None:
    world = World.shipped()
    assert len(world.cities()) == 14 and len(world.states) == 4 and not world.problems
    assert world.state_of("Oriel Falls") == "North Corvale" and world.state_of("Paris") is None
    assert world.cities("Belloro") == ("Port Serin", "Vallisto", "Casa Rima") and world.cities("Texas") == ()
    assert world.flights("Oriel", "Port Serin", date(2022, 3, 9)) and not world.flights("Oriel", "Paris")
    assert "14 cities in 4 states" in repr(world)


def test_the_first_of_two_roads_counts() -> None:
    world = World(roads=[Road("A", "B", "1 hour 0 mins", "90 km", 90.0), Road("A", "B")])
    drive = world.distance("A", "B", "taxi")
    assert drive is not None and drive.cost == 90
    assert world.distance("B", "A", "taxi") is None


def test_restaurants_keep_their_place_in_the_whole_table() -> None:
    world = World(restaurants=[Restaurant("x", "A", 3, ("Tea",)), Restaurant("y", "B", 3, ("BBQ",)),
                               Restaurant("z", "A", 3, ("Tea", "Pizza"))])  # fmt: skip
    assert world.restaurant_numbers("A") == (0, 2) and world.restaurant_numbers("C") == ()
    assert world.cuisines == ("BBQ", "Pizza", "Tea")


@given(worlds)
def test_every_row_is_found_where_it_is(world: World) -> None:
    for flight in world.all_flights():
        assert flight in world.flights(flight.origin, flight.destination, flight.day)
        assert flight in world.flights_numbered(flight.number)
        assert {flight.origin, flight.destination} <= set(world.cities())
    for road in world.all_roads():
        assert world.road(road.origin, road.destination) == road
        drive = world.distance(road.origin, road.destination, "self-driving")
        assert (drive is not None) == road.usable


@needs_data
def test_a_reference_says_what_the_tables_say() -> None:
    world = World.from_folder(FOLDER / "database")
    for case in cases():
        given_ = World.from_reference(case["reference_information"])
        for city in given_.cities():
            assert set(given_.accommodations(city)) <= set(world.accommodations(city))
            assert set(given_.restaurants(city)) <= set(world.restaurants(city))
            assert set(given_.attractions(city)) <= set(world.attractions(city))
        for road in given_.all_roads():
            for mode in ("self-driving", "taxi"):
                assert given_.distance(road.origin, road.destination, mode) == world.distance(
                    road.origin, road.destination, mode
                )
