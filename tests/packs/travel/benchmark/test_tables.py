from formal_llm.packs.travel.benchmark.rates import rates
from formal_llm.packs.travel.benchmark.tables import (
    RatesRow,
    as_data,
    published_figures,
    published_table,
    rates_table,
    work_table,
)
from tests.packs.travel.benchmark.test_rates import VERDICTS

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
