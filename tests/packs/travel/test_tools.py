"""The published tools."""

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.doubles import TEXTS, FunctionLLM
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.reference import read_reference
from formal_llm.packs.travel.rows import Accommodation, Flight, Restaurant, Road
from formal_llm.packs.travel.tools import (
    MOST_STEPS,
    ToolSession,
    cost_enquiry,
    plan_writer,
    printed_table,
)
from tests.packs.travel.given import cases, needs_data
from tests.strategies import examples

WORLD = World.shipped()
ERRORS = {
    "FlightSearch[Lindhaven, Oriel]": "Illegal Flight Search. Please try again.",
    "FlightSearch[Lindhaven, Oriel, March 10]": "'March 10' is not in the format YYYY-MM-DD",
    "FlightSearch[Lindhaven, Paris, 2022-03-10]": "Paris is not valid city in ['Lindhaven', 'Marrowick'",
    "FlightSearch[Vallisto, Alder, 2022-02-31]": "There is no flight from Vallisto to Alder on 2022-02-31.",
    "AttractionSearch[Paris]": "Paris is not valid city in [",
    "CitySearch[Texas]": "Invalid State",
    "GoogleDistanceMatrix[Oriel, Alder]": "Illegal GoogleDistanceMatrix. Please try again.",
    "GoogleDistanceMatrix[Oriel, Paris, taxi]": "taxi, from Oriel to Paris, no valid information.",
    "GoogleDistanceMatrix[Lindhaven, Sable Point, taxi]": "No valid information.",  # more than a day
    "Search[Oriel]": "Invalid Action. Valid Actions are  FlightSearch[",
    "let me think": "Invalid Action.",
    "Planner[a trip]": "Invalid Action.",  # this session has none
}


@pytest.mark.parametrize(("action", "told"), ERRORS.items())
def test_what_goes_wrong_is_told_as_published(action: str, told: str) -> None:
    assert ToolSession(WORLD).act(action).startswith(told)


def test_a_city_without_rows() -> None:
    session = ToolSession(World(cities={"X": ["A"]}))
    said = [session.act(f"{what}Search[A]") for what in ("Accommodation", "Restaurant", "Attraction")]
    assert said[1:] == ["There is no restaurant in this city.", "There is no attraction in this city."]
    assert said[0] == "There is no attraction in this city."  # as published


def test_a_search_finds_all_rows() -> None:
    session = ToolSession(WORLD)
    found = read_reference({"Restaurants in Oriel": session.act("RestaurantSearch[Oriel]")}).restaurants
    assert tuple(found) == WORLD.restaurants("Oriel")
    assert session.act("CitySearch[Belloro]") == "['Port Serin', 'Vallisto', 'Casa Rima']"
    drive = WORLD.distance("Oriel", "Alder", "self-driving")
    assert drive is not None
    assert session.act("GoogleDistanceMatrix[Oriel(x), Alder, self-driving]") == (
        f"self-driving, from Oriel to Alder, duration: {drive.duration}, distance: {drive.distance}, cost: {drive.cost}"
    )


@needs_data
def test_the_given_tables_come_back_through_the_tools() -> None:
    for case in cases()[:6]:
        world = World.from_reference(case["reference_information"])
        session = ToolSession(world)
        for title, content in case["reference_information"].items():
            if title.startswith("Accommodations in "):
                city = title.removeprefix("Accommodations in ")
                read = read_reference({title: session.accommodation_search(city)}).accommodations
                # Blanks before a name are lost in print.
                assert [one.name for one in read] == [one.name.lstrip(" ") for one in world.accommodations(city)]
            elif title.startswith("Taxi") and content != "No valid information.":
                origin, _, destination = title.removeprefix("Taxi from ").partition(" to ")
                assert session.distance_matrix(origin, destination, "taxi") == content


def test_the_notebook_holds_what_was_found_last() -> None:
    session = ToolSession(WORLD, lambda notes, query: f"{query}: {notes}")
    session.act("AttractionSearch[Alder]")
    session.act("CitySearch[Belloro]")  # is no table
    assert session.act("NotebookWrite[sights]") == "The information has been recorded in Notebook, and its index is 0."
    session.act("FlightSearch[Oriel, Paris, 2022-03-10]")  # failed: what was found before stays
    assert session.act("NotebookWrite[again]").endswith("its index is 1.")
    assert session.notebook[0][1] == session.notebook[1][1] == ToolSession(WORLD).attraction_search("Alder")
    answer = session.act("Planner[my trip]")
    assert answer.startswith("my trip: [{'index': 0, 'Short Description': 'sights', 'Content': ")
    assert session.answer == answer and session.act("CitySearch[Belloro]") == "The run is over: the plan is written."


