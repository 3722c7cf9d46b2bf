import json
from dataclasses import replace
from datetime import date, timedelta

import pytest

from formal_llm.errors import QueryError, RecordError
from formal_llm.llms import resolve
from formal_llm.llms.question import Answer
from formal_llm.packs.travel.benchmark.cases import read_cases
from formal_llm.packs.travel.benchmark.records import TravelRecords
from formal_llm.packs.travel.benchmark.run import collect, failures, judge, run_case, run_cases
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.folder import Folder
from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.planning import plan_trip
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.tools import MOST_STEPS
from tests.packs.travel.benchmark.folders import folder
from tests.packs.travel.trips import shipped


@pytest.fixture
def cases(tmp_path):
    return read_cases(folder(tmp_path))


def test_a_case_is_planned_in_what_was_collected(cases):
    record = run_case(cases[0], resolve("test:random"), called="chance")
    assert (record["read"], record["error"], len(record["plan"])) == (None, "", 3)  # by its fields
    assert 0 < record["questions"] <= record["requests"]
    assert record["characters"] > 100
    assert all(verdict.final for verdict in judge(record, cases[0]).verdicts)


def test_what_was_read_wrong_is_judged_by_what_was_meant(cases):
    case = replace(cases[0], query=replace(cases[0].query, budget=10))
    record = run_case(case, resolve("test:random"), called="x", reader=lambda _text, _world: cases[0].query)
    assert record["read"] is False
    assert judge(record, case).verdicts[0].states["Budget"] == "failed"
    right = run_case(cases[0], resolve("test:random"), called="x", reader=lambda _text, _world: cases[0].query)
    assert right["read"] is True


def test_a_query_that_is_not_read_or_has_no_trip_is_a_line_too(cases):
    def unread(text, world):
        raise QueryError(text, [("text", "no", None)])

    def poor(text, world):
        return replace(cases[0].query, budget=10)

    one = run_case(cases[0], resolve("test:random"), called="x", reader=unread)
    other = run_case(cases[0], resolve("test:random"), called="x", reader=poor)
    assert (one["plan"], other["plan"]) == ([], [])
    assert [said.split(":")[1].strip() for said in failures([one, other])] == ["not read", "no trip"]
    assert not judge(one, cases[0]).verdicts[0].delivered


@pytest.mark.parametrize("mode", ["sole", "two-stage"])
def test_a_bad_answer_is_a_line_too(cases, mode):
    record = run_case(cases[0], resolve(lambda _: "banana"), called="x", mode=mode)
    assert record["plan"] == []
    assert failures([record]) == ["case 0: bad answer: no valid answer after 3 tries: 'banana' is not a number"]
    assert not judge(record, cases[0]).verdicts[0].delivered


def test_a_sentence_without_a_known_meaning_that_cannot_be_read_is_not_delivered(cases):
    case = replace(cases[0], text="Hello!", query=None)
    record = run_case(case, resolve("test:first"), called="x")
    assert failures([record])[0].startswith("case 0: not read: ")
    assert "only a sentence; give its fields (org, dest, days, date, ...), or let a model read it" in record["error"]
    assert not judge(record, case).verdicts[0].delivered


def test_a_run_goes_on_where_it_was(tmp_path, cases):
    out = tmp_path / "out"
    out.mkdir()
    with TravelRecords(out, {"cases": "x"}) as records:
        run_cases(cases[:1], resolve("test:random"), records, called="chance")
    with (out / "plans.jsonl").open("a") as file:
        file.write('{"llm": "chan')  # a line that was being written
    asked = []
    with TravelRecords(out, {"cases": "x"}) as records:
        found = run_cases(cases, resolve("test:random"), records, called="chance", on_record=asked.append)
    assert [one["index"] for one in found] == [0, 1] == [one["index"] for one in asked]
    lines = [json.loads(line) for line in (out / "plans.jsonl").read_text().splitlines()]
    assert [line["index"] for line in lines] == [0, 1]


