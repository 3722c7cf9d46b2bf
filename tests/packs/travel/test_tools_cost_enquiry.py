import json
from datetime import date

import pytest

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.rows import Accommodation, Flight, Restaurant, Road
from formal_llm.packs.travel.tools import cost_enquiry

WORLD = World(
    [Flight("F1", "A", "B", date(2022, 3, 16), "5:00", "6:00", 70)],
    [Road("A", "B", "2 hours", "200 km", 200.0), Road("B", "A")],
    [Accommodation("Bed, old", "B", 50, "Private room", ("No pets",), 1, 2)],
    [Restaurant("Inn", "B", 10, ("Tea",)), Restaurant("Inn", "B", 99, ("Tea",))],
)
DAY = {"people_number": 3, "day": 1, "current_city": "from A to B", "breakfast": "-", "lunch": "", "dinner": None}


def ask(**more: object) -> str:
    return cost_enquiry(WORLD, json.dumps({**DAY, **more}))


@pytest.mark.parametrize(
    ("more", "dollars"),
    [
        ({}, 0),
        ({"transportation": "Flight Number: F1, from A to B, Departure Time: 5:00"}, 210),
        ({"transportation": "Self-driving, from A to B, Duration: 2 hours"}, 10),
        ({"transportation": "Taxi, from A(X) to B(Y)"}, 200),
        ({"transportation": "Taxi"}, 200),  # the cities are those of the day
        ({"transportation": "Drive, from A to B"}, 0),  # published: what is none of the three is free
        ({"people_number": 6, "transportation": "self-driving, from A to B"}, 20),
        ({"breakfast": "Inn, B", "dinner": "Inn, B(Y)"}, 60),  # the first of two with one name
        ({"accommodation": "Bed, old, B"}, 100),
    ],
)
def test_what_a_day_costs(more: dict[str, object], dollars: int) -> None:
    assert ask(**more) == f"The cost of your plan is {dollars} dollars."


def test_what_is_wrong_is_listed_as_published() -> None:
    said = ask(breakfast="Pub, B", accommodation="Bed, B", transportation="Flight Number: F9, from A to B")
    assert said == (
        "Sorry, the cost of your plan is not available because of the following reasons:"
        "1. The filght information is not valid \t2. The breakfase information is not valid, please check. \t"
        "3. The accommodation information is not valid, please check. \t"
    )
    assert "The transporation information is not valid, please check." in ask(transportation="Taxi, from B to A")
    assert "two cities (from A to B)" in ask(transportation="Taxi", current_city="B")


@pytest.mark.parametrize("text", ["{", "a plan", "", "[" * 5000, "x" * 30_000])
def test_what_is_no_plan_is_told(text: str) -> None:
    assert cost_enquiry(WORLD, text).startswith("The sub plan can not be parsed into json format")


def test_only_one_day_and_with_people() -> None:
    assert "Only one day plan is supported." in cost_enquiry(WORLD, "[{}]")
    assert "people_number" in cost_enquiry(WORLD, "{}")
    assert cost_enquiry(WORLD, str(DAY)) == "The cost of your plan is 0 dollars."  # a Python dictionary will do
