from datetime import date

from formal_llm.packs.travel.flights import FlightList, FlightTable
from formal_llm.packs.travel.rows import Flight

DAY = date(2022, 3, 16)


def test_flights_are_looked_up_by_way_day_and_number() -> None:
    one = Flight("F1", "A", "B", DAY, "5:00", "6:00", 30)
    two = Flight("F2", "A", "B", date(2022, 3, 17), "5:00", "6:00", 30)
    back = Flight("F1", "B", "A", DAY, "5:00", "6:00", 30)
    table = FlightList([one, two, back])
    assert isinstance(table, FlightTable)
    assert table.find_between("A", "B", DAY) == (one,) and table.find_between("A", "B", None) == (one, two)
    assert table.find_between("A", "C", None) == () and table.find_numbered("F1") == (one, back)
    assert table.list_cities() == ("A", "B") and list(table) == [one, two, back] and len(table) == 3