def test_records_of_other_cases_are_no_plans_of_these(tmp_path, cases):
    """A run goes on only with the same sentences, meanings, references and tables; more cases may come."""
    with TravelRecords(tmp_path, {"cases": "x"}) as records:
        run_cases(cases[:1], resolve("test:random"), records, called="chance")
    others = [
        replace(cases[1], index=0), replace(cases[0], text="Elsewhere"), replace(cases[0], reference={}),
        replace(cases[0], query=replace(cases[0].query, budget=7)), replace(cases[0], shared=Folder()),
    ]  # fmt: skip
    for other in others:
        with TravelRecords(tmp_path, {"cases": "x"}) as records, pytest.raises(RecordError, match="another query or"):
            run_cases([other], resolve("test:random"), records, called="chance")
    with TravelRecords(tmp_path, {"cases": "x"}) as records:
        assert len(run_cases(cases, resolve("test:random"), records, called="chance")) == 2


def query(org, dest, cities):
    dates = tuple(date(2022, 3, 10) + timedelta(day) for day in range(2 * cities + 1))
    return TravelQuery(org, dest, len(dates), cities, dates, 2, 50_000)


@pytest.mark.parametrize("wanted", [query("Lindhaven", "Port Serin", 1), query("Lindhaven", "Belloro", 2),
                                    query("Lindhaven", "North Corvale", 3)])  # fmt: skip
def test_whatever_is_answered_there_is_enough_for_a_plan(wanted):
    world = shipped()
    found = collect("Please plan a trip", wanted, world, resolve("test:random"))
    cities, legs = wanted.visiting_city_number, wanted.visiting_city_number + 1
    assert 3 * cities + 2 * legs + (cities > 1) <= found.steps <= MOST_STEPS
    assert found.stopped in ("", "30 steps were taken")
    assert len(found.transcripts) >= cities + legs
    made = plan_trip(wanted, found.world, "test:random")
    assert official(made.days, wanted, world).final
    assert strict(made.days, wanted, world).final


def test_the_planner_has_nothing_but_the_notebook():
    found = collect("Please plan a trip", query("Lindhaven", "Port Serin", 1), shipped(), resolve("builtin"))
    assert {city for city in shipped().cities() if found.world.restaurants(city)} == {"Port Serin"}
    assert found.world.restaurants("Port Serin") == shipped().restaurants("Port Serin")
    assert found.world.distance("Lindhaven", "Port Serin", "taxi") == shipped().distance(
        "Lindhaven", "Port Serin", "taxi"
    )


def test_the_model_chooses_the_cities():
    """One that takes the last option visits others than one that takes the first."""

    def taking(place):
        return lambda question: Answer((len(question.options) if place else 1,))

    wanted = query("Lindhaven", "North Corvale", 2)
    worlds = [collect("", wanted, shipped(), resolve(taking(place))).world for place in (0, 1)]
    first, last = ({city for city in shipped().cities() if world.restaurants(city)} for world in worlds)
    assert len(first) == len(last) == 2
    assert first != last


def test_cities_without_a_way_or_a_bed_are_left_out():
    """Whatever chance answers: of three cities only two can be visited, and these are."""
    world = shipped()
    names = world.cities("North Corvale")
    left, bare = names[0], names[1]
    made = World(
        roads=[one for one in world.all_roads() if left not in (one.origin, one.destination)],
        accommodations=[one for city in names if city != bare for one in world.accommodations(city)],
        restaurants=[one for city in names for one in world.restaurants(city)],
        attractions=[one for city in names for one in world.attractions(city)],
        cities={state: world.cities(state) for state in world.states},
    )
    wanted = query("Lindhaven", "North Corvale", 2)
    for seed in range(5):
        found = collect("Please plan a trip", wanted, made, resolve(f"test:random={seed}"))
        assert found.steps <= MOST_STEPS
        assert strict(plan_trip(wanted, found.world, "test:random").days, wanted, made).final


def test_where_nothing_can_be_reached_the_search_ends():
    world = World(cities={"Arvenia": ("Lindhaven",), "Far": ("A", "B", "C")})
    found = collect("Please plan a trip", query("Lindhaven", "Far", 2), world, resolve("test:random"))
    assert 0 < found.steps <= MOST_STEPS
    assert found.world.flights("Lindhaven", "A") == ()
