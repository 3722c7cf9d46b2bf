import pytest

from formal_llm.errors import ResultsError
from formal_llm.packs.travel.benchmark.records import TravelRecord, TravelRecords

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
    with TravelRecords(tmp_path, {"cases": "x"}), pytest.raises(ResultsError, match="another benchmark is writing"):
        TravelRecords(tmp_path, {"cases": "x"})
    with pytest.raises(ResultsError, match="another setting"):
        TravelRecords(tmp_path, {"cases": "y"})
    (tmp_path / "plans.jsonl").write_text("{}\n")
    with pytest.raises(ResultsError, match=r"plans\.jsonl:1: this is no line"):
        TravelRecords(tmp_path, {"cases": "x"})
