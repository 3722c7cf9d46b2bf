import pytest

from formal_llm.packs.travel.benchmark.rates import COLUMNS, rates
from formal_llm.packs.travel.verdict import TripFinding, not_delivered, verdict_of
from tests.packs.travel.trips import trip

QUERY = trip("Lindhaven", "Port Serin")[1]
VERDICTS = [
    verdict_of("official", QUERY, []),
    verdict_of("official", QUERY, [TripFinding("Budget", "dear")]),
    verdict_of("official", QUERY, [TripFinding("Within Sandbox", "x")], not_judged=("Budget",)),
    not_delivered("official", QUERY),
]


def test_micro_counts_checks_and_macro_plans():
    found = rates(VERDICTS)
    assert found.counts == ((3, 4), (23, 32), (2, 4), (1, 4), (1, 4), (1, 4))
    assert found.compute_shares()[0] == 0.75
    assert len(COLUMNS) == len(found.counts)


def test_the_published_scripts_divide_by_the_whole_split():
    assert rates(VERDICTS).compute_shares("train") == pytest.approx((3 / 45, 23 / 360, 2 / 45, 1 / 105, 1 / 45, 1 / 45))


def test_no_plans_have_no_share():
    assert rates([]).compute_shares() == (0.0,) * 6
