"""Days of plans: read, resolved, judged, printed."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from formal_llm.errors import InputError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.plan_days import (
    FIELDS,
    Day,
    Submission,
    has_content,
    read_number,
    read_plan,
    read_submissions,
    to_json,
    to_text,
)
from formal_llm.packs.travel.query import Constraints, TravelQuery
from formal_llm.packs.travel.resolved import bill, resolve_plan, total_of
from formal_llm.packs.travel.rows import Accommodation, Flight, Restaurant, Road
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.trip_text import describe_query, format_money, trip_text, verdicts_text
from formal_llm.packs.travel.verdict import COMMONSENSE, TripFinding, asked, not_delivered, verdict_of
from tests.packs.travel.trips import trip

DAY = {
    "days": 1, "current_city": "from A to B", "transportation": "Taxi, from A to B", "breakfast": "-", "lunch": "-",
    "dinner": "Soup, B", "attraction": "-", "accommodation": "Bed, B",
}  # fmt: skip


def test_a_day_is_read_and_written_back():
    (day,) = read_plan([DAY])
    assert day == Day(1, "from A to B", "Taxi, from A to B", dinner="Soup, B", accommodation="Bed, B")
    assert to_json([day]) == [DAY]
    assert read_plan(to_text([day])) == (day,)
    assert day.meals == (("breakfast", "-"), ("lunch", "-"), ("dinner", "Soup, B"))
    assert [has_content(text) for text in ("", "-", "Soup, B")] == [False, False, True]


def test_words_are_kept_as_they_are():
    (day,) = read_plan([{**DAY, "lunch": " Soup,  B ", "dinner": None}])
    assert (day.lunch, day.dinner) == (" Soup,  B ", "")


def test_what_is_lacking_is_told():
    (day,) = read_plan([{"day": "Day 3", "current_city": "B"}])
    assert day.days == 3
    assert day.lacking == ("transportation", "breakfast", "attraction", "lunch", "dinner", "accommodation")
    assert read_plan([{**DAY, "lunch": None}])[0].nulls == ("lunch",)
    first, second = read_plan([{}, DAY])
    assert (first.days, first.lacking, second.lacking) == (1, FIELDS, ())


def test_the_number_of_a_query_counts_from_zero():
    assert read_number({"index": 4, "idx": 9}) == 4
    assert read_number({"idx": 9}) == 8
    assert read_number({"idx": "nine"}) is None


@pytest.mark.parametrize("nothing", [None, [], [{}], {"plan": None}, "null", "[]"])
def test_nothing_is_no_plan(nothing):
    assert read_plan(nothing) == ()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("[{", "the plan: this is no JSON"),
        (7, "a plan is a list of days, not int: 7"),
        ({"days": []}, "this is one object, not a list of days"),
        (["Day 1"], "day 1: a day is an object with current_city"),
        ([{"title": "x"}], "day 1: this is no day of a trip: it has 'title'"),
        ([DAY, {**DAY, "lunch": ["Soup"]}], "day 2, lunch: this should be a text, or '-' for nothing, not ['Soup']"),
    ],
)
def test_what_is_no_plan_says_where(plan, said):
    with pytest.raises(InputError, match=r"^the plan") as error:
        read_plan(plan)
    assert said in str(error.value)


def test_submissions_of_all_forms():
    plan = read_plan([DAY])
    line = json.dumps({"idx": 1, "query": "Go\u2028there", "plan": [DAY]}, ensure_ascii=False)
    none = json.dumps({"idx": 2, "query": "Go", "plan": None})
    one = Submission(0, "Go\u2028there", plan)
    assert read_submissions(f"{line}\n{none}\n") == (one, Submission(1, "Go", ()))
    assert read_submissions(f"[{line}, {none}]") == (one, Submission(1, "Go", ()))
    assert read_submissions(line) == (one,)
    assert read_submissions(json.dumps([DAY], indent=1)) == (Submission(None, "", plan),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n", "f: the file is empty"),
        ('{"plan": []}\n{"plan": [}', "f, line 2: this is no JSON"),
        ('[{"days":\n1', "f: this is no JSON"),
    ],
)
def test_broken_files_say_where(text, said):
    with pytest.raises(InputError) as error:
        read_submissions(text, "f")
    assert str(error.value).startswith(said)


TODAY = date(2022, 3, 10)
KENT = World(
    [
        Flight("F1", "York to Go", "Ham", TODAY, "9:05", "10:00", 100),
        Flight("F1", "Ham", "York to Go", TODAY, "9", "10", 7),
    ],
    [Road("York to Go", "Ham", "2 hours", "120 km", 120.0)],
    [Accommodation("Bed", "Ham", 50, "Private room", (), 1, 2)],
    [
        Restaurant("Soup, and more", "Ham", 10, ("Tea",)), Restaurant("Soup", "Ham", 12, ("Tea",)),
        Restaurant("Soup", "Ham", 9, ("Cafe",)),
    ],
    cities={"Kent": ("Ham", "York to Go")},
)  # fmt: skip
TO_HAM = TravelQuery("York to Go", "Ham", 1, 1, (TODAY,), people=3)


def resolved(**fields):
    return resolve_plan([Day(1, "from York to Go to Ham(Kent)", **fields)], TO_HAM, KENT)


def test_a_name_with_a_to_of_its_own():
    (day,) = resolved(transportation="taxi ,  from York to Go to Ham, duration: 2 hours")
    assert [where.city for where in day.cities] == ["York to Go", "Ham"]
    assert day.cities[1].state == "Kent"
    assert (day.journey.mode, day.journey.drive.cost) == ("taxi", 120)


def test_the_flight_of_that_direction_and_its_times():
    (day,) = resolved(
        transportation="Flight Number: F1, from York to Go to Ham, Departure Time: 9:05, Arrival Time: 10:00"
    )
    assert [flight.price for flight in day.journey.flights] == [100]
    assert day.journey.times == (("departure", "09:05"), ("arrival", "10:00"))


def test_the_bill_counts_rooms_cars_and_the_dearer_of_two():
    lines = bill(
        resolved(
            transportation="Self-driving, from York to Go to Ham", lunch="Soup, and more, Ham", dinner="Soup , Ham",
            accommodation="Bed, Ham(Kent)",
        ),
        TO_HAM,
    )  # fmt: skip
    assert [(line.field, line.total) for line in lines] == [
        ("transportation", 6), ("lunch", 30), ("dinner", 36), ("accommodation", 100),
    ]  # fmt: skip
    assert total_of(lines) == 172


def test_attractions_without_a_last_semicolon_are_read():
    (day,) = resolved(attraction="Tower, Ham; Bridge, Ham")
    assert [stop.named.name for stop in day.sights] == ["Tower", "Bridge"]


JUDGED = trip("Lindhaven", "Port Serin")[1]


def test_what_a_query_asks_for():
    assert asked(JUDGED) == (*COMMONSENSE, "Budget")
    wishes = Constraints("pets", ("Tea",), "private room", "no flight")
    assert asked(replace(JUDGED, budget=None, constraints=wishes))[8:] == (
        "Room Rule", "Room Type", "Cuisine", "Transportation",
    )  # fmt: skip


def test_a_verdict_is_its_findings():
    fine = verdict_of("strict", JUDGED, [], cost=3)
    assert fine.final
    dear = verdict_of("strict", JUDGED, [TripFinding("Budget", "too dear"), TripFinding("Budget", "too dear")])
    assert (dear.commonsense, dear.hard, dear.final, len(dear.findings)) == (True, False, False, 1)
    assert dear.to_dict()["checks"]["Budget"] == "failed"
    assert str(dear.findings[0]) == "too dear (Budget)"
    assert str(TripFinding("Budget", "dear", 2, "lunch")) == "day 2, lunch: dear (Budget)"
    assert str(TripFinding("Budget", "dear", 2)) == "day 2: dear (Budget)"


def test_what_is_not_there_passes_nothing():
    nothing = not_delivered("official", JUDGED)
    assert not (nothing.commonsense or nothing.hard or nothing.final)


PLAN, QUERY, WORLD = trip("Lindhaven", "Port Serin")


def test_money():
    assert [format_money(1204), format_money(Decimal("10.50")), format_money(None)] == ["$1,204", "$10.50", "?"]


def test_what_was_understood():
    wishes = Constraints("pets", ("Tea", "Cafe"), "private room", "no flight")
    told = describe_query(replace(QUERY, constraints=wishes, visiting_city_number=2, dest="Belloro", budget=None))
    assert told == {
        "From": "Lindhaven", "To": "2 cities in Belloro", "Days": "3, 2022-03-10 to 2022-03-12", "People": "2",
        "Budget": "any", "Rooms": "private room, pets allowed", "Food": "Tea, Cafe", "Travel": "no flight",
    }  # fmt: skip


def test_the_days_with_what_they_cost():
    cost = strict(PLAN, QUERY, WORLD).cost
    lines = trip_text(PLAN, replace(QUERY, budget=cost + 5), WORLD).splitlines()
    assert lines[0] == "Day 1, Thursday 10 March 2022: from Lindhaven to Port Serin"
    assert lines[1].split() == ["Journey", lines[1].split()[1], *PLAN[0].transportation.split()]
    assert lines[-1] == f"{format_money(cost)} for 2 people; $5 of the budget left"
    assert trip_text(PLAN, replace(QUERY, budget=cost - 5), WORLD).endswith("; $5 more than the budget\n")


def test_both_verdicts_side_by_side():
    wrong = (PLAN[0], replace(PLAN[1], lunch="-"), PLAN[2])
    said = verdicts_text([judge(wrong, QUERY, WORLD) for judge in (official, strict)])
    assert "Complete Information      failed        failed\n" in said
    assert "Budget                    not judged    passed\n" in said
    assert "Cuisine" not in said
    assert said.endswith("strict: day 2, lunch: there is no lunch (Complete Information)\n")
