import json

from tests.cli.inside import runner
from tests.packs.travel.benchmark.folders import SENTENCES, folder

bench = runner("bench")


def test_both_modes_on_record_with_tables_and_submissions(tmp_path):
    data, out = folder(tmp_path), tmp_path / "out"
    command = ("travelplanner", "--data", str(data), "--out", str(out), "--llm", "test:random")
    code, printed, said = bench(*command, "--mode", "sole", "--mode", "two-stage")
    assert code == 0, said
    assert "| test:random sole | strict | cases given | 100.0% (2/2) | 100.0% (16/16) |" in printed
    assert "| test:random two-stage | official da7c1d4 | whole train split | 4.4% |" in printed
    assert "| Formal-LLM |  | 9.2% |" in printed
    assert (out / "table.md").read_text() in printed
    lines = [json.loads(line) for line in (out / "submission-test_random-sole.jsonl").read_text().splitlines()]
    assert [line["query"] for line in lines] == list(SENTENCES)
    before = (out / "plans.jsonl").read_text()
    assert bench(*command)[0] == 0
    assert (out / "plans.jsonl").read_text() == before


def test_the_first_cases_without_published_figures(tmp_path):
    code, printed, _ = bench(
        "travelplanner", "--data", str(folder(tmp_path)), "--out", str(tmp_path / "out"), "--most", "1",
        "--no-published",
    )  # fmt: skip
    assert code == 0
    assert "100.0% (1/1)" in printed
    assert "PUBLISHED" not in printed


def test_other_data_are_another_benchmark(tmp_path):
    """What is on record for other queries is not reported as the plans of these."""
    data, out = folder(tmp_path), str(tmp_path / "out")
    assert bench("travelplanner", "--data", str(data), "--out", out, "--most", "1")[0] == 0
    other = tmp_path / "other"
    other.mkdir()
    lines = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()]
    (other / "train.jsonl").write_text(json.dumps({**lines[1], "index": 0}))
    code, printed, said = bench("travelplanner", "--data", str(other), "--out", out)
    assert (code, printed) == (2, "")
    assert "its plan of case 0 is for another query or other tables" in said
    assert bench("travelplanner", "--data", str(data), "--out", out)[0] == 0  # and more cases of the same go on


def test_a_bad_answer_is_named_and_the_others_are_planned(tmp_path):
    code, printed, said = bench(
        "travelplanner", "--data", str(folder(tmp_path)), "--out", str(tmp_path / "out"), "--no-published",
        "--llm", "test:script=77,77,77", "--llm", "builtin", "--commit", "before-ed379c4",
    )  # fmt: skip
    assert code == 0
    assert "| test:script=77,77,77 sole | official before-ed379c4 | cases given | 0.0% (0/2) |" in printed
    assert "| builtin sole | strict | cases given | 100.0% (2/2) |" in printed
    assert "test:script=77,77,77 sole, case 0: bad answer: no valid answer after 3 tries: 77 is" in said


def test_a_folder_without_cases(tmp_path):
    code, _, said = bench("travelplanner", "--data", str(tmp_path), "--out", str(tmp_path / "out"))
    assert code == 2
    assert "it has no train.jsonl" in said
