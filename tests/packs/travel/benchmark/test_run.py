import json
from dataclasses import replace

import pytest

from formal_llm.errors import QueryError
from formal_llm.llms import resolve
from formal_llm.packs.travel.benchmark.cases import read_cases
from formal_llm.packs.travel.benchmark.records import TravelRecords
from formal_llm.packs.travel.benchmark.run import failures, judge, read_by_rules, run_case, run_cases
from tests.packs.travel.benchmark.folders import folder


@pytest.fixture
def cases(tmp_path):
    return read_cases(folder(tmp_path))


def test_a_case_is_planned_in_what_was_collected(cases):
    record = run_case(cases[0], resolve("test:random"), called="chance")
    assert (record["read"], record["error"], len(record["plan"])) == (True, "", 3)
    assert 0 < record["questions"] <= record["requests"]
    assert record["characters"] > 100
    assert all(verdict.final for verdict in judge(record, cases[0]).verdicts)


def test_what_was_read_wrong_is_judged_by_what_was_meant(cases):
    def misread(text, world):
        return replace(read_by_rules(text, world), people=1)

    record = run_case(replace(cases[0], query=replace(cases[0].query, budget=10)), resolve("test:random"), called="x",
                      reader=misread)  # fmt: skip
    assert record["read"] is False
    judged = judge(record, replace(cases[0], query=replace(cases[0].query, budget=10)))
    assert judged.verdicts[0].states["Budget"] == "failed"


def test_a_query_that_is_not_read_or_has_no_trip_is_a_line_too(cases):
    def unread(text, world):
        raise QueryError(text, [("text", "no", None)])

    def poor(text, world):
        return replace(read_by_rules(text, world), budget=10)

    one = run_case(cases[0], resolve("test:random"), called="x", reader=unread)
    other = run_case(cases[0], resolve("test:random"), called="x", reader=poor)
    assert (one["plan"], other["plan"]) == ([], [])
    assert [said.split(":")[1].strip() for said in failures([one, other])] == ["not read", "no trip"]
    assert not judge(one, cases[0]).verdicts[0].delivered


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
