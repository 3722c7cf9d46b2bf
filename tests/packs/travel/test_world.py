"""The rows of a world: read from tables, found where they are."""

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given

from formal_llm.errors import NotationError
from formal_llm.packs.travel.csv_lines import csv_lines
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.rows import Accommodation, Restaurant, Road, drive_of
from formal_llm.packs.travel.tables import (
    ACCOMMODATIONS,
    FLIGHTS,
    RESTAURANTS,
    ROADS,
    Cells,
    RowProblem,
    Value,
    WrongValue,
)
from tests.packs.travel.given import FOLDER, cases, needs_data
from tests.packs.travel.worlds import worlds

LODGING = Accommodation("A", "B", 100, "Private room", ("No pets", "No smoking"), 2, 3)


@pytest.mark.parametrize(("people", "cost"), [(1, 100), (3, 100), (4, 200), (6, 200), (7, 300)])
def test_so_many_rooms_as_are_needed(people: int, cost: int) -> None:
    assert LODGING.cost_for(people) == cost


def test_what_a_house_forbids_it_does_not_allow() -> None:
    assert not LODGING.allows("pets") and LODGING.allows("parties")
    assert LODGING.is_of("private room") and LODGING.is_of("not shared room") and not LODGING.is_of("entire room")


@pytest.mark.parametrize(("people", "car", "taxi"), [(1, 57, 1144), (4, 57, 1144), (5, 57, 2288), (6, 114, 2288)])
def test_so_many_cars_as_are_needed(people: int, car: int, taxi: int) -> None:
    road = Road("A", "B", "10 hours 55 mins", "1,144 km", 1144.0)
    driven, taken = drive_of(road, "self-driving"), drive_of(road, "taxi")
    assert driven is not None and taken is not None
    assert (driven.cost_for(people), taken.cost_for(people)) == (car, taxi)


@pytest.mark.parametrize("road", [Road("A", "B"), Road("A", "B", "1 day 2 hours", "2,300 km", 2300.0)])
def test_a_road_without_a_length_or_of_more_than_a_day_is_none(road: Road) -> None:
    assert drive_of(road, "taxi") is None


DAY = date(2022, 3, 16)


HEADER = ",Name,City,Cuisines,Average Cost,Aggregate Rating\n"


def write_bytes(folder: Path, text: str | bytes) -> Path:
    place = folder / "r.csv"
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def test_lines_are_numbered_as_in_the_file(tmp_path: Path) -> None:
    place = write_bytes(tmp_path, HEADER + '0,"A\nB",C,Tea,3,4\n\n1,D,C,Tea,3,4\n')
    assert [(line, cells["Name"]) for line, cells in csv_lines(place, RESTAURANTS)] == [(2, "A\nB"), (5, "D")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        (HEADER + "0,A,B\n", "r.csv:2: the line has 3 cells, the header 6"),
        (HEADER + '0,"A,B,Tea,3,4\n', "this is no CSV"),
        ("Name;City\n", "no column"),
        (b"PK\x03\x04\xff\xfe\x00", "no text in UTF-8|no CSV|no column"),
    ],
)
def test_what_is_no_such_table_is_told(tmp_path: Path, text: str | bytes, told: str) -> None:
    with pytest.raises(NotationError, match=told):
        list(csv_lines(write_bytes(tmp_path, text), RESTAURANTS))


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    for place in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(NotationError, match="cannot be read"):
            list(csv_lines(place, RESTAURANTS))


BED: dict[str, Value] = {
    "NAME": "A, the first", "price": "131.0", "room type": "Private room", "house_rules": "No pets & No smoking",
    "minimum nights": "2.0", "maximum occupancy": "3", "review rate number": "4.0", "city": "B",
}  # fmt: skip


def test_a_line_becomes_a_row() -> None:
    bed = ACCOMMODATIONS.make(Cells(BED))
    assert (bed.price, bed.minimum_nights, bed.house_rules) == (131, 2, ("No pets", "No smoking"))
    assert isinstance(bed.price, int)


@pytest.mark.parametrize("missing", ["", "  ", "nan", "N/A", None, float("nan")])
def test_a_missing_value_leaves_its_line_out_and_is_told(missing: Value) -> None:
    problems: list[RowProblem] = []
    rows = list(ACCOMMODATIONS.read_rows([(2, BED), (7, {**BED, "house_rules": missing})], "beds.csv", problems))
    assert len(rows) == 1
    assert str(problems[0]) == "beds.csv:7, column 'house_rules': there is no value; left out"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"price": "cheap"}, "column 'price' should be a number, not 'cheap'"),
        ({"price": "-3"}, "not below zero"),
        ({"price": "inf"}, "a number"),
        ({"minimum nights": "1.5"}, "a whole number of at least 0"),
        ({"maximum occupancy": "0"}, "a whole number of at least 1"),
    ],
)
def test_a_wrong_value_is_an_error_with_file_line_and_column(change: dict[str, Value], told: str) -> None:
    with pytest.raises(NotationError, match=told) as caught:
        list(ACCOMMODATIONS.read_rows([(9, {**BED, **change})], "beds.csv", []))
    assert (caught.value.file, caught.value.line) == ("beds.csv", 9)


@pytest.mark.parametrize(
    ("column", "value"), [("FlightDate", "2022-02-31"), ("DepTime", "25:00"), ("FlightDate", "31/02/2022")]
)
def test_days_and_clocks_are_checked(column: str, value: str) -> None:
    flight: dict[str, Value] = {
        "Flight Number": "F1", "Price": 3, "DepTime": "5:40", "ArrTime": "24:00", "FlightDate": "2022-03-16",
        "OriginCityName": "A", "DestCityName": "B",
    }  # fmt: skip
    assert FLIGHTS.make(Cells(flight)).duration is None  # a column that the table lacks
    with pytest.raises(WrongValue):
        FLIGHTS.make(Cells({**flight, column: value}))


@pytest.mark.parametrize(("text", "length"), [("1,144 km", 1144.0), ("98.6 km", 98.6), ("500 m", 0.5), ("", None)])
def test_a_distance_is_read(text: str, length: float | None) -> None:
    road = ROADS.make(Cells({"origin": "A", "destination": "B", "duration": "1 hour", "distance": text}))
    assert road.kilometres == length


def test_a_distance_in_another_unit_is_told() -> None:
    with pytest.raises(WrongValue):
        ROADS.make(Cells({"origin": "A", "destination": "B", "duration": "1 hour", "distance": "12 miles"}))


def test_a_missing_column_is_told_with_the_nearest_one() -> None:
    with pytest.raises(NotationError, match="no column 'Average Cost'") as caught:
        RESTAURANTS.check_header(["Name", "City", "Cuisines", "Averge Cost"], "r.csv")
    assert "'Averge Cost'" in str(caught.value)
    with pytest.raises(NotationError, match="is this the table of restaurants"):
        RESTAURANTS.check_header(["a", "b"], "r.csv")


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