def test_the_same_action_three_times_ends_the_run() -> None:
    session = ToolSession(WORLD)
    session.act("CitySearch[Belloro]")
    session.act("CitySearch[Belloro]")
    assert session.stopped is None
    assert "repeated 3 times" in session.act("CitySearch[Belloro]")


def test_three_failures_of_a_tool_end_the_run_at_its_next_try() -> None:
    session = ToolSession(WORLD)
    for name in "abc":
        assert session.act(f"AttractionSearch[{name}]").startswith(name)
    assert "AttractionSearch failed 3 times" in session.act("AttractionSearch[Alder]")
    fresh = ToolSession(WORLD)
    for name in "abcabc":
        fresh.act(f"AttractionSearch[{name}]")
        fresh.act("CitySearch[Belloro]")  # what works clears the count
    assert fresh.stopped is None


def test_a_run_has_so_many_steps() -> None:
    session = ToolSession(WORLD)
    for number in range(MOST_STEPS):
        session.act(f"NotebookWrite[{number}]")
    assert session.stopped == "30 steps were taken" and len(session.notebook) == MOST_STEPS


def test_the_tools_are_tools_of_ours() -> None:
    session = ToolSession(WORLD, lambda notes, query: query)
    kit = session.toolkit(with_costs=True)
    assert set(kit.tools) == {
        "FlightSearch", "GoogleDistanceMatrix", "AccommodationSearch", "RestaurantSearch", "AttractionSearch",
        "CitySearch", "NotebookWrite", "Planner", "CostEnquiry",
    }  # fmt: skip
    assert kit["CitySearch"]("Belloro") == "['Port Serin', 'Vallisto', 'Casa Rima']"
    assert [str(kind) for kind in kit["FlightSearch"].inputs] == ["text"] * 3
    assert kit["CostEnquiry"]('{"people_number": 1}') == "The cost of your plan is 0 dollars."
    assert not any(tool.pure for tool in session.toolkit())  # a note holds what was found last


def test_a_model_writes_the_plan() -> None:
    said = plan_writer(FunctionLLM(lambda asked: asked.prompt, can=TEXTS, choose=lambda _: 1))("the notes", "the query")
    assert "the notes" in said and "Query: the query" in said


@examples(40)
@given(st.data())
def test_it_prints_as_pandas_does(data: st.DataObject) -> None:
    pandas = pytest.importorskip("pandas")
    count = data.draw(st.integers(1, 4))
    kinds = {
        "text": st.text("ab \né", min_size=1, max_size=12).filter(str.strip),
        "whole": st.integers(-99, 99_999),
        "decimal": st.integers(-99_999_999, 99_999_999).map(lambda n: n / 1e6),
    }
    columns = data.draw(st.lists(st.sampled_from(["Name", "price", "x", "Average Cost"]), min_size=1, unique=True))
    cells = {name: data.draw(st.lists(kinds[data.draw(st.sampled_from(sorted(kinds)))], min_size=count, max_size=count))
             for name in columns}  # fmt: skip
    rows = list(zip(*cells.values(), strict=True))
    frame = pandas.DataFrame(cells)
    assert printed_table(columns, rows) == frame.to_string(index=False)
    frame.index += 98
    assert printed_table(columns, rows, range(98, 98 + count)) == frame.to_string()


PRICED = World(
    [Flight("F1", "A", "B", date(2022, 3, 16), "5:00", "6:00", 70)],
    [Road("A", "B", "2 hours", "200 km", 200.0), Road("B", "A")],
    [Accommodation("Bed, old", "B", 50, "Private room", ("No pets",), 1, 2)],
    [Restaurant("Inn", "B", 10, ("Tea",)), Restaurant("Inn", "B", 99, ("Tea",))],
)
DAY = {"people_number": 3, "day": 1, "current_city": "from A to B", "breakfast": "-", "lunch": "", "dinner": None}


def ask(**more: object) -> str:
    return cost_enquiry(PRICED, json.dumps({**DAY, **more}))


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
    assert cost_enquiry(PRICED, text).startswith("The sub plan can not be parsed into json format")


def test_only_one_day_and_with_people() -> None:
    assert "Only one day plan is supported." in cost_enquiry(PRICED, "[{}]")
    assert "people_number" in cost_enquiry(PRICED, "{}")
    assert cost_enquiry(PRICED, str(DAY)) == "The cost of your plan is 0 dollars."  # a Python dictionary will do
