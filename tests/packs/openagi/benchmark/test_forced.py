"""Tool names forced one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formal_llm import Answer, Question
from formal_llm.packs.openagi.benchmark.records import Records
from tests.packs.openagi.benchmark.writers import Together, Writer


def test_forced_names(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    asked: list[Question] = []

    class First(Writer):
        def choose(self, question: Question) -> Answer:
            asked.append(question)
            return Answer((len(question.options) if len(asked) == 2 else 1,))

    with Records(tmp_path, bench.identity) as records:
        bench.run({"f": First("")}, ["constrained"], records)
        (plan,) = records.plans.values()
    assert plan["word"] == ["colorization", "input_image"]
    assert (plan["valid"], plan["questions"]) == (True, 2)
    # Whatever was chosen before, all tools that are there are offered, and to stop.
    assert [len(question.options) for question in asked] == [11, 11]
    assert "Step 1: Use Colorization" in asked[1].prompt
    assert asked[1].options[-1].text.startswith("Stop")


def test_forced_names_end_somewhere(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    with Records(tmp_path, bench.identity) as records:
        bench.run({"w": Writer("")}, ["constrained"], records)
        (plan,) = records.plans.values()
    assert plan["questions"] == 15
    assert plan["word"] == ["colorization"] * 15 + ["input_image"]
    assert not plan["valid"]


def test_questions_together(made: Any, tmp_path: Path) -> None:
    bench = made([7, 50], repeats=2)
    llm = Together("")
    with Records(tmp_path, bench.identity) as records:
        bench.run({"t": llm}, ["constrained"], records)
        assert len(records.plans) == 4
    assert llm.rounds == 1
    assert all(plan["word"] == [] and "empty" in plan["reason"] for plan in records.plans.values())
