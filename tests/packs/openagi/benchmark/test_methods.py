"""The ways of planning, and who can go them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from formal_llm import Answer, Question, RandomLLM, TaskPack
from formal_llm.llms import resolve
from formal_llm.packs.openagi.benchmark.conditions import METHODS
from formal_llm.packs.openagi.benchmark.methods import ChanceWriter
from formal_llm.packs.openagi.benchmark.reading import tool_texts
from formal_llm.packs.openagi.benchmark.records import Records
from tests.packs.openagi.benchmark.writers import Together, Writer


def test_what_does_not_apply_is_told(made: Any, tmp_path: Path) -> None:
    bench = made([7])
    llms = {"builtin": resolve("builtin"), "test:random": resolve("test:random")}
    skipped = bench.skipped(llms, METHODS)
    assert [(one.llm, one.method) for one in skipped] == [("builtin", "zero"), ("builtin", "few")]
    with Records(tmp_path, bench.identity) as records:
        bench.run(llms, METHODS, records)
        assert {(key.llm, key.method) for key in records.plans} == {
            ("builtin", "constrained"), ("builtin", "formal"), *(("test:random", method) for method in METHODS)
        }  # fmt: skip


def test_chance_draws_from_the_double() -> None:
    tools = tool_texts(TaskPack.load("openagi"))
    texts = [ChanceWriter(RandomLLM(5), tools).generate("x").text for _ in range(2)]
    assert texts[0] == texts[1]
    many = ChanceWriter(RandomLLM(0), tools)
    written = [many.generate("x").text.splitlines() for _ in range(300)]
    assert {len(lines) for lines in written} == {1, 2, 3, 4, 5}
    assert {line.partition("Use ")[2] for lines in written for line in lines} == {tool.label for tool in tools}


def test_an_answer_that_is_none_is_a_plan_that_is_not_valid(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1, tries=2)
    with Records(tmp_path, bench.identity) as records:
        bench.run({"wrong": resolve("test:script=99,99,99,99")}, ["constrained", "formal"], records)
        assert [plan["valid"] for plan in records.plans.values()] == [False, False]
        assert all(plan["reason"] for plan in records.plans.values())


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
