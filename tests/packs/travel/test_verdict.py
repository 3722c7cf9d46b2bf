from dataclasses import replace

from formal_llm.packs.travel.query import Constraints
from formal_llm.packs.travel.verdict import COMMONSENSE, TripFinding, asked, not_delivered, verdict_of
from tests.packs.travel.trips import trip

QUERY = trip("Lindhaven", "Port Serin")[1]


def test_what_a_query_asks_for():
    assert asked(QUERY) == (*COMMONSENSE, "Budget")
    wishes = Constraints("pets", ("Tea",), "private room", "no flight")
    assert asked(replace(QUERY, budget=None, constraints=wishes))[8:] == (
        "Room Rule", "Room Type", "Cuisine", "Transportation",
    )  # fmt: skip


def test_a_verdict_is_its_findings():
    fine = verdict_of("strict", QUERY, [], cost=3)
    assert fine.final
    dear = verdict_of("strict", QUERY, [TripFinding("Budget", "too dear"), TripFinding("Budget", "too dear")])
    assert (dear.commonsense, dear.hard, dear.final, len(dear.findings)) == (True, False, False, 1)
    assert dear.to_dict()["checks"]["Budget"] == "failed"
    assert str(dear.findings[0]) == "too dear (Budget)"
    assert str(TripFinding("Budget", "dear", 2, "lunch")) == "day 2, lunch: dear (Budget)"
    assert str(TripFinding("Budget", "dear", 2)) == "day 2: dear (Budget)"


def test_what_is_not_there_passes_nothing():
    nothing = not_delivered("official", QUERY)
    assert not (nothing.commonsense or nothing.hard or nothing.final)
