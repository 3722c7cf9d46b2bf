"""A run that is watched."""

from formal_llm import CFG
from tests.studio.texts import CHART, TEA, part, parts


def test_a_run_is_told_as_it_happens() -> None:
    found = parts("run", llm="test:script=2,1,1", task="a cup")
    assert [one["part"] for one in found][:3] == ["asked", "answered", "asked"]
    last = found[-1]
    assert last["part"] == "finished"
    assert CFG.from_string(TEA).accepts(last["word"]["names"])
    assert part("position", "step", answers=last["answers"])["word"] == last["word"]


def test_the_task_is_told_to_the_model() -> None:
    assert "a cup of green tea" in parts("run", llm="test:first", task="a cup of green tea")[0]["prompt"]


def test_what_goes_wrong_is_said() -> None:
    assert "names no LLM" in part("problems", "run", llm="nobody:x")["problems"][0]["message"]
    assert "Be the model" in part("bad question", "run", llm="person")["reason"]
    assert part("problems", "run", llm="test:script=7", task="")["problems"]
    assert part("problems", "run", "S - a", llm="test:first")["problems"][0]["line"] == 1


def test_a_run_over_a_chart() -> None:
    assert part("finished", "run", CHART, ".mmd", llm="test:script=2,2,1")["questions"] == 3
