"""What was made elsewhere."""

import json
from pathlib import Path

from formal_llm import CFG, Planner, RecordingLLM
from tests.studio.texts import TEA, part, parts


def recorded(tmp_path: Path, script: str, text: str = TEA) -> str:
    with RecordingLLM(f"test:script={script}", tmp_path / "answers.jsonl") as llm:
        Planner(CFG.from_string(text), llm=llm).plan("")
    return (tmp_path / "answers.jsonl").read_text()


def test_a_plan_that_is_valid_is_drawn() -> None:
    found = parts("judge", plan="pour steep boil_water")
    assert [one["part"] for one in found] == ["verdict", "picture"]
    assert found[0]["valid"]


def test_where_a_plan_leaves_the_rules() -> None:
    found = part("verdict", "judge", plan="pour pour boil_water")
    assert not found["valid"]
    assert found["position"] == 1
    assert "%limit 1 pour" in found["reason"]
    assert found["allowed"] == ["steep", "Boil water"]
    assert found["nearest"]["names"] == ["pour", "boil_water"]


def test_a_recording_is_followed_as_far_as_the_rules_go(tmp_path: Path) -> None:
    text = TEA.replace("steep tea", "steep tea | stir tea")
    told = recorded(tmp_path, "1,1,2", text)
    found = part("verdict", "judge", text, plan=told)
    assert found["valid"]
    assert found["word"]["names"] == ["pour", "steep", "boil_water"]
    assert found["answers"] == [[1], [1], [2]]
    found = part("verdict", "judge", text.replace("%limit 1 steep", "%limit 0 steep\n%limit 1"), plan=told)
    assert not found["valid"]
    assert found["reason"] == "answer 2, 'the output of \"steep\"': it is left out because of %limit 0 steep"
    assert found["answers"] == [[1]]
    assert found["allowed"] == ['the output of "stir"', "Boil water"]


def test_a_recording_with_more_answers_than_questions(tmp_path: Path) -> None:
    told = recorded(tmp_path, "1,1", TEA)
    found = part("verdict", "judge", TEA.replace("%limit 1 steep pour", "%limit 0 steep\n%limit 1 pour"), plan=told)
    assert found["reason"] == "answer 2, 'the output of \"steep\"': the plan is finished before it"


def test_what_is_no_recording(tmp_path: Path) -> None:
    told = recorded(tmp_path, "3")
    for line in (
        "[]",
        "{",
        json.dumps({"options": 3}),
        json.dumps({"options": [[1, "a"]], "answer": {"numbers": [2]}}),
    ):
        assert part("problems", "judge", plan=told + line + "\n")["problems"][0]["line"] == 2


def test_a_recording_that_ends_too_early(tmp_path: Path) -> None:
    first = recorded(tmp_path, "1,2").splitlines()[0]
    assert "not finished" in part("verdict", "judge", plan=first)["reason"]


def test_a_text_that_is_no_plan() -> None:
    assert part("problems", "judge", plan="knit a jumper")["problems"]


def test_two_versions() -> None:
    found = part("differences", "compare", other=TEA.replace("%limit 1", "%limit 2"))
    assert not found["equal"]
    assert len(found["only_before"]["names"]) == 3
    assert found["only_now"] is None
    assert part("differences", "compare", other=TEA + "# another comment\n")["equal"]
    assert part("problems", "compare", other="S - a")["problems"][0]["line"] == 1
