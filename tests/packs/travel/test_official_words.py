import pytest

from formal_llm.packs.travel.official_words import (
    driven_mode,
    find_named,
    from_to,
    in_sequence,
    matched_mode,
    name_city,
    strip_parentheses,
)
from formal_llm.packs.travel.rows import Restaurant


def test_places():
    assert name_city("Counter, The Old Mill, Port Serin") == ("Counter, The Old Mill", "Port Serin")
    assert name_city("Soup, Helena(Montana)") == ("Soup", "Helena")
    assert name_city(", Ham") == ("", "Ham")
    assert name_city("Soup") == ("-", "-")
    assert strip_parentheses("Helena(Montana) x") == "Helena"


def test_ways():
    assert from_to("Taxi, from A to B(Kent), duration") == ("A", "B(Kent)")
    assert from_to("from nowhere") is None
    said = "self-driving as a taxi"
    assert (driven_mode(said), matched_mode(said)) == ("self-driving", "taxi")
    assert (driven_mode("drive"), matched_mode("drive")) == (None, None)


def test_a_name_is_any_part_of_one():
    rows = [Restaurant(name, "Ham", 1, ()) for name in ("Big Soup", "Soup")]
    assert find_named(rows, "Soup, Ham") == rows


@pytest.mark.parametrize(
    ("cities", "fine"),
    [
        ("ABBA", True), ("ABBCCA", True), ("AB", False), ("ABA", False), ("ABBCBBA", False), ("ABBABBA", False),
        ("ABBCA", False), ("AAA", True),
    ],
)  # fmt: skip
def test_the_order_of_cities(cities, fine):
    assert in_sequence(cities) is fine
