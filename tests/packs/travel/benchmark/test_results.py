"""Records, verdicts and tables of the benchmark."""

import pytest

from formal_llm.errors import InputError, RecordError
from formal_llm.packs.travel.benchmark.cases import read_cases
from formal_llm.packs.travel.benchmark.judged import judge_submissions, rates_rows
from formal_llm.packs.travel.benchmark.records import TravelRecord, TravelRecords
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
from formal_llm.packs.travel.plan_days import Submission
from formal_llm.packs.travel.verdict import TripFinding, not_delivered, verdict_of
from tests.packs.travel.benchmark.folders import SENTENCES, folder
from tests.packs.travel.trips import trip

LINE = TravelRecord(
    llm="x", mode="sole", search="greedy", index=3, case="c", read=True, plan=[], error="", questions=1, requests=1,
    characters=9, steps=0, seconds=0.1,
)  # fmt: skip


def test_what_was_written_is_there_again(tmp_path):
    with TravelRecords(tmp_path, {"cases": "x"}) as records:
        records.add_record(LINE)
    with TravelRecords(tmp_path, {"cases": "x"}) as records:
        assert records.lines == {("x", "sole", "greedy", 3): LINE}


def test_folders_of_others_are_refused(tmp_path):
    with TravelRecords(tmp_path, {"cases": "x"}), pytest.raises(RecordError, match="another benchmark is writing"):
        TravelRecords(tmp_path, {"cases": "x"})
    with pytest.raises(RecordError, match="another setting"):
        TravelRecords(tmp_path, {"cases": "y"})
    (tmp_path / "plans.jsonl").write_text("{}\n")
    with pytest.raises(RecordError, match=r"plans\.jsonl:1: this is no line"):
        TravelRecords(tmp_path, {"cases": "x"})


@pytest.fixture
def cases(tmp_path):
    return read_cases(folder(tmp_path))


def test_each_plan_is_judged_by_its_own_query(cases):
    plans = [case.annotated for case in cases]
    by_text = judge_submissions([Submission(None, f" {SENTENCES[1]}", plans[1]), Submission(0, "", plans[0])], cases)
    assert [[one.final for one in judged.verdicts] for judged in by_text] == [[True, True], [True, True]]
    swapped = judge_submissions([Submission(1, "", plans[0]), Submission(0, "", plans[1])], cases)
    assert not any(verdict.final for judged in swapped for verdict in judged.verdicts)


def test_a_case_without_a_plan_has_none(cases):
    judged = judge_submissions([Submission(1, "", cases[1].annotated)], cases)
    official, strict = rates_rows("me", judged)
    assert official.rates.counts[0] == strict.rates.counts[0] == (1, 2)


@pytest.mark.parametrize(
    ("submissions", "said"),
    [
        ([Submission(2, "", ())], "submission 1: none of the 2 cases has index 2 (idx 3)"),
        ([Submission(1, "Elsewhere", ())], "submission 1: none of the 2 cases has the query 'Elsewhere'"),
        (
            [Submission(None, "", ())],
            "submission 1: without 'query', 'index' and 'idx' nobody knows what it answers",
        ),
        ([Submission(0, "", ()), Submission(0, "", ())], "submission 2: case 0 has a plan already"),
    ],
)
def test_submissions_that_belong_nowhere(cases, submissions, said):
    with pytest.raises(InputError) as error:
        judge_submissions(submissions, cases)
    assert str(error.value) == said


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
