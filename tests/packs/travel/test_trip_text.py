from dataclasses import replace
from decimal import Decimal

from formal_llm.packs.travel.official import official
from formal_llm.packs.travel.query import Constraints
from formal_llm.packs.travel.strict import strict
from formal_llm.packs.travel.trip_text import describe_query, format_money, trip_text, verdicts_text
from tests.packs.travel.trips import trip

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
