import pytest

from formal_llm.packs.travel.benchmark.tables import (
    COLUMNS,
    RatesRow,
    as_data,
    published_figures,
    published_table,
    rates,
    rates_table,
    work_table,
)
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


ROWS = [RatesRow("a|b", "strict", rates(VERDICTS))]


def test_the_table_has_the_cases_given_and_the_whole_split():
    head, _, given, whole = rates_table(ROWS, "train").splitlines()
    assert head.endswith("| delivery | commonsense micro | commonsense macro | hard micro | hard macro | final |")
    assert given.startswith("| a\\|b | strict | cases given | 75.0% (3/4) | 71.9% (23/32)")
    assert whole.startswith("| a\\|b | strict | whole train split | 6.7% | 6.4% |")
    assert len(rates_table(ROWS).splitlines()) == 3


def test_published_figures_are_shipped():
    figures = {one.method: one for one in published_figures()}
    assert figures["Formal-LLM"].final == "9.2"
    assert figures["ATLAS"].mode == "two-stage"
    assert "| Mind Evolution | sole | >98% |" in published_table(published_figures())


def test_what_plans_took():
    record = {"read": True, "plan": [1], "questions": 4, "requests": 5, "characters": 2000, "seconds": 0.25}
    table = work_table(
        {"me": [record, {**record, "read": None, "questions": 6}, {**record, "plan": [], "read": False}]}
    )
    assert table.splitlines()[2] == "| me | 1/2 | 5 | 6 | 5 | 5 | 2,000 | 2,000 | 0.250 | 0.250 |"


def test_the_data_of_the_table():
    (row,) = as_data(ROWS)
    assert row["final"] == {"passed": 1, "of": 4}
