import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import NotationError
from formal_llm.packs.travel import tools as travel_tools
from formal_llm.packs.travel.reference import read_reference
from tests.packs.travel.given import cases, needs_data
from tests.packs.travel.worlds import beds, tables

DRIVE = "self-driving, from A to B, duration: 4 hours 10 mins, distance: 446 km, cost: 22"
BED = {
    "NAME": "N", "price": 3.0, "room type": "Private room", "house_rules": "No pets", "minimum nights": 2.0,
    "maximum occupancy": 2, "review rate number": 3.0, "city": "A",
}  # fmt: skip


@needs_data
def test_the_given_references_are_read_without_a_problem() -> None:
    for case in cases():
        reference = case["reference_information"]
        found = read_reference(reference)
        assert not found.problems
        rows = sum(len(table) for table in reference.values() if isinstance(table, list))
        read = found.flights, found.accommodations, found.restaurants, found.attractions
        assert sum(map(len, read)) == rows
        assert {city for title in reference for city in found.cities if title.endswith(f"in {city}")} <= set(
            found.cities
        )


@needs_data
def test_what_pandas_prints_of_the_given_references_is_read_back() -> None:
    pandas = pytest.importorskip("pandas")
    for case in cases()[:10]:
        reference = case["reference_information"]
        texts = []
        for title, table in reference.items():
            content = table
            if isinstance(table, list):
                frame = pandas.DataFrame(table)
                frame.index += 39
                content = frame.to_string(index=title.startswith("Restaurants"))
            texts.append({"Description": title, "Content": content})
        told, as_text = read_reference(reference), read_reference(str(texts))
        assert as_text.accommodations == told.accommodations
        assert (as_text.restaurants, as_text.flights, as_text.roads) == (told.restaurants, told.flights, told.roads)
        assert [one.name for one in as_text.attractions] == [one.name for one in told.attractions]
        assert read_reference(json.dumps(reference)) == told


@given(st.lists(tables, min_size=1, max_size=5), st.booleans())
def test_printed_restaurants_are_read_back(rows: list, numbered: bool) -> None:
    text = travel_tools.printed_restaurants(rows, range(97, 97 + len(rows)) if numbered else None)
    found = read_reference([{"Description": "Restaurants in A", "Content": text}]).restaurants
    # A price is printed as a number; names lose the blanks before them.
    assert [(one.name, one.city, one.cuisines, one.rating, float(one.cost)) for one in found] == [
        (one.name.lstrip(" "), one.city, one.cuisines, one.rating, float(one.cost)) for one in rows
    ]


@given(st.lists(beds, min_size=1, max_size=5))
def test_printed_accommodations_are_read_back(rows: list) -> None:
    text = travel_tools.printed_accommodations(rows)
    found = read_reference({"Accommodations in A": text}).accommodations
    assert [(one.name, one.house_rules, one.minimum_nights) for one in found] == [
        (one.name.lstrip(" "), one.house_rules, one.minimum_nights) for one in rows
    ]


def test_a_drive_and_what_is_none() -> None:
    found = read_reference(
        {
            "Self-driving from A to B": DRIVE,
            "Taxi from A to B": DRIVE.replace("self-driving", "taxi").replace("22", "446"),
            "Taxi from B to A": "No valid information.",
            "Self-driving from B to C": "self-driving, from B to C, no valid information.",
            "Flight from A to B on 2022-03-01": "There is no flight from A to B on 2022-03-01.",
            "Restaurants in A": "There is no restaurant in this city.",
        }
    )
    assert [(road.origin, road.kilometres) for road in found.roads] == [("A", 446.0), ("B", None), ("B", None)]
    assert not found.flights and not found.problems and found.cities == ["A", "B", "C"]


def test_ways_that_contradict_each_other_are_told() -> None:
    other = DRIVE.replace("446", "500")
    found = read_reference({"Self-driving from A to B": DRIVE, "Taxi from A to B": other})
    assert found.roads[0].kilometres == 446.0
    assert "500 km" in str(found.problems[0])


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        (3, "a list or an object of tables, not int"),
        ("nonsense", "neither JSON nor a list of tables"),
        ([{"x": 1}], "section 1 should have a Description"),
        ({"Hotels in A": []}, "this title is not known: 'Hotels in A'"),
        ({"Taxi from A to B": "far"}, "this is no way: 'far'"),
        ({"Restaurants in A": [{"Name": "x"}]}, "no column 'Average Cost', 'Cuisines', 'City'"),
        ({"Restaurants in A": [3]}, "a row should be an object"),
        ({"Accommodations in A": [{**BED, "price": "x"}]}, "Accommodations in A:1: column 'price' should be a number"),
        ({"Restaurants in A": "Name  Cost\n   x     3"}, "no column"),
        ({"Restaurants in A": "Name  Average Cost Cuisines City\n  x 3"}, "the line has 5 characters"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(reference: object, told: str) -> None:
    with pytest.raises(NotationError, match=told):
        read_reference(reference)


def test_a_bed_without_a_value_is_left_out_and_told() -> None:
    found = read_reference({"Accommodations in A": [BED, {**BED, "price": None}]})
    assert len(found.accommodations) == 1
    assert str(found.problems[0]) == "Accommodations in A:2, column 'price': there is no value; left out"
