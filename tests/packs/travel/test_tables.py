import pytest

from formal_llm.errors import NotationError
from formal_llm.packs.travel.tables import (
    ACCOMMODATIONS,
    FLIGHTS,
    RESTAURANTS,
    ROADS,
    Cells,
    RowProblem,
    Value,
    WrongValue,
    read_money,
)

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


def test_money_keeps_its_cents() -> None:
    assert str(read_money("12.50", "price")) == "12.50" and read_money(3.0, "price") == 3
